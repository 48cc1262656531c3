/* Shared by operations on a run: its row, its incarnation, its revision. */
#include "server/store/sqlite/operations.h"

int operation_find_run(struct store *store, struct text name, struct run_row *ret_run)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_RUN);
    bind_text(find, 1, name);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    *ret_run =
        (struct run_row){sqlite3_column_int64(find, 0), sqlite3_column_int64(find, 1), column_int_or(find, 2, -1)};
    bool deleted = column_int_or(find, 3, -1) >= 0;
    sqlite3_reset(find);
    return deleted ? RESULT_RUN_IS_DELETED : SQLITE_ROW;
}

int operation_insert_incarnation(struct store *store, const struct run_row *run, int64_t now_us, int64_t rewind_to_step)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_INCARNATION);
    bind_int(insert, 1, run->seq);
    bind_int(insert, 2, run->incarnation);
    bind_int(insert, 3, now_us);
    bind_int_or_null(insert, 4, rewind_to_step);
    return database_run(insert);
}

int operation_enter_run(struct store *store, struct text name, int64_t now_us, struct run_row *ret_run)
{
    int result = operation_find_run(store, name, ret_run);
    if (result != SQLITE_DONE)
        return result == SQLITE_ROW ? SQLITE_OK : result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_RUN);
    bind_text(insert, 1, name);
    bind_int(insert, 2, now_us);
    result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    *ret_run = (struct run_row){sqlite3_last_insert_rowid(store->writer.handle), 0, -1};
    return operation_insert_incarnation(store, ret_run, now_us, -1);
}

int operation_set_revision(struct store *store, struct run_row *run, int64_t revision, int64_t now_us)
{
    run->policy_revision = revision;
    sqlite3_stmt *update = database_statement(&store->writer, SQL_SET_RUN_POLICY);
    bind_int(update, 1, run->seq);
    bind_int(update, 2, run->incarnation);
    bind_int(update, 3, revision);
    int result = database_run(update);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_REVISION);
    bind_int(insert, 1, run->seq);
    bind_int(insert, 2, run->incarnation);
    bind_int(insert, 3, revision);
    bind_int(insert, 4, now_us);
    return database_run(insert);
}
