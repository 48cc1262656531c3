/* Idempotency keys on record. Batches look theirs up in operations_batch.c, in their run's incarnation; those of policy
 * steps count within the run. */
#include "server/store/sqlite/operations.h"

int operation_insert_key(struct store *store, const struct key_row *row)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_KEY);
    bind_int(insert, 1, row->run_seq);
    bind_int(insert, 2, row->incarnation);
    bind_text(insert, 3, text_of(store_route_names[row->route]));
    bind_text(insert, 4, row->key);
    bind_blob(insert, 5, row->request_sha256, SHA256_BYTES);
    bind_int_or_null(insert, 6, row->batch_seq);
    bind_int_or_null(insert, 7, row->update_seq);
    bind_int_or_null(insert, 8, row->revision);
    bind_int_or_null(insert, 9, row->led_to_incarnation);
    bind_int_or_null(insert, 10, row->previous_revision);
    bind_int_or_null(insert, 11, row->lease_seq);
    bind_int_or_null(insert, 12, row->taken_at_us);
    return database_run(insert);
}

bool operation_is_same_body(sqlite3_stmt *row, int place, const uint8_t sha256[SHA256_BYTES])
{
    struct text on_record = column_view(row, place);
    return on_record.length_bytes == SHA256_BYTES && memcmp(on_record.data, sha256, SHA256_BYTES) == 0;
}

/* ---- policy steps
 * ------------------------------------------------------------------------------------------------------------ */

/* Columns of FIND_STEP_KEY; the last is the first of an update. */
enum { KEY_SHA256, KEY_REVISION, KEY_INCARNATION, KEY_PREVIOUS_REVISION, KEY_TAKEN_AT, KEY_UPDATE };

static const struct store_step_key *key_of(const struct store_op *op)
{
    return op->kind == STORE_DECLARE_POLICY ? &op->declare_policy.key : &op->update_policy.key;
}

static void read_update(sqlite3_stmt *row, struct store_policy_update *ret_update)
{
    ret_update->revision = -1;
    ret_update->state = STORE_UPDATE_COMMITTED;
    if (column_int_or(row, KEY_UPDATE, -1) >= 0)
        database_read_update(row, KEY_UPDATE, ret_update);
}

/* The stored answer. */
static void read_answer(sqlite3_stmt *row, struct store_op *op)
{
    struct store_declare_policy *declare = &op->declare_policy;
    if (op->kind != STORE_DECLARE_POLICY) {
        read_update(row, &op->update_policy.update);
        return;
    }
    read_update(row, &declare->update);
    declare->current_revision = column_int_or(row, KEY_REVISION, -1);
    declare->incarnation = sqlite3_column_int64(row, KEY_INCARNATION);
    declare->previous_revision = column_int_or(row, KEY_PREVIOUS_REVISION, -1);
    declare->taken_at_us = column_int_or(row, KEY_TAKEN_AT, -1);
}

enum store_status operation_check_step_key(struct store *store, struct store_op *op, const struct run_row *run)
{
    const struct store_step_key *key = key_of(op);
    if (!key->key.data)
        return STORE_OK;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_STEP_KEY);
    bind_int(find, 1, run->seq);
    bind_text(find, 2, text_of(store_route_names[key->route]));
    bind_text(find, 3, key->key);
    int result = database_first(find);
    if (result == SQLITE_DONE)
        return STORE_OK;
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    bool same = operation_is_same_body(find, KEY_SHA256, key->request_sha256);
    if (same)
        read_answer(find, op);
    sqlite3_reset(find);
    return same ? operation_decline(op, STORE_EXISTS, "the key has taken this step")
                : operation_decline(op, STORE_IDEMPOTENCY_CONFLICT, "the key was used with another body");
}

int operation_keep_step_key(struct store *store, const struct store_op *op, const struct run_row *run,
                            int64_t update_seq)
{
    const struct store_step_key *key = key_of(op);
    struct key_row row = {.run_seq = run->seq,
                          .incarnation = -1,
                          .route = key->route,
                          .key = key->key,
                          .request_sha256 = key->request_sha256,
                          .batch_seq = -1,
                          .update_seq = update_seq,
                          .revision = -1,
                          .led_to_incarnation = -1,
                          .previous_revision = -1,
                          .lease_seq = -1,
                          .taken_at_us = -1};
    if (!key->key.data)
        return SQLITE_OK;
    if (op->kind == STORE_DECLARE_POLICY) {
        row.revision = op->declare_policy.current_revision;
        row.led_to_incarnation = op->declare_policy.incarnation;
        row.previous_revision = op->declare_policy.previous_revision;
        row.taken_at_us = op->declare_policy.taken_at_us;
    }
    return operation_insert_key(store, &row);
}
