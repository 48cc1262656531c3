#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

#include <inttypes.h>

static struct list_key sums_key(struct text run, int64_t optimizer_step, int64_t ppo_epoch)
{
    uint8_t sha256[SHA256_BYTES];
    struct list_key key;
    _cleanup_buffer_ struct buffer bytes = {0};
    buffer_init(&bytes, 1024);
    buffer_append_format(&bytes, "objective,%" PRId64 ",%" PRId64 ",", optimizer_step, ppo_epoch);
    buffer_append(&bytes, run.data, run.length_bytes);
    sha256_of(bytes.data, bytes.length_bytes, sha256);
    memcpy(key.digest, sha256, sizeof(key.digest));
    return key;
}

/* Returns its seq. */
static int64_t read_sum(sqlite3_stmt *row, struct store_memory *memory, struct store_objective_sum *into)
{
    int place = 1;
    *into = (struct store_objective_sum){0};
    COLUMNS_READ(SUM_COLUMNS)
    return sqlite3_column_int64(row, 0);
}

static enum store_status read_page(struct store_reader *reader, sqlite3_stmt *rows, const struct list_key *key,
                                   size_t limit, struct store_objective_sums *page)
{
    int64_t after = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (page->count == limit) {
            cursor_write(key, after, page->next);
            break;
        }
        after = read_sum(rows, page->memory, &page->sums[page->count++]);
    }
    return reader_status(reader, result, page->memory);
}

enum store_status store_list_objective_sums(struct store_reader *reader, struct text run, int64_t optimizer_step,
                                            int64_t ppo_epoch, struct text cursor, size_t limit,
                                            struct store_objective_sums *ret_sums)
{
    *ret_sums = (struct store_objective_sums){0};
    struct list_key key = sums_key(run, optimizer_step, ppo_epoch);
    int64_t after = 0;
    int64_t run_seq;
    if (cursor.data && !cursor_read(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_sums->memory = store_memory_create();
    ret_sums->sums = store_memory_take(ret_sums->memory, limit, sizeof(*ret_sums->sums));
    if (!ret_sums->sums || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW) {
        sqlite3_stmt *rows =
            database_statement(&reader->database, optimizer_step < 0 ? SQL_LIST_RUN_SUMS : SQL_LIST_STEP_SUMS);
        const int64_t numbers[] = {run_seq, after, optimizer_step, ppo_epoch, (int64_t)limit + 1};
        for (int i = 0; i < (int)ARRAY_LENGTH(numbers); i++)
            bind_int(rows, i + 1, numbers[i]);
        status = read_page(reader, rows, &key, limit, ret_sums);
    }
    reader_end(reader);
    return status;
}

void store_objective_sums_finish(struct store_objective_sums *sums)
{
    store_memory_destroy(TAKE_PTR(sums->memory));
}

static enum store_status read_gap(struct store_reader *reader, struct text run, struct store_engine_gap *ret_gap)
{
    int64_t run_seq;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_WIDEST_GAP);
    bind_int(row, 1, run_seq);
    result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct text engine = column_view(row, 0);
    size_t length = engine.length_bytes < sizeof(ret_gap->engine) ? engine.length_bytes : sizeof(ret_gap->engine) - 1;
    *ret_gap = (struct store_engine_gap){.revision = column_int_or(row, 1, -1), .gap = column_double(row, 2)};
    memcpy(ret_gap->engine, engine.data, length);
    return STORE_OK;
}

enum store_status store_read_widest_gap(struct store_reader *reader, struct text run, struct store_engine_gap *ret_gap)
{
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_gap(reader, run, ret_gap);
    reader_end(reader);
    return status;
}
