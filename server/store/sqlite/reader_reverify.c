/* Reverifications as they are read: one with its flips, lists, and those that run. */
#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

static void read_row(sqlite3_stmt *row, struct store_memory *memory, struct store_reverification *into)
{
    int place = 1;
    *into = (struct store_reverification){.seq = sqlite3_column_int64(row, 0)};
    COLUMNS_READ(REVERIFICATION_COLUMNS)
}

/* ---- flips ------------------------------------------------------------------------------------------------------- */

static struct list_key flips_key(struct text id)
{
    _cleanup_buffer_ struct buffer key = {0};
    key_init(&key, "flips");
    key_text(&key, id);
    return key_finish(&key);
}

static void read_flip(sqlite3_stmt *row, struct store_memory *memory, struct store_flip *into)
{
    char id[ID_BYTES];
    int place = 4;
    *into = (struct store_flip){.seq = sqlite3_column_int64(row, 0)};
    column_id(row, 1, id);
    id_of_group(id, sqlite3_column_int64(row, 2), id);
    id_of_rollout(id, sqlite3_column_int64(row, 3), into->rollout_id);
    COLUMNS_READ(FLIP_COLUMNS)
}

static int read_flips(struct store_reader *reader, const struct list_key *key, int64_t after, size_t limit,
                      struct store_reverifications *found)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_FLIPS);
    int result;
    found->flips = store_memory_take(found->memory, limit, sizeof(*found->flips));
    if (!found->flips)
        return SQLITE_NOMEM;
    bind_int(rows, 1, found->items[0].seq);
    bind_int(rows, 2, after);
    bind_int(rows, 3, (int64_t)limit + 1);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (found->flip_count == limit) {
            cursor_write(key, after, found->next);
            break;
        }
        read_flip(rows, found->memory, &found->flips[found->flip_count]);
        after = found->flips[found->flip_count++].seq;
    }
    return result;
}

static enum store_status read_one(struct store_reader *reader, struct text id, int64_t after, size_t limit,
                                  struct store_reverifications *found)
{
    struct list_key key = flips_key(id);
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_REVERIFICATION);
    bind_text(row, 1, id);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    found->items = store_memory_take(found->memory, 1, sizeof(*found->items));
    if (!found->items)
        return STORE_UNAVAILABLE;
    read_row(row, found->memory, found->items);
    found->count = 1;
    return reader_status(reader, read_flips(reader, &key, after, limit, found), found->memory);
}

enum store_status store_read_reverification(struct store_reader *reader, struct text id, struct text cursor,
                                            size_t limit, struct store_reverifications *ret_found)
{
    struct list_key key = flips_key(id);
    int64_t after = 0;
    *ret_found = (struct store_reverifications){0};
    if (cursor.data && !cursor_read(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_found->memory = store_memory_create();
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_one(reader, id, after, limit, ret_found);
    reader_end(reader);
    return status;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static struct list_key list_key(struct text run)
{
    _cleanup_buffer_ struct buffer key = {0};
    key_init(&key, "reverifications");
    key_text(&key, run);
    return key_finish(&key);
}

static int read_page(sqlite3_stmt *rows, const struct list_key *key, size_t limit, struct store_reverifications *page)
{
    int64_t after = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (page->count == limit) {
            cursor_write(key, after, page->next);
            break;
        }
        read_row(rows, page->memory, &page->items[page->count]);
        after = page->items[page->count++].seq;
    }
    return result;
}

static enum store_status list(struct store_reader *reader, struct text run, int64_t after, size_t limit,
                              struct store_reverifications *page)
{
    struct list_key key = list_key(run);
    int64_t run_seq = -1;
    int result = run.data ? reader_find_seq(reader, SQL_RUN_SEQ, run, &run_seq) : SQLITE_ROW;
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    sqlite3_stmt *rows =
        database_statement(&reader->database, run.data ? SQL_LIST_RUN_REVERIFICATIONS : SQL_LIST_REVERIFICATIONS);
    bind_int(rows, 1, after);
    bind_int(rows, 2, (int64_t)limit + 1);
    if (run.data)
        bind_int(rows, 3, run_seq);
    return reader_status(reader, read_page(rows, &key, limit, page), page->memory);
}

enum store_status store_list_reverifications(struct store_reader *reader, struct text run, struct text cursor,
                                             size_t limit, struct store_reverifications *ret_found)
{
    struct list_key key = list_key(run);
    int64_t after = INT64_MAX;
    *ret_found = (struct store_reverifications){0};
    if (cursor.data && !cursor_read(&key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_found->memory = store_memory_create();
    ret_found->items = store_memory_take(ret_found->memory, limit, sizeof(*ret_found->items));
    if (!ret_found->items || reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = list(reader, run, after, limit, ret_found);
    reader_end(reader);
    return status;
}

enum store_status store_running_reverifications(struct store_reader *reader, struct store_reverifications *ret_found)
{
    size_t capacity = 0;
    int result;
    *ret_found = (struct store_reverifications){.memory = store_memory_create()};
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_RUNNING_REVERIFICATIONS);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_reverification *items =
            store_memory_grow(ret_found->memory, ret_found->items, ret_found->count, &capacity, sizeof(*items));
        if (!items)
            break;
        ret_found->items = items;
        read_row(rows, ret_found->memory, &items[ret_found->count++]);
    }
    reader_end(reader);
    return reader_status(reader, result, ret_found->memory);
}

void store_reverifications_finish(struct store_reverifications *found)
{
    store_memory_destroy(TAKE_PTR(found->memory));
}
