#include "server/base/clock.h"
#include "server/store/duplicates.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/rollups.h"

#include <math.h>

enum { FAILURE_MESSAGE_BYTES = 512 };

static void read_group_row(sqlite3_stmt *row, struct group_row *into)
{
    struct store_memory *memory = NULL; /* it has no text */
    int place = 1;
    into->seq = sqlite3_column_int64(row, 0);
    COLUMNS_READ(FOUND_GROUP_COLUMNS)
}

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
        read_group_row(find, ret_group);
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

/* The row as it will be on record. */
static struct store_rollout fill_in(const struct group_row *group, const struct store_rollout *rollout)
{
    struct store_rollout row = *rollout;
    struct text message = row.failure.message.data ? row.failure.message : TEXT_LITERAL("");
    row.incarnation = rollout->incarnation > group->incarnation ? rollout->incarnation : group->incarnation;
    row.purpose = group->purpose;
    row.created_at_us = clock_utc_us();
    row.completion_tokens = count_completion(rollout);
    row.trainable_tokens = count_trainable(rollout);
    row.failure.message = cut_text(message, FAILURE_MESSAGE_BYTES);
    if (!row.failure.code.data)
        row.failure = (struct store_failure){0};
    return row;
}

static int insert_row(struct store *store, const struct group_row *group, const struct store_rollout *rollout,
                      int64_t provenance_seq)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_ROLLOUT);
    const struct store_rollout row = fill_in(group, rollout);
    const struct store_rollout *from = &row;
    int place = 2;
    bind_int(insert, 1, group->seq);
    COLUMNS_WRITTEN(ROLLOUT_COLUMNS)
    return database_run(insert);
}

static int insert_text(struct store *store, int64_t seq, const struct store_rollout *from)
{
    if (!from->text.data)
        return SQLITE_OK;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_TEXT);
    int place = 2;
    bind_int(insert, 1, seq);
    COLUMNS_WRITTEN(TEXT_COLUMNS)
    int result = database_run(insert);
    if (result != SQLITE_OK || !from->segments.data)
        return result;
    sqlite3_stmt *segments = database_statement(&store->writer, SQL_INSERT_SEGMENTS);
    bind_int(segments, 1, seq);
    bind_text(segments, 2, from->segments);
    return database_run(segments);
}

static int insert_verdicts(struct store *store, int64_t seq, const struct store_rollout *from)
{
    if (!from->verdicts.data && !from->rewards.data && !from->heldout.data)
        return SQLITE_OK;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_VERDICTS);
    int place = 2;
    bind_int(insert, 1, seq);
    COLUMNS_WRITTEN(VERDICT_COLUMNS)
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

static int insert_arrays(struct store *store, const struct group_row *group, int64_t seq,
                         const struct store_rollout *rollout)
{
    if (!rollout->completion_ids || group->arrays_given)
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

static void bind_counts(sqlite3_stmt *count, int64_t seq, enum store_rollout_state state)
{
    bind_int(count, 1, seq);
    bind_int(count, 2, state == STORE_ROLLOUT_SCORED);
    bind_int(count, 3, state == STORE_ROLLOUT_FAILED);
    bind_int(count, 4, state == STORE_ROLLOUT_CANCELLED);
}

static int count_in_batch(struct store *store, const struct group_row *group, const struct store_rollout *rollout)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_BATCH_ROLLOUT);
    bind_counts(count, group->batch_seq, rollout->state);
    return database_run(count);
}

/* Tokens of training are counted with the rows, unless earlier rows of the run are still to be counted. */
static int count_in_run(struct store *store, const struct group_row *group, const struct store_rollout *rollout)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_RUN_ROLLOUT);
    bind_counts(count, group->run_seq, rollout->state);
    bind_int(count, 5, group->purpose == STORE_TRAIN ? count_completion(rollout) : 0);
    return database_run(count);
}

static int insert_rows(struct store *store, const struct group_row *group, struct store_insert_rollout *insert)
{
    const struct store_rollout *rollout = insert->rollout;
    int64_t provenance_seq = 0;
    int result = operation_enter_provenance(store, rollout, insert->settings, &provenance_seq);
    if (result == SQLITE_OK)
        result = insert_row(store, group, rollout, provenance_seq);
    if (result != SQLITE_OK)
        return result;
    insert->seq = sqlite3_last_insert_rowid(store->writer.handle);
    result = insert_text(store, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = insert_verdicts(store, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = insert_arrays(store, group, insert->seq, rollout);
    if (result == SQLITE_OK)
        result = set_prompt(store, group->seq, insert);
    if (result == SQLITE_OK)
        result = operation_note_provenance(store, group->batch_seq, rollout->engine, provenance_seq);
    if (result == SQLITE_OK)
        result = count_in_batch(store, group, rollout);
    if (result == SQLITE_OK)
        result = count_in_run(store, group, rollout);
    return result;
}

/* Checks that the table cannot make. NULL: no fault. */
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

/* Of the row's text, which is looked at if there are no ids. */
static struct text completion_text(sqlite3_stmt *row, struct store_memory *memory)
{
    struct text packed = column_view(row, 2);
    return packed.data ? store_memory_unpacked(memory, packed) : column_view(row, 1);
}

static int add_completions(sqlite3_stmt *rows, int64_t n, struct duplicates *duplicates, struct store_memory *memory,
                           bool *ret_duplicate)
{
    int result;
    for (int64_t i = 0; (result = sqlite3_step(rows)) == SQLITE_ROW && i < n; i++) {
        struct text ids = column_view(rows, 0);
        ret_duplicate[i] = duplicates_add(duplicates, ids, ids.data ? TEXT_NONE : completion_text(rows, memory));
    }
    return result == SQLITE_DONE && store_memory_failed(memory) ? SQLITE_NOMEM : result;
}

/* All members have a row: one for each place. */
static int find_duplicates(struct store *store, const struct group_row *group, bool *ret_duplicate)
{
    _cleanup_(duplicates_finish) struct duplicates duplicates;
    sqlite3_stmt *rows = database_statement(&store->writer, SQL_READ_COMPLETIONS);
    struct store_memory *memory = store_memory_create();
    duplicates_init(&duplicates, (size_t)group->n);
    bind_int(rows, 1, group->seq);
    int result = add_completions(rows, group->n, &duplicates, memory, ret_duplicate);
    sqlite3_reset(rows);
    store_memory_destroy(memory);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

#define RUN_BYTES 12 /* u32, f64 */

static int set_token_advantages(struct store *store, const struct group_row *group, int64_t sample_index,
                                const struct store_advantages *tokens)
{
    _cleanup_free_ char *packed = xcalloc(tokens->count + 1, RUN_BYTES);
    sqlite3_stmt *set = database_statement(&store->writer, SQL_SET_ADVANTAGES);

    for (size_t i = 0; i < tokens->count; i++) {
        memcpy(packed + i * RUN_BYTES, &tokens->runs[i].end, sizeof(uint32_t));
        memcpy(packed + i * RUN_BYTES + sizeof(uint32_t), &tokens->runs[i].advantage, sizeof(double));
    }
    bind_int(set, 1, group->seq);
    bind_int(set, 2, sample_index);
    bind_blob(set, 3, packed, tokens->count * RUN_BYTES);
    return database_run(set);
}

static int set_advantages(struct store *store, const struct group_row *group,
                          const struct store_close_group *close_group)
{
    _cleanup_free_ bool *duplicate = xcalloc(close_group->n + 1, sizeof(*duplicate));
    int result = find_duplicates(store, group, duplicate);
    for (size_t i = 0; i < close_group->n && result == SQLITE_OK; i++) {
        double advantage = close_group->advantage ? close_group->advantage[i] : (double)NAN;
        double shaped = close_group->shaped_reward ? close_group->shaped_reward[i] : (double)NAN;
        sqlite3_stmt *set = database_statement(&store->writer, SQL_SET_ADVANTAGE);
        bind_int(set, 1, group->seq);
        bind_int(set, 2, group->first_sample_index + (int64_t)i);
        bind_double(set, 3, advantage);
        bind_double(set, 4, shaped);
        bind_int(set, 5, duplicate[i]);
        result = database_run(set);
        const struct store_advantages *tokens = close_group->tokens ? &close_group->tokens[i] : NULL;
        if (result == SQLITE_OK && tokens && tokens->runs)
            result = set_token_advantages(store, group, group->first_sample_index + (int64_t)i, tokens);
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
    bind_int_or_null(update, 7, close_group->drop ? 1 : -1);
    return database_run(update);
}

enum store_status operation_close_group(struct store *store, struct store_op *op)
{
    struct store_close_group *close_group = &op->close_group;
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
    if (result == SQLITE_OK && close_group->draw)
        result = operation_draw_group(store, &group, close_group->draw_index, close_group->draw);
    if (result == SQLITE_OK)
        result = rollups_add_group(store, &group);
    if (result == SQLITE_OK && group.deliver == STORE_LEASE)
        result = deliveries_close(store, &group, rewarded, close_group->drop, &close_group->is_ready);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}
