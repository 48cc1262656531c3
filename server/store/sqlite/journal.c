/* The trainer's own numbers of a run, and notes on it: written and listed. */
#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/reader.h"

#include <inttypes.h>

/* ---- written ----------------------------------------------------------------------------------------------- */

static enum store_status find_run(struct store *store, struct store_op *op, struct text name, struct run_row *ret_run)
{
    int result = operation_find_run(store, name, ret_run);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such run");
    return result == SQLITE_ROW ? STORE_OK : operation_fail(store, op, result);
}

/* SQLITE_ROW: these numbers replace others. */
static int find_metrics(struct store *store, const struct run_row *run, int64_t optimizer_step)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_METRICS);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, optimizer_step);
    bind_int(find, 3, run->incarnation);
    int result = database_first(find);
    sqlite3_reset(find);
    return result;
}

enum store_status operation_record_metrics(struct store *store, struct store_op *op)
{
    struct store_record_metrics *metrics = &op->record_metrics;
    struct run_row run = {0};
    enum store_status status = find_run(store, op, metrics->run, &run);
    if (status != STORE_OK)
        return status;
    int result = find_metrics(store, &run, metrics->optimizer_step);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return operation_fail(store, op, result);
    metrics->replaced = result == SQLITE_ROW;
    metrics->incarnation = run.incarnation;
    metrics->recorded_at_us = clock_utc_us();
    const struct store_record_metrics *from = metrics;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_RECORD_METRICS);
    int place = 2;
    bind_int(insert, 1, run.seq);
    COLUMNS_WRITTEN(METRIC_COLUMNS)
    result = database_run(insert);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

static bool is_same_text(sqlite3_stmt *row, int place, struct text text)
{
    struct text view = column_view(row, place);
    if (!view.data || !text.data)
        return !view.data && !text.data;
    return view.length_bytes == text.length_bytes && memcmp(view.data, text.data, text.length_bytes) == 0;
}

/* SQLITE_ROW: the newest note is this one. */
static int find_same_note(struct store *store, int64_t run_seq, struct store_note *note)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_NEWEST_NOTE);
    bind_int(find, 1, run_seq);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    const struct text texts[] = {note->prediction, note->result, note->explanation, note->limitation};
    bool same = true;
    for (int i = 0; i < (int)ARRAY_LENGTH(texts); i++)
        same = same && is_same_text(find, i + 1, texts[i]);
    if (same)
        note->at_us = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return same ? SQLITE_ROW : SQLITE_DONE;
}

enum store_status operation_add_note(struct store *store, struct store_op *op)
{
    struct store_note *note = &op->add_note.note;
    struct run_row run = {0};
    enum store_status status = find_run(store, op, op->add_note.run, &run);
    if (status != STORE_OK)
        return status;
    int result = find_same_note(store, run.seq, note);
    if (result == SQLITE_ROW)
        return operation_decline(op, STORE_EXISTS, "the newest note says the same");
    if (result != SQLITE_DONE)
        return operation_fail(store, op, result);
    note->at_us = clock_utc_us();
    const struct store_note *from = note;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_NOTE);
    int place = 2;
    bind_int(insert, 1, run.seq);
    COLUMNS_WRITTEN(NOTE_COLUMNS)
    result = database_run(insert);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- listed ------------------------------------------------------------------------------------------------ */

static struct list_key key_of(const char *what, int64_t number, struct text run)
{
    uint8_t sha256[SHA256_BYTES];
    struct list_key key;
    _cleanup_buffer_ struct buffer bytes = {0};
    buffer_init(&bytes, 1024);
    buffer_append_format(&bytes, "%s,%" PRId64 ",", what, number);
    buffer_append(&bytes, run.data, run.length_bytes);
    sha256_of(bytes.data, bytes.length_bytes, sha256);
    memcpy(key.digest, sha256, sizeof(key.digest));
    return key;
}

/* A note may have 256 KiB, and six bytes of JSON for each of them: a page ends behind the row that reaches this. */
#define PAGE_BYTES ((size_t)4 * 1024 * 1024)

/* Rows of one run, in order of their seq. */
struct row_list {
    struct list_key key;
    enum statement which; /* ?1 run_seq, ?2 after, ?3 limit, ?4 filter */
    int64_t filter;       /* -1: the statement has none */
    size_t limit;
    struct store_memory *memory;
    void *rows; /* [limit] */
    void (*read)(sqlite3_stmt *row, struct store_memory *memory, void *rows, size_t index);
    /* out */
    size_t count;
    char *next; /* [CURSOR_BYTES] */
};

static enum store_status read_page(struct store_reader *reader, struct row_list *list, int64_t run_seq, int64_t after)
{
    sqlite3_stmt *rows = database_statement(&reader->database, list->which);
    int result;
    bind_int(rows, 1, run_seq);
    bind_int(rows, 2, after);
    bind_int(rows, 3, (int64_t)list->limit + 1);
    if (list->filter >= 0)
        bind_int(rows, 4, list->filter);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (list->count == list->limit || store_memory_bytes(list->memory) >= PAGE_BYTES) {
            cursor_write(&list->key, after, list->next);
            break;
        }
        list->read(rows, list->memory, list->rows, list->count++);
        after = sqlite3_column_int64(rows, 0);
    }
    return reader_status(reader, result, list->memory);
}

static enum store_status list_rows(struct store_reader *reader, struct text run, struct text cursor,
                                   struct row_list *list)
{
    int64_t after = 0;
    int64_t run_seq;
    if (cursor.data && !cursor_read(&list->key, cursor, &after))
        return STORE_INVALID_CURSOR;
    if (!list->rows || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW)
        status = read_page(reader, list, run_seq, after);
    reader_end(reader);
    return status;
}

static void read_metric(sqlite3_stmt *row, struct store_memory *memory, void *rows, size_t index)
{
    struct store_trainer_metric *into = (struct store_trainer_metric *)rows + index;
    int place = 1;
    COLUMNS_READ(METRIC_COLUMNS)
}

enum store_status store_list_metrics(struct store_reader *reader, struct text run, int64_t optimizer_step,
                                     struct text cursor, size_t limit, struct store_trainer_metrics *ret_metrics)
{
    *ret_metrics = (struct store_trainer_metrics){.memory = store_memory_create()};
    ret_metrics->metrics = store_memory_take(ret_metrics->memory, limit, sizeof(*ret_metrics->metrics));
    struct row_list list = {.key = key_of("metrics", optimizer_step, run),
                            .which = optimizer_step < 0 ? SQL_LIST_METRICS : SQL_LIST_STEP_METRICS,
                            .filter = optimizer_step,
                            .limit = limit,
                            .memory = ret_metrics->memory,
                            .rows = ret_metrics->metrics,
                            .read = read_metric,
                            .next = ret_metrics->next};
    enum store_status status = list_rows(reader, run, cursor, &list);
    ret_metrics->count = list.count;
    return status;
}

void store_trainer_metrics_finish(struct store_trainer_metrics *metrics)
{
    store_memory_destroy(TAKE_PTR(metrics->memory));
}

static void read_note(sqlite3_stmt *row, struct store_memory *memory, void *rows, size_t index)
{
    struct store_note *into = (struct store_note *)rows + index;
    int place = 1;
    COLUMNS_READ(NOTE_COLUMNS)
}

enum store_status store_list_notes(struct store_reader *reader, struct text run, struct text cursor, size_t limit,
                                   struct store_notes *ret_notes)
{
    *ret_notes = (struct store_notes){.memory = store_memory_create()};
    ret_notes->notes = store_memory_take(ret_notes->memory, limit, sizeof(*ret_notes->notes));
    struct row_list list = {.key = key_of("notes", 0, run),
                            .which = SQL_LIST_NOTES,
                            .filter = -1,
                            .limit = limit,
                            .memory = ret_notes->memory,
                            .rows = ret_notes->notes,
                            .read = read_note,
                            .next = ret_notes->next};
    enum store_status status = list_rows(reader, run, cursor, &list);
    ret_notes->count = list.count;
    return status;
}

void store_notes_finish(struct store_notes *notes)
{
    store_memory_destroy(TAKE_PTR(notes->memory));
}
