#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deletion.h"
#include "server/store/sqlite/operations.h"

#include <stdio.h>

/* A row of FIND_DELETABLE_RUN. */
struct found_run {
    int64_t seq;
    int64_t deletion; /* -1: none */
    int64_t requested_at_us;
    int64_t running;
    int64_t open_updates;
    int64_t open_leases;
};

static int find_run(struct store *store, struct text name, struct found_run *ret_run)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_DELETABLE_RUN);
    bind_text(find, 1, name);
    bind_int(find, 2, clock_utc_us());
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    *ret_run =
        (struct found_run){sqlite3_column_int64(find, 0), column_int_or(find, 1, -1),    column_int_or(find, 2, -1),
                           sqlite3_column_int64(find, 3), sqlite3_column_int64(find, 4), sqlite3_column_int64(find, 5)};
    sqlite3_reset(find);
    return SQLITE_ROW;
}

static int insert_deletion(struct store *store, const struct store_delete_run *from)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_DELETION);
    bind_text(insert, 1, from->run);
    bind_text(insert, 2, text_of(store_deletion_reason_names[STORE_DELETION_REQUEST]));
    bind_text(insert, 3, from->said_by);
    bind_text(insert, 4, from->client);
    bind_text(insert, 5, from->request_id);
    bind_int(insert, 6, from->requested_at_us);
    bind_int(insert, 7, from->size.batches);
    bind_int(insert, 8, from->size.groups);
    bind_int(insert, 9, from->size.rollouts);
    return database_run(insert);
}

static int mark_run(struct store *store, int64_t run_seq, int64_t deletion)
{
    sqlite3_stmt *mark = database_statement(&store->writer, SQL_MARK_RUN_DELETED);
    bind_int(mark, 1, run_seq);
    bind_int(mark, 2, deletion);
    return database_run(mark);
}

static enum store_status decline_busy(struct store_op *op, const struct found_run *run)
{
    snprintf(op->message, sizeof(op->message),
             "%lld batches of the run are running, %lld weight updates and %lld leases are open: end them first",
             (long long)run->running, (long long)run->open_updates, (long long)run->open_leases);
    return STORE_STATE_CONFLICT;
}

enum store_status operation_delete_run(struct store *store, struct store_op *op)
{
    struct store_delete_run *order = &op->delete_run;
    struct found_run run = {0};
    int result = find_run(store, order->run, &run);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? operation_decline(op, STORE_NOT_FOUND, "no such run")
                                     : operation_fail(store, op, result);
    if (run.deletion >= 0) {
        order->deletion = run.deletion;
        order->requested_at_us = run.requested_at_us;
        return operation_decline(op, STORE_EXISTS, "the run is being deleted");
    }
    if (run.running || run.open_updates || run.open_leases)
        return decline_busy(op, &run);
    order->requested_at_us = clock_utc_us();
    result = insert_deletion(store, order);
    order->deletion = sqlite3_last_insert_rowid(store->writer.handle);
    if (result == SQLITE_OK)
        result = mark_run(store, run.seq, order->deletion);
    deletion_wake(store->deletion);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
