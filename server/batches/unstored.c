/* A score that leaves no trace ("store": false): its rows live in memory until they are rendered, and go with the live
 * batch. */
#include "server/batches/unstored.h"

#include "server/base/clock.h"
#include "server/batches/closing_private.h"
#include "server/batches/live.h"
#include "server/batches/verification_private.h"
#include "server/store/duplicates.h"

#include <math.h>
#include <stdio.h>

struct unstored {
    unstored_renderer *render;
    int arrays;
    struct store_rollout *rollouts;
    struct unstored_row *rows; /* [rollout]; what the rollouts point into, beside the spec */
    struct store_group *groups;
    struct store_member *members;
    struct buffer reply;
};

struct unstored_row {
    struct buffer verdicts;
    struct buffer rewards;
    struct buffer heldout;
    char *failure_code;
    char *failure_message;
    struct store_advantage *advantages;
};

struct unstored *unstored_create(const struct batch_spec *spec, unstored_renderer *render, int arrays)
{
    struct unstored *unstored = xcalloc(1, sizeof(*unstored));
    unstored->render = render;
    unstored->arrays = arrays;
    unstored->rollouts = xcalloc(spec->rollout_count, sizeof(struct store_rollout));
    unstored->rows = xcalloc(spec->rollout_count, sizeof(struct unstored_row));
    unstored->members = xcalloc(spec->rollout_count, sizeof(struct store_member));
    unstored->groups = xcalloc(spec->group_count, sizeof(struct store_group));
    return unstored;
}

void unstored_destroy(struct unstored *unstored, size_t rollout_count)
{
    if (!unstored)
        return;
    for (size_t i = 0; i < rollout_count; i++) {
        struct unstored_row *row = &unstored->rows[i];
        buffer_finish(&row->verdicts);
        buffer_finish(&row->rewards);
        buffer_finish(&row->heldout);
        free(row->failure_code);
        free(row->failure_message);
        free(row->advantages);
    }
    free(unstored->rollouts);
    free(unstored->rows);
    free(unstored->members);
    free(unstored->groups);
    buffer_finish(&unstored->reply);
    free(unstored);
}

size_t unstored_bytes(const struct batch_spec *spec)
{
    return spec->rollout_count * 4096;
}

/* --- rows ---------------------------------------------------------------------------------------------- */

static struct buffer take_buffer(struct buffer *buffer)
{
    struct buffer taken = *buffer;
    buffer_init(buffer, 0);
    return taken;
}

static void keep_failure(struct store_failure *failure, struct unstored_row *row)
{
    if (!failure->code.data)
        return;
    row->failure_code = xstrndup(failure->code.data, failure->code.length_bytes);
    row->failure_message = xstrndup(failure->message.data, failure->message.length_bytes);
    failure->code.data = row->failure_code;
    failure->message.data = row->failure_message;
}

static void take_texts(struct unstored_row *row, struct verification *verification)
{
    row->verdicts = take_buffer(&verification->verdicts_json);
    row->rewards = take_buffer(&verification->rewards_json);
    row->heldout = take_buffer(&verification->heldout_json);
}

void unstored_keep_rollout(struct live_batch *live, uint32_t index, const struct store_rollout *values,
                           struct verification *verification)
{
    struct unstored_row *row = &live->unstored->rows[index];
    struct store_rollout *rollout = &live->unstored->rollouts[index];
    char group_id[ID_BYTES];

    *rollout = *values;
    rollout->incarnation = live->incarnation;
    id_of_group(live->id, live->batch.rollouts[index].group, group_id);
    id_of_rollout(group_id, rollout->sample_index, rollout->id);
    if (verification)
        take_texts(row, verification);
    rollout->verdicts = buffer_text(&row->verdicts);
    rollout->rewards = buffer_text(&row->rewards);
    rollout->heldout = buffer_text(&row->heldout);
    keep_failure(&rollout->failure, row);
    for (size_t t = 0; t < rollout->token_count && rollout->trainable; t++)
        rollout->trainable_tokens += rollout->completion_mask ? rollout->completion_mask[t] != 0 : 1;
}

/* --- groups -------------------------------------------------------------------------------------------- */

static void keep_advantages(struct unstored_row *row, const struct store_advantages *tokens,
                            struct store_rollout *rollout)
{
    if (!tokens->runs)
        return;
    row->advantages = xcalloc(tokens->count + 1, sizeof(*row->advantages));
    memcpy(row->advantages, tokens->runs, tokens->count * sizeof(*row->advantages));
    rollout->advantages = row->advantages;
    rollout->advantage_count = tokens->count;
}

void unstored_close_group(struct live_batch *live, uint32_t index, const struct store_close_group *close)
{
    const struct group_spec *spec = &live->spec->groups[index];
    const struct batch_group *members = &live->batch.groups[index];
    struct store_rollout *rollouts = live->unstored->rollouts + members->first;
    struct store_group *group = &live->unstored->groups[index];

    _cleanup_(duplicates_finish) struct duplicates duplicates;
    duplicates_init(&duplicates, members->count);
    for (uint32_t i = 0; i < members->count; i++) {
        struct text ids = {(const char *)rollouts[i].completion_ids, rollouts[i].token_count * sizeof(uint32_t)};
        rollouts[i].duplicate = (enum store_known)duplicates_add(&duplicates, ids, rollouts[i].text);
        bool rewarded = !isnan(rollouts[i].reward);
        rollouts[i].advantage = rewarded && close->advantage ? close->advantage[i] : NAN;
        rollouts[i].shaped_reward = rewarded && close->shaped_reward ? close->shaped_reward[i] : NAN;
        if (rewarded && close->tokens)
            keep_advantages(&live->unstored->rows[members->first + i], &close->tokens[i], &rollouts[i]);
    }
    *group = (struct store_group){.index = index,
                                  .task = spec->task,
                                  .draw = spec->draw,
                                  .n = spec->n,
                                  .state = STORE_GROUP_COMPLETE,
                                  .reward_mean = close->reward_mean,
                                  .reward_std = close->reward_std,
                                  .zero_variance = close->zero_variance,
                                  .verifiers = spec->verifiers_json,
                                  .metadata = spec->metadata_json,
                                  .tags = spec->tags_json,
                                  .set = spec->source.set,
                                  .split = spec->source.split,
                                  .prompt_ids = spec->prompt_ids,
                                  .prompt_id_count = spec->prompt_id_count,
                                  .rollouts = rollouts,
                                  .rollout_count = members->count};
    id_of_group(live->id, index, group->id);
    memcpy(group->batch_id, live->id, ID_BYTES);
}

const struct store_rollout *unstored_rollouts(const struct live_batch *live)
{
    return live->unstored->rollouts;
}

void unstored_members(const struct live_batch *live, struct store_members *ret_members)
{
    for (size_t i = 0; i < live->spec->rollout_count; i++) {
        const struct store_rollout *rollout = &live->unstored->rollouts[i];
        live->unstored->members[i] = (struct store_member){.group_index = live->batch.rollouts[i].group,
                                                           .sample_index = rollout->sample_index,
                                                           .state = rollout->state,
                                                           .reward = rollout->reward,
                                                           .shaped_reward = rollout->shaped_reward,
                                                           .advantage = rollout->advantage,
                                                           .trainable = rollout->trainable,
                                                           .trainable_tokens = rollout->trainable_tokens,
                                                           .completion_tokens = rollout->completion_tokens,
                                                           .policy_revision = rollout->policy_revision,
                                                           .incarnation = live->incarnation,
                                                           .finish_reason = rollout->finish_reason,
                                                           .failure_code = rollout->failure.code,
                                                           .heldout = rollout->heldout};
    }
    *ret_members = (struct store_members){.members = live->unstored->members, .count = live->spec->rollout_count};
}

/* --- the batch ----------------------------------------------------------------------------------------- */

static void count_states(const struct live_batch *live, struct store_batch *batch)
{
    for (size_t i = 0; i < live->spec->rollout_count; i++) {
        enum store_rollout_state state = live->unstored->rollouts[i].state;
        batch->scored += state == STORE_ROLLOUT_SCORED;
        batch->failed += state == STORE_ROLLOUT_FAILED;
        batch->cancelled += state == STORE_ROLLOUT_CANCELLED;
    }
}

static void fill_batch(const struct live_batch *live, const struct close_job *close, struct store_batch *batch)
{
    const struct batch_spec *spec = live->spec;
    *batch = (struct store_batch){.run = spec->run,
                                  .incarnation = live->incarnation,
                                  .purpose = (enum store_purpose)spec->purpose,
                                  .state = close->state,
                                  .policy_revision = live->policy_revision,
                                  .seed = spec->seed,
                                  .created_at_us = live->admitted_utc_us,
                                  .deadline_us = live->deadline_utc_us,
                                  .completed_at_us = clock_utc_us(),
                                  .sampling = spec->sampling_json,
                                  .objective = spec->objective_json,
                                  .verifiers = spec->verifiers_json,
                                  .metadata = spec->metadata_json,
                                  .returns = spec->returns_json,
                                  .loss = close->loss,
                                  .total_tokens = (int64_t)close->totals.tokens,
                                  .total_sequences = (int64_t)close->totals.sequences,
                                  .total_groups = (int64_t)close->totals.groups,
                                  .notes = buffer_text(&close->notes),
                                  .summary = buffer_text(&close->summary),
                                  .group_count = (int64_t)spec->group_count,
                                  .rollout_count = (int64_t)spec->rollout_count};
    memcpy(batch->id, live->id, ID_BYTES);
    memcpy(batch->request_sha256, spec->body_sha256, SHA256_BYTES);
    count_states(live, batch);
}

void unstored_render(const struct live_batch *live, const struct close_job *close)
{
    struct unstored *unstored = live->unstored;
    struct store_batch batch;
    fill_batch(live, close, &batch);
    buffer_init(&unstored->reply, UNSTORED_REPLY_MAX_BYTES);
    unstored->render(&batch, unstored->groups, unstored->arrays, &unstored->reply);
}

struct buffer unstored_take_reply(struct live_batch *live)
{
    return take_buffer(&live->unstored->reply);
}
