#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/migrate.h"
#include "server/store/sqlite/store_private.h"

#include <stdio.h>

struct store_reader *store_reader_create(struct store *store, char message[STORE_MESSAGE_BYTES])
{
    struct store_reader *reader = xcalloc(1, sizeof(*reader));
    buffer_init(&reader->unpacked, SIZE_MAX);
    reader->owner = xstrdup(store->owner);
    message[0] = '\0';
    int result =
        database_open(&reader->database, store->path, DATABASE_READER, false, store->cache_bytes / STORE_READER_SHARE);
    if (result == SQLITE_OK)
        result = database_prepare(&reader->database, false, store_is_migrating(store));
    if (result == SQLITE_OK)
        return reader;
    snprintf(message, STORE_MESSAGE_BYTES, "the database %s cannot be read: %s", store->path,
             sqlite3_errmsg(reader->database.handle));
    store_reader_destroy(reader);
    return NULL;
}

struct store_reader *store_reader_open(const char *path, char message[STORE_MESSAGE_BYTES])
{
    struct store_reader *reader = xcalloc(1, sizeof(*reader));
    buffer_init(&reader->unpacked, SIZE_MAX);
    int64_t version = 0;
    int result = database_open_to_verify(&reader->database, path);
    if (result == SQLITE_OK)
        result = database_number(&reader->database, "PRAGMA user_version", &version);
    if (result == SQLITE_OK && version == migrate_latest())
        result = database_prepare(&reader->database, false, true);
    if (result == SQLITE_OK && version == migrate_latest())
        return reader;
    if (result == SQLITE_OK)
        snprintf(message, STORE_MESSAGE_BYTES, "the database %s is of schema version %lld, not %lld", path,
                 (long long)version, (long long)migrate_latest());
    else
        snprintf(message, STORE_MESSAGE_BYTES, "the database %s cannot be read: %s", path,
                 sqlite3_errmsg(reader->database.handle));
    store_reader_destroy(reader);
    return NULL;
}

void store_reader_destroy(struct store_reader *reader)
{
    if (!reader)
        return;
    database_close(&reader->database);
    buffer_finish(&reader->unpacked);
    free(reader->owner);
    free(reader);
}

int reader_begin(struct store_reader *reader)
{
    return database_run_plain(&reader->database, SQL_BEGIN_READ);
}

void reader_end(struct store_reader *reader)
{
    reader->request_batch_seq = 0;
    reader->request = TEXT_NONE;
    buffer_finish(&reader->unpacked); /* which may have been long */
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_reset(reader->database.statements[i]);
    if (!sqlite3_get_autocommit(reader->database.handle))
        database_run_plain(&reader->database, SQL_COMMIT_READ);
}

enum store_status reader_status(struct store_reader *reader, int result, const struct store_memory *memory)
{
    if (database_status(&reader->database, result) != STORE_OK || store_memory_failed(memory))
        return STORE_UNAVAILABLE;
    return STORE_OK;
}

int reader_find_seq(struct store_reader *reader, enum statement which, struct text name, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&reader->database, which);
    bind_text(find, 1, name);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

int reader_find_group(struct store_reader *reader, struct text group_id, int64_t *ret_seq, int64_t *ret_n)
{
    char batch_id[ID_BYTES];
    int64_t index = 0;
    if (!id_split_group(group_id, batch_id, &index))
        return SQLITE_DONE;
    sqlite3_stmt *find = database_statement(&reader->database, SQL_GROUP_SEQ);
    bind_text(find, 1, text_of(batch_id));
    bind_int(find, 2, index);
    int result = database_first(find);
    if (result == SQLITE_ROW) {
        *ret_seq = sqlite3_column_int64(find, 0);
        *ret_n = sqlite3_column_int64(find, 1);
    }
    sqlite3_reset(find);
    return result;
}

/* ---- one batch
 * -------------------------------------------------------------------------------------------------------------- */

int64_t read_batch_row(sqlite3_stmt *row, struct store_memory *memory, struct store_batch *ret_batch)
{
    struct store_batch *into = ret_batch;
    int place = 1;
    *into = (struct store_batch){0};
    COLUMNS_READ(BATCH_COLUMNS)
    return sqlite3_column_int64(row, 0);
}

static int read_batch_contents(struct store_reader *reader, int64_t seq, struct store_batch *into)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_BATCH_CONTENTS);
    bind_int(row, 1, seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_CORRUPT : result; /* it is written with the batch */
    struct store_memory *memory = into->memory;
    int place = 1;
    COLUMNS_READ(BATCH_CONTENT_COLUMNS)
    return SQLITE_OK;
}

static enum store_status read_batch(struct store_reader *reader, struct text batch_id, struct store_batch *ret_batch)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_BATCH);
    bind_text(row, 1, batch_id);
    int result = database_first(row);
    if (result == SQLITE_DONE)
        return STORE_NOT_FOUND;
    if (result != SQLITE_ROW)
        return STORE_UNAVAILABLE;
    struct store_memory *memory = store_memory_create();
    int64_t seq = read_batch_row(row, memory, ret_batch);
    ret_batch->memory = memory;
    result = read_batch_contents(reader, seq, ret_batch);
    return reader_status(reader, result, memory);
}

enum store_status store_read_batch(struct store_reader *reader, struct text batch_id, struct store_batch *ret_batch)
{
    *ret_batch = (struct store_batch){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_batch(reader, batch_id, ret_batch);
    reader_end(reader);
    return status;
}

void store_batch_finish(struct store_batch *batch)
{
    store_memory_destroy(TAKE_PTR(batch->memory));
}

enum store_status store_find_idempotency(struct store_reader *reader, struct text run, enum store_route route,
                                         struct text key, char ret_batch_id[ID_BYTES],
                                         uint8_t ret_request_sha256[SHA256_BYTES])
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_KEY);
    bind_text(row, 1, run);
    bind_text(row, 2, text_of(store_route_names[route]));
    bind_text(row, 3, key);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    column_id(row, 0, ret_batch_id);
    column_read_sha256(row, 1, NULL, (uint8_t(*)[SHA256_BYTES])ret_request_sha256);
    reader_end(reader);
    return STORE_OK;
}
