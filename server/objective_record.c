/* The stored form: what the record knows of the rollouts that a request names. */
#include "server/base/ids.h"
#include "server/objective_call.h"
#include "server/objective_json.h"
#include "server/store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct store_results {
    struct store_rollouts *rollouts; /* one read for each item; arrays and texts live here */
    size_t count;
};

void store_results_destroy(struct store_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->count; i++)
        store_rollouts_finish(&results->rollouts[i]);
    free(results->rollouts);
    free(results);
}

static int refuse_store(struct objective_call *objective)
{
    return call_refuse(objective->call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
}

/* --- one rollout --- */

/* The record holds f32, so what is compared with it is rounded to f32 too. Values beyond it become infinite and are
 * refused. */
static int round_to_f32(struct objective_call *objective, struct objective_values *values, size_t tokens)
{
    float *rounded;

    if (!values->f64)
        return 0;
    if (!(rounded = objective_allocate(objective, tokens, sizeof *rounded)))
        return -1;
    for (size_t t = 0; t < tokens; t++)
        rounded[t] = (float)values->f64[t];
    *values = (struct objective_values){.f32 = rounded};
    return 0;
}

static int combine_masks(struct objective_call *objective, struct objective_sequence *sequence, const uint8_t *recorded)
{
    uint8_t *both;

    if (!recorded)
        return 0;
    if (!sequence->mask) {
        sequence->mask = recorded;
        return 0;
    }
    if (!(both = objective_allocate(objective, sequence->tokens, 1)))
        return -1;
    for (size_t t = 0; t < sequence->tokens; t++)
        both[t] = sequence->mask[t] && recorded[t];
    sequence->mask = both;
    return 0;
}

static int check_rollout(struct objective_call *objective, size_t index, const struct store_rollout *rollout)
{
    char message[96];

    if (rollout->purpose == STORE_EVAL)
        return objective_refuse(objective, ERR_EVAL_GROUP, index, "rollout", NO_TOKEN,
                                "a rollout of an evaluation is never trained on");
    if (rollout->trainable && rollout->logprobs && rollout->token_count != objective->sequences[index].tokens) {
        snprintf(message, sizeof message, "%zu values, but the record has %zu tokens",
                 objective->sequences[index].tokens, rollout->token_count);
        return objective_refuse(objective, ERR_LENGTH_MISMATCH, index, "logprobs", NO_TOKEN, message);
    }
    if (!isnan(rollout->reward) && isnan(rollout->advantage))
        return objective_refuse(objective, ERR_STATE_CONFLICT, index, "rollout", NO_TOKEN,
                                "its group is still running, so it has no advantage yet");
    return 0;
}

static int fill_sequence(struct objective_call *objective, size_t index, const struct store_rollout *rollout)
{
    struct objective_sequence *sequence = &objective->sequences[index];
    bool has_logprobs = rollout->trainable && rollout->logprobs;

    objective->items[index].group = text_of(rollout->group_id);
    sequence->reward = rollout->reward;
    sequence->judged = !isnan(rollout->reward);
    sequence->advantage = rollout->advantage;
    sequence->untrainable = !has_logprobs;
    sequence->length = rollout->completion_tokens;
    sequence->finish_reason = text_equals(rollout->finish_reason, "length") ? OBJECTIVE_FINISH_LENGTH
                              : rollout->finish_reason.data                 ? OBJECTIVE_FINISH_OTHER
                                                                            : OBJECTIVE_FINISH_UNKNOWN;
    if (round_to_f32(objective, &sequence->logprobs, sequence->tokens) < 0 ||
        round_to_f32(objective, &sequence->old_logprobs, sequence->tokens) < 0 ||
        round_to_f32(objective, &sequence->ref_logprobs, sequence->tokens) < 0)
        return -1;
    if (!has_logprobs)
        return 0;
    sequence->rollout_logprobs.f32 = rollout->logprobs;
    if (!sequence->old_logprobs.f32) {
        sequence->old_logprobs.f32 = rollout->logprobs;
        objective_note(objective, "old_logprobs were taken from the record: the engine's own log-probabilities");
    }
    return combine_masks(objective, sequence, rollout->completion_mask);
}

static int read_rollout(struct objective_call *objective, struct store_reader *reader, size_t index)
{
    struct store_rollouts *found = &objective->results->rollouts[index];
    enum store_status status = store_read_rollout(reader, objective->items[index].rollout, STORE_WITH_ARRAYS, found);

    if (status == STORE_NOT_FOUND)
        return objective_refuse(objective, ERR_NOT_FOUND, index, "rollout", NO_TOKEN, "no rollout has this id");
    if (status != STORE_OK || found->count != 1)
        return refuse_store(objective);
    if (check_rollout(objective, index, &found->rollouts[0]) < 0)
        return -1;
    return fill_sequence(objective, index, &found->rollouts[0]);
}

static const struct store_rollout *rollout_of(const struct objective_call *objective, size_t index)
{
    return &objective->results->rollouts[index].rollouts[0];
}

static int compare_ids(const void *left, const void *right, void *objective)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    int order = strcmp(rollout_of(objective, a)->id, rollout_of(objective, b)->id);
    return order ? order : (a > b) - (a < b);
}

/* A rollout that is named twice would be trained on twice. */
static int check_twins(struct objective_call *objective)
{
    size_t *order = objective_allocate(objective, objective->count, sizeof *order);

    if (!order)
        return -1;
    for (size_t i = 0; i < objective->count; i++)
        order[i] = i;
    qsort_r(order, objective->count, sizeof *order, compare_ids, objective);
    for (size_t k = 1; k < objective->count; k++)
        if (strcmp(rollout_of(objective, order[k])->id, rollout_of(objective, order[k - 1])->id) == 0)
            return objective_refuse(objective, ERR_INVALID_FIELD, order[k], "rollout", NO_TOKEN,
                                    "this rollout is named twice");
    return 0;
}

/* --- groups --- */

/* One group of the record: statistics over all its members, and the advantages that the request's rule gives them. */
struct recorded_group {
    int64_t *sample_index;
    double *advantages;
    size_t count;
    bool known;
};

static int read_group(struct objective_call *objective, struct store_reader *reader, size_t group,
                      struct recorded_group *ret_group)
{
    struct store_members members = {0};
    enum store_status status = store_read_group_members(reader, objective->group_names[group], &members);
    int result = 0;

    if (status != STORE_OK)
        return refuse_store(objective);
    ret_group->count = members.count;
    ret_group->known = true;
    ret_group->sample_index = objective_allocate(objective, members.count + 1, sizeof *ret_group->sample_index);
    ret_group->advantages = objective_allocate(objective, members.count + 1, sizeof *ret_group->advantages);
    if (!ret_group->sample_index || !ret_group->advantages)
        result = -1;
    for (size_t i = 0; result == 0 && i < members.count; i++) {
        ret_group->sample_index[i] = members.members[i].sample_index;
        ret_group->advantages[i] = members.members[i].reward;
    }
    store_members_finish(&members);
    if (result == 0 && objective_group_advantages(&objective->knobs, ret_group->count, ret_group->advantages,
                                                  ret_group->advantages, &objective->groups[group]) < 0)
        return call_refuse(objective->call, ERR_NON_FINITE, NULL,
                           "the advantages of a recorded group cannot be computed by this rule");
    return result;
}

static double advantage_of(const struct recorded_group *group, int64_t sample_index)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->sample_index[i] == sample_index)
            return group->advantages[i];
    return NAN;
}

/* --- objectives --- */

/* Whether the batch's own advantage rule is the request's; `missing` decided about rewards when they were recorded. */
static int same_rule(struct objective_call *objective, struct store_reader *reader, const char *batch_id,
                     bool *ret_same)
{
    struct store_batch batch = {0};
    struct objective_knobs recorded;
    enum store_status status = store_read_batch(reader, text_of(batch_id), &batch);

    if (status != STORE_OK)
        return refuse_store(objective);
    bool readable = objective_json_parse(batch.objective, &recorded) == 0;
    store_batch_finish(&batch);
    if (readable)
        recorded.advantage.missing = objective->knobs.advantage.missing;
    *ret_same = readable && objective_same_advantage_rule(&objective->knobs, &recorded);
    return 0;
}

static int recompute(struct objective_call *objective, size_t index, const struct recorded_group *group)
{
    struct objective_sequence *sequence = &objective->sequences[index];

    if (objective_needs_whole_batch(&objective->knobs))
        return call_refuse(objective->call, ERR_OBJECTIVE_OPTIONS, "objective.advantage.scale",
                           "the batch was sampled with another rule, and this one needs the whole batch");
    objective_note(objective,
                   "advantages were recomputed from the recorded rewards: this advantage rule is not the one "
                   "the batch was sampled with");
    if (sequence->judged)
        sequence->advantage = advantage_of(group, rollout_of(objective, index)->sample_index);
    return 0;
}

static int find_advantages(struct objective_call *objective, struct store_reader *reader)
{
    struct recorded_group *groups = objective_allocate(objective, objective->group_count, sizeof *groups);
    const char *batch_id = "";
    bool same = false;

    if (!groups)
        return -1;
    for (size_t i = 0; i < objective->count; i++) {
        const struct store_rollout *rollout = rollout_of(objective, i);
        size_t group = objective->sequences[i].group;
        if (!groups[group].known && read_group(objective, reader, group, &groups[group]) < 0)
            return -1;
        if (strcmp(batch_id, rollout->batch_id) != 0 && same_rule(objective, reader, rollout->batch_id, &same) < 0)
            return -1;
        batch_id = rollout->batch_id;
        if (!same && recompute(objective, i, &groups[group]) < 0)
            return -1;
    }
    return 0;
}

/* Without an objective of its own the request means that of the batch. */
static int adopt_objective(struct objective_call *objective, struct store_reader *reader)
{
    struct store_batch batch = {0};

    if (objective->has_objective)
        return 0;
    if (store_read_batch(reader, text_of(rollout_of(objective, 0)->batch_id), &batch) != STORE_OK)
        return refuse_store(objective);
    int result = objective_json_parse(batch.objective, &objective->knobs);
    store_batch_finish(&batch);
    if (result < 0)
        return call_refuse(objective->call, ERR_MISSING_FIELD, "objective",
                           "the recorded objective of the batch cannot be read by this version");
    objective_note(objective, "the objective is the batch's own: the request brings none");
    return 0;
}

static void find_run(struct objective_call *objective)
{
    objective->run = rollout_of(objective, 0)->run;
    for (size_t i = 1; i < objective->count; i++) {
        if (text_same(objective->run, rollout_of(objective, i)->run))
            continue;
        if (objective->keep)
            objective_note(objective, "this call is not kept: its rollouts belong to several runs");
        objective->keep = false;
    }
}

int objective_record_fill(struct objective_call *objective, struct store_reader *reader)
{
    struct store_results *results = calloc(1, sizeof *results);

    objective->results = results;
    if (results)
        results->rollouts = calloc(objective->count, sizeof *results->rollouts);
    if (!results || !results->rollouts)
        return call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
    if (!reader)
        return refuse_store(objective);
    results->count = objective->count;
    for (size_t i = 0; i < objective->count; i++)
        if (read_rollout(objective, reader, i) < 0)
            return -1;
    if (check_twins(objective) < 0 || adopt_objective(objective, reader) < 0)
        return -1;
    if (objective_number_groups(objective) < 0 || find_advantages(objective, reader) < 0)
        return -1;
    objective->advantages_given = true;
    find_run(objective);
    return 0;
}
