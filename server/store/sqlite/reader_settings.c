/* The settings of a run's batches, and the provenance of their rollouts. */
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/reader.h"

#include <stddef.h>

static int read_overrides(struct store_reader *reader, struct store_memory *memory, struct store_batch_settings *batch)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_OVERRIDES);
    size_t capacity = 0;
    int result;
    bind_int(rows, 1, batch->seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_group_settings *overrides =
            store_memory_grow(memory, batch->overrides, batch->override_count, &capacity, sizeof(*overrides));
        if (!overrides)
            return SQLITE_NOMEM;
        batch->overrides = overrides;
        overrides[batch->override_count++] =
            (struct store_group_settings){column_text(rows, 0, memory), column_text(rows, 1, memory)};
    }
    return result;
}

static int read_sources(struct store_reader *reader, struct store_memory *memory, struct store_batch_settings *batch)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_DATA_SOURCES);
    size_t capacity = 0;
    int result;
    bind_int(rows, 1, batch->seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_data_source *sources =
            store_memory_grow(memory, batch->sources, batch->source_count, &capacity, sizeof(*sources));
        if (!sources)
            return SQLITE_NOMEM;
        batch->sources = sources;
        sources[batch->source_count++] = (struct store_data_source){
            column_text(rows, 0, memory), column_text(rows, 1, memory), column_text(rows, 2, memory)};
    }
    return result;
}

static int read_verdicts(struct store_reader *reader, int64_t batch_seq, struct store_memory *memory,
                         struct text *ret_verdicts)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_FIRST_VERDICTS);
    bind_int(row, 1, batch_seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result;
    *ret_verdicts = column_text(row, 0, memory);
    sqlite3_reset(row);
    return SQLITE_DONE;
}

static int read_names(struct store_reader *reader, enum statement which, int64_t batch_seq, struct store_memory *memory,
                      struct store_names *names)
{
    sqlite3_stmt *rows = database_statement(&reader->database, which);
    int result;
    bind_int(rows, 1, batch_seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct text *grown =
            store_memory_grow(memory, names->names, names->count, &names->capacity, sizeof(*names->names));
        if (!grown)
            return SQLITE_NOMEM;
        names->names = grown;
        grown[names->count++] = column_text(rows, 0, memory);
    }
    return result;
}

/* The lists of a batch's makers, how each is read, and how the latest batch is found that knows it. */
static const struct maker_list {
    enum statement read, find;
    size_t offset;
} maker_lists[] = {
    {SQL_MAKER_MODELS, SQL_LATEST_MODELS, offsetof(struct store_makers, engine_models)},
    {SQL_MAKER_VERSIONS, SQL_LATEST_VERSIONS, offsetof(struct store_makers, engine_versions)},
    {SQL_MAKER_ROLLOUTDS, SQL_LATEST_ROLLOUTDS, offsetof(struct store_makers, rolloutd_versions)},
};

static struct store_names *names_of(struct store_makers *makers, const struct maker_list *list)
{
    return (struct store_names *)(void *)((char *)makers + list->offset);
}

static int read_sides(struct store_reader *reader, struct store_memory *memory, struct store_batch_settings *batch)
{
    int result = read_overrides(reader, memory, batch);
    if (result == SQLITE_DONE)
        result = read_sources(reader, memory, batch);
    if (result == SQLITE_DONE)
        result = read_verdicts(reader, batch->seq, memory, &batch->makers.verdicts);
    for (size_t i = 0; i < ARRAY_LENGTH(maker_lists) && result == SQLITE_DONE; i++)
        result = read_names(reader, maker_lists[i].read, batch->seq, memory, names_of(&batch->makers, &maker_lists[i]));
    return result;
}

static enum store_status read_settings(struct store_reader *reader, int64_t run_seq, int64_t after, size_t limit,
                                       struct store_settings_page *page)
{
    struct store_memory *memory = page->memory;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_LIST_SETTINGS);
    int result;
    bind_int(row, 1, run_seq);
    bind_int(row, 2, after);
    bind_int(row, 3, (int64_t)limit);
    while ((result = sqlite3_step(row)) == SQLITE_ROW && page->count < limit) {
        struct store_batch_settings *into = &page->batches[page->count++];
        int place = 1;
        into->seq = sqlite3_column_int64(row, 0);
        COLUMNS_READ(SETTINGS_COLUMNS)
    }
    for (size_t i = 0; i < page->count && result == SQLITE_DONE; i++)
        result = read_sides(reader, memory, &page->batches[i]);
    return reader_status(reader, result, memory);
}

enum store_status store_list_settings(struct store_reader *reader, struct text run, int64_t after, size_t limit,
                                      struct store_settings_page *ret_page)
{
    *ret_page = (struct store_settings_page){.memory = store_memory_create()};
    ret_page->batches = store_memory_take(ret_page->memory, limit, sizeof(*ret_page->batches));
    int64_t run_seq;
    if (!ret_page->batches || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW)
        status = read_settings(reader, run_seq, after, limit, ret_page);
    reader_end(reader);
    return status;
}

void store_settings_page_finish(struct store_settings_page *page)
{
    store_memory_destroy(TAKE_PTR(page->memory));
}

/* SQLITE_ROW, or SQLITE_DONE: no batch knows it. */
static int find_latest(struct store_reader *reader, enum statement which, int64_t run_seq, enum store_purpose purpose,
                       int64_t batch_seq, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&reader->database, which);
    bind_int(find, 1, run_seq);
    bind_text(find, 2, text_of(store_purpose_names[purpose]));
    bind_int(find, 3, batch_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

static int find_sampling(struct store_reader *reader, int64_t run_seq, enum store_purpose purpose, int64_t batch_seq,
                         struct store_known_makers *known)
{
    sqlite3_stmt *find = database_statement(&reader->database, SQL_LATEST_SAMPLING);
    bind_int(find, 1, run_seq);
    bind_text(find, 2, text_of(store_purpose_names[purpose]));
    bind_int(find, 3, batch_seq);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    known->sampling = column_text(find, 0, known->memory);
    sqlite3_reset(find);
    return SQLITE_DONE;
}

static int find_makers(struct store_reader *reader, int64_t run_seq, enum store_purpose purpose, int64_t batch_seq,
                       struct store_known_makers *known)
{
    int64_t seq = 0;
    int result = find_sampling(reader, run_seq, purpose, batch_seq, known);
    if (result == SQLITE_DONE)
        result = find_latest(reader, SQL_LATEST_VERDICTS, run_seq, purpose, batch_seq, &seq);
    if (result == SQLITE_ROW)
        result = read_verdicts(reader, seq, known->memory, &known->makers.verdicts);
    for (size_t i = 0; i < ARRAY_LENGTH(maker_lists) && result == SQLITE_DONE; i++) {
        result = find_latest(reader, maker_lists[i].find, run_seq, purpose, batch_seq, &seq);
        if (result == SQLITE_ROW)
            result =
                read_names(reader, maker_lists[i].read, seq, known->memory, names_of(&known->makers, &maker_lists[i]));
    }
    return result;
}

enum store_status store_find_makers(struct store_reader *reader, struct text run, enum store_purpose purpose,
                                    int64_t batch_seq, struct store_known_makers *ret_known)
{
    *ret_known = (struct store_known_makers){.memory = store_memory_create()};
    int64_t run_seq;
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW) {
        result = find_makers(reader, run_seq, purpose, batch_seq, ret_known);
        status = reader_status(reader, result, ret_known->memory);
    }
    reader_end(reader);
    return status;
}

void store_known_makers_finish(struct store_known_makers *known)
{
    store_memory_destroy(TAKE_PTR(known->memory));
}
