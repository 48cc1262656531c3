#include "server/base/clock.h"
#include "server/store/sqlite/operations.h"

#include <math.h>

enum { FAILURE_MESSAGE_BYTES = 512 };

int operation_find_group(struct store *store, const char *group_id, struct group_row *ret_group)
{
    char batch_id[ID_BYTES];
    int64_t index = 0;
    if (!id_split_group(text_of(group_id), batch_id, &index))
        return SQLITE_DONE;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_GROUP);
    bind_text(find, 1, text_of(batch_id));
    bind_int(find, 2, index);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_group = (struct group_row){
            .seq = sqlite3_column_int64(find, 0),
            .batch_seq = sqlite3_column_int64(find, 1),
            .run_seq = sqlite3_column_int64(find, 2),
            .task_seq = sqlite3_column_int64(find, 3),
            .incarnation = sqlite3_column_int64(find, 4),
            .purpose = column_name(find, 5, store_purpose_names),
            .batch_state = column_name(find, 6, store_batch_state_names),
            .first_sample_index = sqlite3_column_int64(find, 7),
            .n = sqlite3_column_int64(find, 8),
            .state = column_name(find, 9, store_group_state_names),
        };
    sqlite3_reset(find); /* the bindings point to locals, and are cleared before the next use */
    return result;
}

/* ---- insert
 * ----------------------------------------------------------------------------------------------------------------- */

/* SQLITE_ROW: the member has a row. */
static int find_member(struct store *store, int64_t group_seq, int64_t sample_index, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_MEMBER);
    bind_int(find, 1, group_seq);
    bind_int(find, 2, sample_index);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

/* At most this many bytes, cut between characters. */
static struct text cut_text(struct text text, size_t limit_bytes)
{
    if (!text.data || text.length_bytes <= limit_bytes)
        return text;
    size_t length_bytes = limit_bytes;
    while (length_bytes && ((unsigned char)text.data[length_bytes] & 0xC0) == 0x80)
        length_bytes--;
    return (struct text){text.data, length_bytes};
}

static int64_t count_completion(const struct store_rollout *rollout)
{
    return rollout->completion_ids ? (int64_t)rollout->token_count : rollout->completion_tokens;
}

static int64_t count_trainable(const struct store_rollout *rollout)
{
    if (!rollout->trainable || !rollout->completion_ids)
        return 0;
    int64_t count = 0;
    for (size_t t = 0; t < rollout->token_count; t++)
        count += rollout->completion_mask ? rollout->completion_mask[t] != 0 : 1;
    return count;
}

static void bind_failure(sqlite3_stmt *insert, const struct store_failure *failure)
{
    if (!failure->code.data)
        return;
    bind_text(insert, 11, failure->stage);
    bind_text(insert, 12, failure->code);
    bind_text(insert, 13, cut_text(failure->message.data ? failure->message : TEXT_LITERAL(""), FAILURE_MESSAGE_BYTES));
    bind_int(insert, 14, failure->retryable);
    bind_int(insert, 15, failure->attempts);
}

static void bind_sampling(sqlite3_stmt *insert, const struct store_rollout *rollout)
{
    bind_text(insert, 16, rollout->engine);
    bind_text(insert, 17, rollout->engine_revision);
    bind_int(insert, 18, rollout->policy_revision);
    bind_int_or_null(insert, 19, rollout->revision_at_end);
    bind_int(insert, 20, rollout->straddles);
    bind_int(insert, 21, rollout->resample);
    bind_int(insert, 22, rollout->attempts);
    bind_int(insert, 23, (int64_t)rollout->seed);
    bind_int_or_null(insert, 24, rollout->seed_sent);
    bind_int_or_null(insert, 25, rollout->seed_honoured);
    bind_text(insert, 26, rollout->finish_reason);
    bind_int(insert, 27, rollout->trainable);
    bind_int_or_null(insert, 28, rollout->eos_in_ids);
    bind_text(insert, 29, text_of(store_logprobs_mode_names[rollout->logprobs_mode]));
    bind_int(insert, 30, count_completion(rollout));
    bind_int(insert, 31, count_trainable(rollout));
    bind_int(insert, 32, rollout->queued_us);
    bind_int(insert, 33, rollout->engine_us);
    bind_int(insert, 34, rollout->verify_us);
}

static int insert_row(struct store *store, const struct group_row *group, const struct store_rollout *rollout)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_ROLLOUT);
    bind_int(insert, 1, group->seq);
    bind_int(insert, 2, rollout->sample_index);
    bind_int(insert, 3, group->batch_seq);
    bind_int(insert, 4, group->run_seq);
    bind_int(insert, 5, group->task_seq);
    bind_int(insert, 6, rollout->incarnation > group->incarnation ? rollout->incarnation : group->incarnation);
    bind_text(insert, 7, text_of(store_purpose_names[group->purpose]));
    bind_int(insert, 8, clock_utc_us());
    bind_text(insert, 9, text_of(store_rollout_state_names[rollout->state]));
    bind_double(insert, 10, rollout->reward);
    bind_failure(insert, &rollout->failure);
    bind_sampling(insert, rollout);
    return database_run(insert);
}

static int insert_text(struct store *store, int64_t seq, const struct store_rollout *rollout)
{
    if (!rollout->text.data)
        return SQLITE_OK;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_TEXT);
    bind_int(insert, 1, seq);
    bind_text(insert, 2, rollout->text);
    bind_int(insert, 3, rollout->text_replaced);
    int result = database_run(insert);
    if (result != SQLITE_OK || !rollout->segments.data)
        return result;
    sqlite3_stmt *segments = database_statement(&store->writer, SQL_INSERT_SEGMENTS);
    bind_int(segments, 1, seq);
    bind_text(segments, 2, rollout->segments);
    return database_run(segments);
}

static int insert_verdicts(struct store *store, int64_t seq, const struct store_rollout *rollout)
{
    if (!rollout->verdicts.data && !rollout->rewards.data && !rollout->heldout.data)
        return SQLITE_OK;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_VERDICTS);
    bind_int(insert, 1, seq);
    bind_text(insert, 2, rollout->verdicts);
    bind_text(insert, 3, rollout->rewards);
    bind_text(insert, 4, rollout->heldout);
    return database_run(insert);
}

/* Where the mask is 0 a log-probability is nobody's: stored as 0. NULL if there is nothing to change or no memory
 * (*ret_ok). */
static float *masked_logprobs(const struct store_rollout *rollout, bool *ret_ok)
{
    *ret_ok = true;
    if (!rollout->completion_mask || !rollout->logprobs)
        return NULL;
    float *copy = calloc(rollout->token_count + 1, sizeof(*copy));
    *ret_ok = copy != NULL;
    for (size_t t = 0; copy && t < rollout->token_count; t++)
        copy[t] = rollout->completion_mask[t] ? rollout->logprobs[t] : 0.0F;
    return copy;
}

static int insert_arrays(struct store *store, int64_t seq, const struct store_rollout *rollout)
{
    if (!rollout->completion_ids)
        return SQLITE_OK;
    bool ok;
    float *masked = masked_logprobs(rollout, &ok);
    if (!ok)
        return SQLITE_NOMEM;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_ARRAYS);
    bind_int(insert, 1, seq);
    bind_blob(insert, 2, rollout->completion_ids, rollout->token_count * sizeof(uint32_t));
    bind_blob(insert, 3, masked ? masked : rollout->logprobs, rollout->token_count * sizeof(float));
    bind_blob(insert, 4, rollout->completion_mask, rollout->token_count);
    int result = database_run(insert);
    sqlite3_clear_bindings(insert);
    free(masked);
    return result;
}

static int set_prompt(struct store *store, int64_t group_seq, const struct store_insert_rollout *insert)
{
    if (!insert->prompt_ids)
        return SQLITE_OK;
    sqlite3_stmt *set = database_statement(&store->writer, SQL_SET_PROMPT_IDS);
    bind_int(set, 1, group_seq);
    bind_blob(set, 2, insert->prompt_ids, insert->prompt_id_count * sizeof(uint32_t));
    return database_run(set);
}

static int count_one(struct store *store, enum statement which, int64_t seq, enum store_rollout_state state)
{
    sqlite3_stmt *count = database_statement(&store->writer, which);
    bind_int(count, 1, seq);
    bind_int(count, 2, state == STORE_ROLLOUT_SCORED);
    bind_int(count, 3, state == STORE_ROLLOUT_FAILED);
    bind_int(count, 4, state == STORE_ROLLOUT_CANCELLED);
    return database_run(count);
}

static int insert_rows(struct store *store, const struct group_row *group, struct store_insert_rollout *insert)
{
    const struct store_rollout *rollout = insert->rollout;
    int result = insert_row(store, group, rollout);
    if (result != SQLITE_OK)
        return result;
    insert->seq = sqlite3_last_insert_rowid(store->writer.handle);
    result = insert_text(store, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = insert_verdicts(store, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = insert_arrays(store, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = set_prompt(store, group->seq, insert);
    if (result == SQLITE_OK)
        result = count_one(store, SQL_COUNT_BATCH_ROLLOUT, group->batch_seq, rollout->state);
    if (result == SQLITE_OK)
        result = count_one(store, SQL_COUNT_RUN_ROLLOUT, group->run_seq, rollout->state);
    return result;
}

/* What the table cannot see for itself. NULL: nothing is wrong. */
static const char *find_contradiction(const struct group_row *group, const struct store_rollout *rollout)
{
    int64_t place = rollout->sample_index - group->first_sample_index;
    if (place < 0 || place >= group->n)
        return "sample_index is not of this group";
    if (rollout->state != STORE_ROLLOUT_SCORED || !rollout->logprobs)
        return NULL;
    for (size_t t = 0; t < rollout->token_count; t++)
        if (!isfinite(rollout->logprobs[t]) && (!rollout->completion_mask || rollout->completion_mask[t]))
            return "a scored rollout has a log-probability that is not finite";
    return NULL;
}

enum store_status operation_insert_rollout(struct store *store, struct store_op *op)
{
    struct store_insert_rollout *insert = &op->insert_rollout;
    struct group_row group;
    int result = operation_find_group(store, insert->group_id, &group);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such group");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    result = find_member(store, group.seq, insert->rollout->sample_index, &insert->seq);
    if (result == SQLITE_ROW)
        return operation_decline(op, STORE_EXISTS, "the member has a row");
    if (result != SQLITE_DONE)
        return operation_fail(store, op, result);
    if (group.batch_state != STORE_BATCH_RUNNING)
        return operation_decline(op, STORE_STATE_CONFLICT, "the batch has ended");
    const char *contradiction = find_contradiction(&group, insert->rollout);
    if (contradiction)
        return operation_decline(op, STORE_REFUSED, contradiction);
    result = insert_rows(store, &group, insert);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- close a group
 * ---------------------------------------------------------------------------------------------------------- */

static int count_rows(struct store *store, int64_t group_seq, int64_t *ret_rows, int64_t *ret_rewarded)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_GROUP_ROWS);
    bind_int(count, 1, group_seq);
    int result = database_first(count);
    if (result != SQLITE_ROW)
        return result;
    *ret_rows = sqlite3_column_int64(count, 0);
    *ret_rewarded = sqlite3_column_int64(count, 1);
    sqlite3_reset(count);
    return SQLITE_OK;
}

static int set_advantages(struct store *store, const struct group_row *group,
                          const struct store_close_group *close_group)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < close_group->n && result == SQLITE_OK; i++) {
        double advantage = close_group->advantage ? close_group->advantage[i] : (double)NAN;
        double shaped = close_group->shaped_reward ? close_group->shaped_reward[i] : (double)NAN;
        if (isnan(advantage) && isnan(shaped))
            continue;
        sqlite3_stmt *set = database_statement(&store->writer, SQL_SET_ADVANTAGE);
        bind_int(set, 1, group->seq);
        bind_int(set, 2, group->first_sample_index + (int64_t)i);
        bind_double(set, 3, advantage);
        bind_double(set, 4, shaped);
        result = database_run(set);
    }
    return result;
}

static int update_closed_group(struct store *store, int64_t seq, int64_t rewarded,
                               const struct store_close_group *close_group)
{
    sqlite3_stmt *update = database_statement(&store->writer, SQL_CLOSE_GROUP);
    bind_int(update, 1, seq);
    bind_int(update, 2, clock_utc_us());
    bind_int(update, 3, rewarded);
    bind_double(update, 4, close_group->reward_mean);
    bind_double(update, 5, close_group->reward_std);
    bind_int(update, 6, close_group->zero_variance);
    return database_run(update);
}

enum store_status operation_close_group(struct store *store, struct store_op *op)
{
    const struct store_close_group *close_group = &op->close_group;
    struct group_row group;
    int result = operation_find_group(store, close_group->group_id, &group);
    if (result == SQLITE_DONE)
        return operation_decline(op, STORE_NOT_FOUND, "no such group");
    if (result != SQLITE_ROW)
        return operation_fail(store, op, result);
    if (group.state == STORE_GROUP_COMPLETE)
        return operation_decline(op, STORE_EXISTS, "the group was closed before");
    if (group.batch_state != STORE_BATCH_RUNNING)
        return operation_decline(op, STORE_STATE_CONFLICT, "the batch has ended");
    if ((int64_t)close_group->n != group.n)
        return operation_decline(op, STORE_REFUSED, "n is not the group's");
    int64_t rows = 0;
    int64_t rewarded = 0;
    result = count_rows(store, group.seq, &rows, &rewarded);
    if (result == SQLITE_OK && rows < group.n)
        return operation_decline(op, STORE_STATE_CONFLICT, "a member of the group has no row");
    if (result == SQLITE_OK)
        result = set_advantages(store, &group, close_group);
    if (result == SQLITE_OK)
        result = update_closed_group(store, group.seq, rewarded, close_group);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
