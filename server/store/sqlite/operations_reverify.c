/* Reverifications: created, their pages of verdicts, their end. */
#include "server/store/sqlite/operations.h"

#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"

#include <math.h>

/* ---- created ---------------------------------------------------------------------------------------------------- */

/* STORE_OK: the key is new. */
static enum store_status check_key(struct store *store, struct store_op *op, const struct run_row *run)
{
    struct store_create_reverification *create = &op->create_reverification;
    if (!create->key.data)
        return STORE_OK;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_REVERIFICATION_KEY);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, run->incarnation);
    bind_text(find, 3, create->key);
    int result = database_first(find);
    if (result == SQLITE_DONE)
        return STORE_OK;
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    bool same = operation_is_same_body(find, 1, create->request_sha256);
    column_id(find, 0, create->id);
    create->state = (enum store_reverify_state)column_name(find, 2, store_reverify_state_names);
    sqlite3_reset(find);
    return same ? operation_decline(op, STORE_EXISTS, "the key has made this reverification")
                : operation_decline(op, STORE_IDEMPOTENCY_CONFLICT, "the key was used with another body");
}

static int insert(struct store *store, const struct store_create_reverification *create, const struct run_row *run)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_REVERIFICATION);
    bind_text(insert, 1, text_of(create->id));
    bind_int(insert, 2, run->seq);
    bind_int(insert, 3, run->incarnation);
    bind_text(insert, 4, create->key);
    bind_blob(insert, 5, create->request_sha256, SHA256_BYTES);
    bind_text(insert, 6, create->request);
    bind_int(insert, 7, clock_utc_us());
    bind_int(insert, 8, create->last_rollout);
    bind_int(insert, 9, create->rollouts);
    return database_run(insert);
}

enum store_status operation_create_reverification(struct store *store, struct store_op *op)
{
    struct store_create_reverification *create = &op->create_reverification;
    struct run_row run = {0};
    int result = operation_find_run(store, create->run, &run);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such run");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    create->state = STORE_REVERIFY_RUNNING;
    enum store_status status = check_key(store, op, &run);
    if (status != STORE_OK)
        return status;
    result = insert(store, create, &run);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- found ------------------------------------------------------------------------------------------------------ */

/* Its numbers; its texts are left out. SQLITE_ROW, SQLITE_DONE or an error. */
static int find(struct store *store, const char *id, struct store_reverification *ret_found)
{
    struct store_memory *memory = store_memory_create();
    struct store_reverification *into = ret_found;
    sqlite3_stmt *row = database_statement(&store->writer, SQL_FIND_REVERIFICATION);
    bind_text(row, 1, text_of(id));
    int result = database_first(row);
    if (result == SQLITE_ROW) {
        int place = 1;
        COLUMNS_READ(REVERIFICATION_COLUMNS)
        into->seq = sqlite3_column_int64(row, 0);
        sqlite3_reset(row);
    }
    into->run = into->request = into->place = into->failure_code = into->failure_message = TEXT_NONE;
    store_memory_destroy(memory);
    return result;
}

/* ---- a page of verdicts ------------------------------------------------------------------------------------------ */

static int insert_flips(struct store *store, int64_t seq, const struct store_judged *row)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < row->flip_count && result == SQLITE_OK; i++) {
        const struct store_verdict_flip *from = &row->flips[i];
        sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_FLIP);
        int place = 1;
        COLUMNS_WRITTEN(FLIP_COLUMNS)
        bind_int(insert, place++, row->rollout_seq);
        bind_int(insert, place, seq);
        result = database_run(insert);
    }
    return result;
}

static void count(const struct store_judged *row, struct store_reverification *counts)
{
    counts->judged++;
    counts->unscored += row->unscored;
    counts->flipped += (int64_t)row->flip_count;
    if (isnan(row->reward_from) || isnan(row->reward))
        return;
    counts->rewarded++;
    precise_sum_add(&counts->reward_from, row->reward_from);
    precise_sum_add(&counts->reward_to, row->reward);
}

/* A row that is on record already is not counted again. */
static int insert_row(struct store *store, const struct store_judged *row, int64_t now_us,
                      struct store_reverification *counts)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_LATER_VERDICTS);
    bind_int(insert, 1, row->rollout_seq);
    bind_int(insert, 2, counts->seq);
    bind_int(insert, 3, now_us);
    bind_text(insert, 4, row->verdicts);
    bind_double(insert, 5, row->reward_from);
    bind_double(insert, 6, row->reward);
    int result = database_run(insert);
    if (result != SQLITE_OK || sqlite3_changes(store->writer.handle) == 0)
        return result;
    count(row, counts);
    return insert_flips(store, counts->seq, row);
}

static int update(struct store *store, const struct store_reverification *counts, struct text place, int64_t now_us)
{
    bool ends = !place.data;
    sqlite3_stmt *update = database_statement(&store->writer, SQL_COUNT_JUDGED);
    bind_int(update, 1, counts->seq);
    bind_int(update, 2, counts->judged);
    bind_int(update, 3, counts->unscored);
    bind_int(update, 4, counts->flipped);
    bind_int(update, 5, counts->rewarded);
    bind_double(update, 6, counts->reward_from.sum);
    bind_double(update, 7, counts->reward_from.lost);
    bind_double(update, 8, counts->reward_to.sum);
    bind_double(update, 9, counts->reward_to.lost);
    bind_text(update, 10, place);
    bind_text(update, 11, text_of(store_reverify_state_names[ends ? STORE_REVERIFY_COMPLETE : STORE_REVERIFY_RUNNING]));
    bind_int_or_null(update, 12, ends ? now_us : -1);
    bind_int(update, 13, ends ? counts->judged : counts->rollouts);
    return database_run(update);
}

enum store_status operation_record_judged(struct store *store, struct store_op *op)
{
    const struct store_record_judged *record = &op->record_judged;
    struct store_reverification counts = {0};
    int64_t now_us = clock_utc_us();
    int result = find(store, record->id, &counts);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such reverification");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    if (counts.state != STORE_REVERIFY_RUNNING)
        return operation_decline(op, STORE_STATE_CONFLICT, "the reverification has ended");
    result = SQLITE_OK;
    for (size_t i = 0; i < record->count && result == SQLITE_OK; i++)
        result = insert_row(store, &record->rows[i], now_us, &counts);
    if (result == SQLITE_OK)
        result = update(store, &counts, record->place, now_us);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- ended ------------------------------------------------------------------------------------------------------- */

enum store_status operation_end_reverification(struct store *store, struct store_op *op)
{
    struct store_end_reverification *end = &op->end_reverification;
    struct store_reverification found = {0};
    int result = find(store, end->id, &found);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such reverification");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    if (found.state != STORE_REVERIFY_RUNNING) {
        end->state = found.state;
        return operation_decline(op, STORE_EXISTS, "the reverification has ended before");
    }
    sqlite3_stmt *update = database_statement(&store->writer, SQL_END_REVERIFICATION);
    bind_int(update, 1, found.seq);
    bind_text(update, 2, text_of(store_reverify_state_names[end->state]));
    bind_int(update, 3, clock_utc_us());
    bind_text(update, 4, end->failure_code);
    bind_text(update, 5, end->failure_message);
    result = database_run(update);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
