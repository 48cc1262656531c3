#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

/* ---- sets -------------------------------------------------------------------------------------------------- */

static struct list_key key_of(const char *what, const struct text *texts, size_t count)
{
    uint8_t sha256[SHA256_BYTES];
    struct list_key key;
    _cleanup_buffer_ struct buffer bytes = {0};
    buffer_init(&bytes, (size_t)64 * 1024);
    buffer_append_string(&bytes, what);
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(&bytes, ",%d:%zu:", texts[i].data != NULL, texts[i].length_bytes);
        if (texts[i].length_bytes)
            buffer_append(&bytes, texts[i].data, texts[i].length_bytes);
    }
    sha256_of(bytes.data, bytes.length_bytes, sha256);
    memcpy(key.digest, sha256, sizeof(key.digest));
    return key;
}

static bool cursor_fits(const struct list_key *key, struct text cursor, int64_t *ret_after)
{
    *ret_after = 0;
    return !cursor.data || cursor_read(key, cursor, ret_after);
}

static int read_splits(struct store_reader *reader, struct store_memory *memory, struct store_taskset *set)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_SPLITS);
    size_t capacity = 0;
    int result;
    bind_int(rows, 1, set->seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_split *splits =
            store_memory_grow(memory, set->splits, set->split_count, &capacity, sizeof(*splits));
        if (!splits)
            return SQLITE_NOMEM;
        set->splits = splits;
        splits[set->split_count++] = (struct store_split){column_text(rows, 0, memory), sqlite3_column_int64(rows, 1)};
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int read_set(struct store_reader *reader, sqlite3_stmt *row, struct store_tasksets *sets)
{
    struct store_memory *memory = sets->memory;
    struct store_taskset *into = &sets->sets[sets->count++];
    int place = 1;
    into->seq = sqlite3_column_int64(row, 0);
    COLUMNS_READ(TASKSET_COLUMNS)
    return read_splits(reader, memory, into);
}

static enum store_status begin_sets(struct store_reader *reader, size_t limit, struct store_tasksets *ret_sets)
{
    *ret_sets = (struct store_tasksets){.memory = store_memory_create()};
    ret_sets->sets = store_memory_take(ret_sets->memory, limit, sizeof(*ret_sets->sets));
    return ret_sets->sets && reader_begin(reader) == SQLITE_OK ? STORE_OK : STORE_UNAVAILABLE;
}

enum store_status store_read_taskset(struct store_reader *reader, struct text set, struct store_tasksets *ret_set)
{
    enum store_status status = begin_sets(reader, 1, ret_set);
    if (status != STORE_OK)
        return status;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_TASKSET);
    bind_text(row, 1, set);
    int result = database_first(row);
    status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW)
        status = reader_status(reader, read_set(reader, row, ret_set), ret_set->memory);
    reader_end(reader);
    return status;
}

bool store_tasksets_cursor_fits(struct text cursor)
{
    struct list_key key = key_of("tasksets", NULL, 0);
    int64_t after;
    return cursor_fits(&key, cursor, &after);
}

enum store_status store_list_tasksets(struct store_reader *reader, struct text cursor, size_t limit,
                                      struct store_tasksets *ret_sets)
{
    struct list_key key = key_of("tasksets", NULL, 0);
    int64_t after;
    *ret_sets = (struct store_tasksets){0};
    if (!cursor_fits(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    enum store_status status = begin_sets(reader, limit, ret_sets);
    if (status != STORE_OK)
        return status;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_TASKSETS);
    int result;
    bind_int(rows, 1, after);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (ret_sets->count == limit) {
            cursor_write(&key, after, ret_sets->next);
            break;
        }
        after = sqlite3_column_int64(rows, 0);
        result = read_set(reader, rows, ret_sets);
        if (result != SQLITE_OK)
            break;
    }
    status = reader_status(reader, result, ret_sets->memory);
    reader_end(reader);
    return status;
}

void store_tasksets_finish(struct store_tasksets *sets)
{
    store_memory_destroy(TAKE_PTR(sets->memory));
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

static void read_task(sqlite3_stmt *row, struct store_tasks *tasks)
{
    struct store_memory *memory = tasks->memory;
    struct store_task *into = &tasks->tasks[tasks->count++];
    int place = 1;
    into->seq = sqlite3_column_int64(row, 0);
    COLUMNS_READ(SET_TASK_COLUMNS)
    into->prompt = reader_unpack(row, SET_TASK_AT_prompt_codec, memory);
    if (sqlite3_column_type(row, SET_TASK_AT_reference_codec) != SQLITE_NULL)
        into->reference = reader_unpack(row, SET_TASK_AT_reference_codec, memory);
}

static enum store_status begin_tasks(struct store_reader *reader, size_t limit, struct store_tasks *ret_tasks)
{
    *ret_tasks = (struct store_tasks){.memory = store_memory_create()};
    ret_tasks->tasks = store_memory_take(ret_tasks->memory, limit, sizeof(*ret_tasks->tasks));
    return ret_tasks->tasks && reader_begin(reader) == SQLITE_OK ? STORE_OK : STORE_UNAVAILABLE;
}

enum store_status store_find_task(struct store_reader *reader, struct text set, struct text task,
                                  struct store_tasks *ret_task)
{
    enum store_status status = begin_tasks(reader, 1, ret_task);
    if (status != STORE_OK)
        return status;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_SET_TASK);
    bind_text(row, 1, set);
    bind_text(row, 2, task);
    int result = database_first(row);
    status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW) {
        read_task(row, ret_task);
        status = reader_status(reader, SQLITE_OK, ret_task->memory);
    }
    reader_end(reader);
    return status;
}

bool store_tasks_cursor_fits(struct text set, struct text split, struct text cursor)
{
    struct list_key key = key_of("tasks", (const struct text[]){set, split}, 2);
    int64_t after;
    return cursor_fits(&key, cursor, &after);
}

static enum store_status scan_tasks(struct store_reader *reader, int64_t set_seq, struct text split, int64_t after,
                                    const struct list_key *key, const struct store_page_limits *limits,
                                    struct store_tasks *page)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_SET_TASKS);
    size_t before_bytes = store_memory_bytes(page->memory);
    int result;
    bind_int(rows, 1, set_seq);
    bind_int(rows, 2, after);
    for (; (result = sqlite3_step(rows)) == SQLITE_ROW; page->scanned++) {
        page->bytes = store_memory_bytes(page->memory) - before_bytes;
        if (page->count == limits->rows || page->scanned == limits->scanned || page->bytes > limits->bytes) {
            cursor_write(key, after, page->next);
            break;
        }
        after = sqlite3_column_int64(rows, SET_TASK_AT_line);
        if (!split.data || text_same(column_view(rows, SET_TASK_AT_split), split))
            read_task(rows, page);
    }
    return reader_status(reader, result, page->memory);
}

enum store_status store_list_tasks(struct store_reader *reader, struct text set, struct text split, struct text cursor,
                                   const struct store_page_limits *limits, struct store_tasks *ret_tasks)
{
    struct list_key key = key_of("tasks", (const struct text[]){set, split}, 2);
    int64_t after;
    int64_t set_seq = 0;
    *ret_tasks = (struct store_tasks){0};
    if (!cursor_fits(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    enum store_status status = begin_tasks(reader, limits->rows, ret_tasks);
    if (status != STORE_OK)
        return status;
    int result = reader_find_seq(reader, SQL_READ_TASKSET, set, &set_seq);
    status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW)
        status = scan_tasks(reader, set_seq, split, after, &key, limits, ret_tasks);
    reader_end(reader);
    return status;
}

void store_tasks_finish(struct store_tasks *tasks)
{
    store_memory_destroy(TAKE_PTR(tasks->memory));
}

/* ---- tasks of other splits that were trained on -------------------------------------------------------------- */

enum store_status store_visit_heldout_trained(struct store_reader *reader, struct text run,
                                              bool (*take)(void *arg, const struct store_heldout_task *task), void *arg)
{
    int64_t run_seq = 0;
    bool go_on = true;
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW) {
        sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_HELDOUT_TRAINED);
        bind_int(rows, 1, run_seq);
        while (go_on && (result = sqlite3_step(rows)) == SQLITE_ROW) {
            const struct store_heldout_task task = {column_view(rows, 0), sqlite3_column_int64(rows, 1),
                                                    sqlite3_column_int64(rows, 2)};
            go_on = take(arg, &task);
        }
        status = result == SQLITE_DONE || result == SQLITE_ROW ? STORE_OK : STORE_UNAVAILABLE;
    }
    reader_end(reader);
    return status;
}
