/* What is kept of an objective call: the call itself, and its sums by the revision and the engine of the samples. */
#include "server/store/sqlite/operations.h"

#include "server/base/clock.h"

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

static void bind_slice(sqlite3_stmt *insert, const struct store_objective_slice *slice)
{
    bind_int_or_null(insert, 9, slice->incarnation);
    bind_int_or_null(insert, 10, slice->revision);
    bind_text(insert, 11, slice->engine);
    bind_int(insert, 12, slice->sequences);
    bind_int(insert, 13, slice->tokens);
    bind_int(insert, 14, slice->clip_low);
    bind_int(insert, 15, slice->clip_high);
    bind_double(insert, 16, slice->loss);
    for (int k = 0; k < STORE_OBJECTIVE_MEANS; k++) {
        bind_double(insert, 17 + 2 * k, slice->means[k].sum);
        bind_int(insert, 18 + 2 * k, slice->means[k].tokens);
    }
}

static int record_slice(struct store *store, const struct store_record_objective *call, const struct run_row *run,
                        int64_t now_us, size_t index)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_OBJECTIVE_SUMS);
    bind_int(insert, 1, run->seq);
    bind_int(insert, 2, run->incarnation);
    bind_int(insert, 3, call->optimizer_step);
    bind_int(insert, 4, call->ppo_epoch);
    bind_int(insert, 5, call->part);
    bind_int(insert, 6, (int64_t)index);
    bind_int(insert, 7, now_us);
    bind_text(insert, 8, call->kl_estimator);
    bind_slice(insert, &call->slices[index]);
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
    result = record_call(store, call, &run, now_us);
    if (result == SQLITE_OK)
        result = forget_slices(store, call, &run);
    for (size_t i = 0; i < call->slice_count && result == SQLITE_OK; i++)
        result = record_slice(store, call, &run, now_us, i);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
