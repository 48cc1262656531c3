/* The size of a run, and the list of deletions. */
#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

enum { PAGE_ROWS = 2000 };
/* The bytes of a row in the file beside its texts and arrays: numbers, keys, indexes, its share of a page. */
enum { BATCH_BYTES = 500, GROUP_BYTES = 150, ROLLOUT_BYTES = 200 };

static const struct list_key deletions_key = {"deleted"};

/* ---- a run's size ------------------------------------------------------------------------------------------------ */

struct walk {
    struct store_reader *reader;
    const atomic_bool *abandoned;
    int64_t run_seq;
    int64_t count; /* sum of the rows' counts */
    int64_t bytes;
};

/* Rows of (seq, count, bytes), a page at a time. */
static enum store_status walk_rows(struct walk *walk, enum statement which, int64_t row_bytes)
{
    int64_t after = 0;
    int rows = PAGE_ROWS;
    walk->count = 0;
    while (rows == PAGE_ROWS) {
        sqlite3_stmt *page = database_statement(&walk->reader->database, which);
        bind_int(page, 1, walk->run_seq);
        bind_int(page, 2, after);
        bind_int(page, 3, PAGE_ROWS);
        int result;
        for (rows = 0; (result = sqlite3_step(page)) == SQLITE_ROW; rows++) {
            after = sqlite3_column_int64(page, 0);
            walk->count += sqlite3_column_int64(page, 1);
            walk->bytes += row_bytes + (sqlite3_column_count(page) > 2 ? sqlite3_column_int64(page, 2) : 0);
        }
        reader_end(walk->reader);
        if (result != SQLITE_DONE || atomic_load(walk->abandoned))
            return STORE_UNAVAILABLE;
    }
    return STORE_OK;
}

static enum store_status find_run(struct store_reader *reader, struct text run, int64_t *ret_seq,
                                  struct store_run_size *size)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_MEASURE_RUN);
    bind_text(row, 1, run);
    int result = database_first(row);
    if (result == SQLITE_ROW) {
        *ret_seq = sqlite3_column_int64(row, 0);
        size->batches = sqlite3_column_int64(row, 1);
        size->rollouts = sqlite3_column_int64(row, 2);
    }
    reader_end(reader);
    return result == SQLITE_ROW ? STORE_OK : result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
}

enum store_status store_measure_run(struct store_reader *reader, struct text run, bool with_bytes,
                                    const atomic_bool *abandoned, struct store_run_size *ret_size)
{
    struct walk walk = {.reader = reader, .abandoned = abandoned};
    *ret_size = (struct store_run_size){.bytes = -1};
    enum store_status status = find_run(reader, run, &walk.run_seq, ret_size);
    if (status == STORE_OK)
        status = walk_rows(&walk, with_bytes ? SQL_MEASURE_BATCH_BYTES : SQL_MEASURE_BATCHES, BATCH_BYTES);
    ret_size->groups = walk.count;
    if (status != STORE_OK || !with_bytes)
        return status;
    walk.bytes += walk.count * GROUP_BYTES;
    status = walk_rows(&walk, SQL_MEASURE_ROLLOUT_BYTES, ROLLOUT_BYTES);
    ret_size->bytes = walk.bytes;
    return status;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void read_deletion(sqlite3_stmt *row, struct store_memory *memory, struct store_deletion *into)
{
    int place = 1;
    *into = (struct store_deletion){0};
    COLUMNS_READ(DELETION_COLUMNS)
}

bool store_deletions_cursor_fits(struct text cursor)
{
    int64_t before;
    return !cursor.data || cursor_read(&deletions_key, cursor, &before);
}

enum store_status store_list_deletions(struct store_reader *reader, struct text cursor, size_t limit,
                                       struct store_deletions *ret_deletions)
{
    *ret_deletions = (struct store_deletions){0};
    int64_t before = INT64_MAX;
    if (cursor.data && !cursor_read(&deletions_key, cursor, &before))
        return STORE_INVALID_CURSOR;
    struct store_memory *memory = ret_deletions->memory = store_memory_create();
    ret_deletions->deletions = store_memory_take(memory, limit, sizeof(*ret_deletions->deletions));
    if (!ret_deletions->deletions)
        return STORE_UNAVAILABLE;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_DELETIONS);
    bind_int(rows, 1, before);
    bind_int(rows, 2, (int64_t)limit + 1);
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (ret_deletions->count == limit) {
            cursor_write(&deletions_key, before, ret_deletions->next);
            break;
        }
        before = sqlite3_column_int64(rows, 0);
        read_deletion(rows, memory, &ret_deletions->deletions[ret_deletions->count++]);
    }
    reader_end(reader);
    return reader_status(reader, result, memory);
}

void store_deletions_finish(struct store_deletions *deletions)
{
    store_memory_destroy(TAKE_PTR(deletions->memory));
}
