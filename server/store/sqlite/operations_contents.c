#include "server/store/sqlite/operations.h"

static int find(struct store *store, const struct store_content *content, int64_t *ret_seq)
{
    sqlite3_stmt *row = database_statement(&store->writer, SQL_FIND_CONTENT);
    bind_blob(row, 1, content->sha256, SHA256_BYTES);
    int result = database_first(row);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return result;
}

int operation_enter_content(struct store *store, const struct store_content *content, int64_t *ret_seq)
{
    *ret_seq = -1;
    if (!content)
        return SQLITE_OK;
    int result = find(store, content, ret_seq);
    if (result != SQLITE_DONE)
        return result == SQLITE_ROW ? SQLITE_OK : result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_CONTENT);
    bind_blob(insert, 1, content->sha256, SHA256_BYTES);
    bind_text(insert, 2, text_of(store_codec_names[content->codec]));
    bind_int(insert, 3, (int64_t)content->plain_bytes);
    bind_blob(insert, 4, content->stored.data, content->stored.length_bytes);
    result = database_run(insert);
    *ret_seq = sqlite3_last_insert_rowid(store->writer.handle);
    return result;
}
