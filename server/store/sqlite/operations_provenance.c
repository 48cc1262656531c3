/* Provenance of rollouts: each distinct combination is written once. */
#include "server/base/clock.h"
#include "server/store/sqlite/operations.h"

static int find_settings(struct store *store, const struct store_settings *settings, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_SETTINGS);
    bind_blob(find, 1, settings->sha256, SHA256_BYTES);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

int operation_enter_settings(struct store *store, const struct store_settings *settings, int64_t *ret_seq)
{
    *ret_seq = -1;
    if (!settings)
        return SQLITE_OK;
    int result = find_settings(store, settings, ret_seq);
    if (result != SQLITE_DONE)
        return result == SQLITE_ROW ? SQLITE_OK : result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_SETTINGS);
    bind_blob(insert, 1, settings->sha256, SHA256_BYTES);
    bind_text(insert, 2, settings->json);
    bind_int(insert, 3, clock_utc_us());
    result = database_run(insert);
    *ret_seq = sqlite3_last_insert_rowid(store->writer.handle);
    return result;
}

static void bind_provenance(sqlite3_stmt *statement, const struct store_rollout *rollout, int64_t settings_seq)
{
    bind_text(statement, 1, rollout->engine_model);
    bind_text(statement, 2, rollout->engine_version);
    bind_text(statement, 3, rollout->tokenizer_sha256);
    bind_text(statement, 4, rollout->rolloutd_version);
    bind_int_or_null(statement, 5, settings_seq);
}

int operation_enter_provenance(struct store *store, const struct store_rollout *rollout,
                               const struct store_settings *settings, int64_t *ret_seq)
{
    int64_t settings_seq;
    int result = operation_enter_settings(store, settings, &settings_seq);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_PROVENANCE);
    bind_provenance(find, rollout, settings_seq);
    result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    if (result != SQLITE_DONE)
        return result == SQLITE_ROW ? SQLITE_OK : result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_PROVENANCE);
    bind_provenance(insert, rollout, settings_seq);
    result = database_run(insert);
    *ret_seq = sqlite3_last_insert_rowid(store->writer.handle);
    return result;
}

int operation_note_provenance(struct store *store, int64_t batch_seq, struct text engine, int64_t provenance_seq)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_NOTE_PROVENANCE);
    bind_int(insert, 1, batch_seq);
    bind_text(insert, 2, engine.data ? engine : TEXT_LITERAL(""));
    bind_int(insert, 3, provenance_seq);
    return database_run(insert);
}
