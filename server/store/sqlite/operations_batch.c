#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/rollups.h"

/* ---- create
 * ----------------------------------------------------------------------------------------------------------------- */

/* Decides what an idempotency key that is on record in the run's incarnation means. STORE_OK: it is new. */
static enum store_status check_key(struct store *store, struct store_op *op, const struct run_row *run)
{
    struct store_create_batch *batch = &op->create_batch;
    if (!batch->idempotency_key.data)
        return STORE_OK;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_BATCH_KEY);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, run->incarnation);
    bind_text(find, 3, text_of(store_route_names[batch->route]));
    bind_text(find, 4, batch->idempotency_key);
    int result = database_first(find);
    if (result == SQLITE_DONE)
        return batch->must_exist
                   ? operation_decline(op, STORE_NOT_FOUND, "the key has made nothing in this incarnation")
                   : STORE_OK;
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    bool same = operation_is_same_body(find, 1, batch->request_sha256);
    column_id(find, 0, batch->id);
    batch->policy_revision = sqlite3_column_int64(find, 2);
    batch->incarnation = run->incarnation;
    batch->created_at_us = sqlite3_column_int64(find, 3);
    batch->state = (enum store_batch_state)column_name(find, 4, store_batch_state_names);
    batch->current_revision = run->policy_revision;
    sqlite3_reset(find);
    return same ? operation_decline(op, STORE_EXISTS, "the key has made this batch")
                : operation_decline(op, STORE_IDEMPOTENCY_CONFLICT, "the key was used with another body");
}

static int insert_key(struct store *store, const struct store_create_batch *batch, const struct run_row *run,
                      int64_t batch_seq)
{
    if (!batch->idempotency_key.data)
        return SQLITE_OK;
    struct key_row row = {.run_seq = run->seq,
                          .incarnation = run->incarnation,
                          .route = batch->route,
                          .key = batch->idempotency_key,
                          .request_sha256 = batch->request_sha256,
                          .batch_seq = batch_seq,
                          .update_seq = -1,
                          .revision = -1,
                          .led_to_incarnation = -1,
                          .previous_revision = -1,
                          .lease_seq = -1,
                          .taken_at_us = -1};
    return operation_insert_key(store, &row);
}

static enum store_status declare_by_batch(struct store *store, struct store_op *op, struct run_row *run, int64_t now_us)
{
    struct store_create_batch *batch = &op->create_batch;
    bool open = false;
    int result = operation_has_open_update(store, run->seq, &open);
    if (result == SQLITE_OK && open)
        return operation_decline(op, STORE_STATE_CONFLICT, "a weight update of the run is open: commit it first");
    if (result == SQLITE_OK)
        result = operation_set_revision(store, run, batch->policy_revision, now_us);
    batch->current_revision = batch->policy_revision;
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* Contract, "Weights": a higher revision declares itself, a lower one is stamped unless it is too old; an evaluation
 * may name any. */
static enum store_status stamp_revision(struct store *store, struct store_op *op, struct run_row *run, int64_t now_us)
{
    struct store_create_batch *batch = &op->create_batch;
    int64_t current = run->policy_revision;
    batch->incarnation = run->incarnation;
    batch->current_revision = current;
    if (batch->policy_revision < 0)
        batch->policy_revision = current < 0 ? 0 : current;
    else if (batch->purpose == STORE_TRAIN && batch->policy_revision > current)
        return declare_by_batch(store, op, run, now_us);
    else if (batch->purpose == STORE_TRAIN && batch->max_staleness >= 0 &&
             current - batch->policy_revision > batch->max_staleness)
        return operation_decline(op, STORE_REVISION_CONFLICT,
                                 "policy_revision is further behind the run's than max_staleness");
    return STORE_OK;
}

static int enter_objective(struct store *store, int64_t run_seq, struct text objective, int64_t *ret_seq)
{
    uint8_t sha256[SHA256_BYTES];
    sha256_of(objective.data, objective.length_bytes, sha256);
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_OBJECTIVE);
    bind_int(insert, 1, run_seq);
    bind_blob(insert, 2, sha256, sizeof(sha256));
    bind_text(insert, 3, objective);
    int result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_OBJECTIVE);
    bind_int(find, 1, run_seq);
    bind_blob(find, 2, sha256, sizeof(sha256));
    result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return SQLITE_OK;
}

static int64_t count_rollouts(const struct store_create_batch *batch)
{
    int64_t count = 0;
    for (size_t i = 0; i < batch->group_count; i++)
        count += batch->groups[i].n;
    return count;
}

static int insert_batch(struct store *store, const struct store_create_batch *from, int64_t run_seq,
                        int64_t objective_seq)
{
    int64_t settings_seq;
    int result = operation_enter_settings(store, from->settings, &settings_seq);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_BATCH);
    int place = 2;
    bind_text(insert, 1, text_of(from->id));
    COLUMNS_WRITTEN(BATCH_COLUMNS)
    return database_run(insert);
}

static int insert_contents(struct store *store, const struct store_create_batch *from, int64_t batch_seq)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_BATCH_CONTENTS);
    int place = 2;
    bind_int(insert, 1, batch_seq);
    COLUMNS_WRITTEN(BATCH_CONTENT_COLUMNS)
    int result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *request = database_statement(&store->writer, SQL_INSERT_REQUEST);
    bind_int(request, 1, batch_seq);
    bind_text(request, 2, from->content_type.data ? from->content_type : TEXT_LITERAL(""));
    bind_blob(request, 3, from->request.data ? from->request.data : "", from->request.length_bytes);
    bind_text(request, 4, text_of(store_codec_names[from->request_codec]));
    bind_int(request, 5, (int64_t)(from->request_codec ? from->request_bytes : from->request.length_bytes));
    return database_run(request);
}

/* Evaluations are never leased. */
static bool is_for_leases(const struct store_create_batch *batch)
{
    return batch->deliver == STORE_LEASE && batch->purpose == STORE_TRAIN;
}

static int insert_groups(struct store *store, const struct store_create_batch *batch, const struct run_row *run,
                         int64_t batch_seq)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < batch->group_count && result == SQLITE_OK; i++) {
        int64_t group_seq = 0;
        result = operation_insert_group(store, batch_seq, (int64_t)i, &batch->groups[i], &group_seq);
        if (result == SQLITE_OK && is_for_leases(batch))
            result = deliveries_add(store, run->seq, group_seq, batch->max_staleness);
    }
    if (result == SQLITE_OK && is_for_leases(batch))
        result = deliveries_count(store, run->seq, STORE_DELIVERY_WAITING, (int64_t)batch->group_count);
    return result;
}

static int insert_rows(struct store *store, const struct store_create_batch *batch, const struct run_row *run)
{
    int64_t objective_seq = 0;
    int result = enter_objective(store, run->seq, batch->objective, &objective_seq);
    if (result == SQLITE_OK)
        result = insert_batch(store, batch, run->seq, objective_seq);
    if (result != SQLITE_OK)
        return result;
    int64_t batch_seq = sqlite3_last_insert_rowid(store->writer.handle);
    result = insert_contents(store, batch, batch_seq);
    if (result == SQLITE_OK)
        result = insert_key(store, batch, run, batch_seq);
    if (result == SQLITE_OK)
        result = insert_groups(store, batch, run, batch_seq);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_RUN_BATCH);
    bind_int(count, 1, run->seq);
    return database_run(count);
}

static enum store_status check_manifest(struct store *store, struct store_op *op, const struct run_row *run)
{
    enum store_status status = operation_check_manifest(store, op, run, &op->create_batch.manifest);
    return status == STORE_OK ? operation_check_budget(store, op, run, op->create_batch.policy_revision) : status;
}

/* Those on their way and those of this batch together. */
static enum store_status check_ready_limit(struct store *store, struct store_op *op, const struct run_row *run)
{
    struct store_create_batch *batch = &op->create_batch;
    if (!is_for_leases(batch) || batch->ready_limit == 0)
        return STORE_OK;
    int result = deliveries_count_undelivered(store, run->seq, &batch->undelivered);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    return batch->undelivered + (int64_t)batch->group_count > batch->ready_limit
               ? operation_decline(op, STORE_OVER_READY_LIMIT, "the run has as many groups for leases as it may")
               : STORE_OK;
}

enum store_status operation_create_batch(struct store *store, struct store_op *op)
{
    struct store_create_batch *batch = &op->create_batch;
    batch->created_at_us = clock_utc_us();
    batch->state = STORE_BATCH_RUNNING;
    struct run_row run = {0};
    int result = operation_enter_run(store, batch->run, batch->created_at_us, &run);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    enum store_status status = check_key(store, op, &run);
    if (status == STORE_OK)
        status = check_ready_limit(store, op, &run);
    if (status == STORE_OK)
        status = stamp_revision(store, op, &run, batch->created_at_us);
    if (status == STORE_OK && batch->purpose == STORE_TRAIN)
        status = check_manifest(store, op, &run);
    if (status != STORE_OK)
        return status;
    result = insert_rows(store, batch, &run);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- close
 * ------------------------------------------------------------------------------------------------------------------ */

struct found_batch {
    int64_t seq;
    enum store_batch_state state;
    int64_t run_seq;
    enum store_deliver deliver;
};

static int find_batch(struct store *store, const char *id, struct found_batch *ret_batch)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_BATCH);
    bind_text(find, 1, text_of(id));
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    ret_batch->seq = sqlite3_column_int64(find, 0);
    ret_batch->state = (enum store_batch_state)column_name(find, 1, store_batch_state_names);
    ret_batch->run_seq = sqlite3_column_int64(find, 2);
    ret_batch->deliver = (enum store_deliver)column_name(find, 3, store_deliver_names);
    sqlite3_reset(find);
    return SQLITE_ROW;
}

static int has_open_group(struct store *store, int64_t batch_seq, bool *ret_open)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_OPEN_GROUP);
    bind_int(find, 1, batch_seq);
    int result = database_first(find);
    *ret_open = result == SQLITE_ROW;
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int update_closed_batch(struct store *store, const struct store_close_batch *close_batch, int64_t batch_seq)
{
    sqlite3_stmt *update = database_statement(&store->writer, SQL_CLOSE_BATCH);
    bind_int(update, 1, batch_seq);
    bind_text(update, 2, text_of(store_batch_state_names[close_batch->state]));
    bind_int(update, 3, close_batch->completed_at_us > 0 ? close_batch->completed_at_us : clock_utc_us());
    bind_double(update, 4, close_batch->loss);
    bind_int(update, 5, close_batch->total_tokens);
    bind_int(update, 6, close_batch->total_sequences);
    bind_int(update, 7, close_batch->total_groups);
    int result = database_run(update);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *summary = database_statement(&store->writer, SQL_SET_BATCH_SUMMARY);
    bind_int(summary, 1, batch_seq);
    bind_text(summary, 2, close_batch->notes);
    bind_text(summary, 3, close_batch->summary);
    return database_run(summary);
}

enum store_status operation_close_batch(struct store *store, struct store_op *op)
{
    struct store_close_batch *close_batch = &op->close_batch;
    struct found_batch batch = {0};
    int result = find_batch(store, close_batch->batch_id, &batch);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such batch");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    if (batch.state != STORE_BATCH_RUNNING) {
        close_batch->state = batch.state;
        return operation_decline(op, STORE_EXISTS, "the batch has ended before");
    }
    bool open = false;
    result = has_open_group(store, batch.seq, &open);
    if (result == SQLITE_OK && open && close_batch->state == STORE_BATCH_COMPLETE)
        return operation_decline(op, STORE_STATE_CONFLICT, "a group of the batch is not closed");
    if (result == SQLITE_OK)
        result = update_closed_batch(store, close_batch, batch.seq);
    if (result == SQLITE_OK && open)
        result = rollups_add_open_groups(store, batch.seq);
    if (result == SQLITE_OK && open && batch.deliver == STORE_LEASE)
        result = deliveries_fail_waiting(store, batch.run_seq, batch.seq);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
