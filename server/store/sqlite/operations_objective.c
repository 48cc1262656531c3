/* Storing of an objective call: the call itself, and its sums by the revision and the engine of the samples. */
#include "server/store/sqlite/operations.h"

#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"

static int record_call(struct store *store, const struct store_record_objective *call, const struct run_row *run,
                       int64_t now_us)
{
    sqlite3_stmt *record = database_statement(&store->writer, SQL_RECORD_OBJECTIVE);
    bind_int(record, 1, run->seq);
    bind_int(record, 2, run->incarnation);
    bind_int(record, 3, call->optimizer_step);
    bind_int(record, 4, call->ppo_epoch);
    bind_int(record, 5, call->part);
    bind_int(record, 6, now_us);
    bind_text(record, 7, call->objective);
    bind_text(record, 8, call->sums);
    return database_run(record);
}

static int forget_slices(struct store *store, const struct store_record_objective *call, const struct run_row *run)
{
    sqlite3_stmt *forget = database_statement(&store->writer, SQL_FORGET_OBJECTIVE_SUMS);
    bind_int(forget, 1, run->seq);
    bind_int(forget, 2, run->incarnation);
    bind_int(forget, 3, call->optimizer_step);
    bind_int(forget, 4, call->ppo_epoch);
    bind_int(forget, 5, call->part);
    return database_run(forget);
}

static int record_slice(struct store *store, const struct store_record_objective *call, const struct run_row *run,
                        int64_t now_us, int64_t index)
{
    const struct store_objective_sum sum = {.incarnation = run->incarnation,
                                            .optimizer_step = call->optimizer_step,
                                            .ppo_epoch = call->ppo_epoch,
                                            .part = call->part,
                                            .recorded_at_us = now_us,
                                            .kl_estimator = call->kl_estimator,
                                            .slice = call->slices[index]};
    const struct store_objective_sum *from = &sum;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_OBJECTIVE_SUMS);
    int place = 2;
    bind_int(insert, 1, run->seq);
    COLUMNS_WRITTEN(SUM_COLUMNS)
    return database_run(insert);
}

enum store_status operation_record_objective(struct store *store, struct store_op *op)
{
    const struct store_record_objective *call = &op->record_objective;
    struct run_row run = {0};
    int64_t now_us = clock_utc_us();
    int result = operation_find_run(store, call->run, &run);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such run");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    enum store_status status = operation_check_manifest(store, op, &run, &call->manifest);
    if (status != STORE_OK)
        return status;
    result = record_call(store, call, &run, now_us);
    if (result == SQLITE_OK)
        result = forget_slices(store, call, &run);
    for (size_t i = 0; i < call->slice_count && result == SQLITE_OK; i++)
        result = record_slice(store, call, &run, now_us, (int64_t)i);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
