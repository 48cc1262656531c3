/* The stored form: what the record knows of the rollouts that a request names. */
#include "server/base/ids.h"
#include "server/objective_call/objective_call.h"
#include "server/record/group_record.h"
#include "server/spec/objective.h"
#include "server/store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct store_results {
    struct store_rollouts *rollouts; /* one read for each item; arrays and texts live here */
    size_t count;
    struct group_record *groups; /* [group_count] of the call, once they are read */
    size_t group_count;
    bool *same_rule; /* [group_count]: their batch was sampled by the request's advantage rule */
};

void store_results_destroy(struct store_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->count; i++)
        store_rollouts_finish(&results->rollouts[i]);
    for (size_t g = 0; g < results->group_count; g++)
        group_record_finish(&results->groups[g]);
    free(results->rollouts);
    free(results->groups);
    free(results->same_rule);
    free(results);
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
    sequence->rewarded = !isnan(rollout->reward);
    sequence->advantage = rollout->advantage;
    sequence->shaped_reward = rollout->shaped_reward;
    sequence->untrainable = !has_logprobs;
    sequence->turns = 1;
    sequence->completion_ids = rollout->completion_ids;
    sequence->completion_id_count = rollout->token_count;
    sequence->length = rollout->completion_tokens;
    sequence->finish_reason = text_equals(rollout->finish_reason, "length") ? OBJECTIVE_FINISH_LENGTH
                              : rollout->finish_reason.data                 ? OBJECTIVE_FINISH_OTHER
                                                                            : OBJECTIVE_FINISH_UNKNOWN;
    if (round_to_f32(objective, &sequence->logprobs, sequence->tokens) < 0 ||
        round_to_f32(objective, &sequence->old_logprobs, sequence->tokens) < 0 ||
        round_to_f32(objective, &sequence->ref_logprobs, sequence->tokens) < 0 ||
        round_to_f32(objective, &sequence->teacher_logprobs, sequence->tokens) < 0)
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
        return call_refuse_unreadable(objective->call);
    if (check_rollout(objective, index, &found->rollouts[0]) < 0)
        return -1;
    return fill_sequence(objective, index, &found->rollouts[0]);
}

const struct store_rollout *objective_rollout(const struct objective_call *objective, size_t index)
{
    return &objective->results->rollouts[index].rollouts[0];
}

static int compare_ids(const void *left, const void *right, void *objective)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    int order = strcmp(objective_rollout(objective, a)->id, objective_rollout(objective, b)->id);
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
        if (strcmp(objective_rollout(objective, order[k])->id, objective_rollout(objective, order[k - 1])->id) == 0)
            return objective_refuse(objective, ERR_INVALID_FIELD, order[k], "rollout", NO_TOKEN,
                                    "this rollout is named twice");
    return 0;
}

/* --- groups --- */

/* Statistics of the group, from its members' recorded rewards or by the request's own rule: then every
 * member gets its advantage and shaped reward anew. */
static int describe_group(struct objective_call *objective, size_t group, bool anew)
{
    struct group_record *record = &objective->results->groups[group];
    struct objective_knobs knobs = objective->knobs;
    struct objective_error error;

    knobs.advantage.teacher_coef = 0; /* at the evaluation */
    for (size_t i = 0; !anew && i < record->count; i++) {
        record->sequences[i].advantage = 0;            /* the statistics alone are wanted */
        if (isnan(record->sequences[i].shaped_reward)) /* its group is still running */
            record->sequences[i].shaped_reward = record->sequences[i].reward;
    }
    if (objective_advantages(&(struct objective_request){.knobs = &knobs,
                                                         .sequences = record->sequences,
                                                         .sequence_count = record->count,
                                                         .groups = &objective->groups[group],
                                                         .group_count = 1,
                                                         .advantages_given = !anew,
                                                         .shaped_given = !anew},
                             &error) == 0)
        return 0;
    return call_refuse(objective->call,
                       error.code == OBJECTIVE_ERROR_MISSING_INPUT ? ERR_OBJECTIVE_OPTIONS : ERR_NON_FINITE,
                       error.code == OBJECTIVE_ERROR_MISSING_INPUT ? "objective" : "sequences",
                       "the advantages of a recorded group cannot be computed by this rule: %s", error.message);
}

static const struct objective_sequence *member_of(const struct objective_call *objective, size_t index)
{
    const struct group_record *record = &objective->results->groups[objective->sequences[index].group];

    for (size_t k = 0; k < record->count; k++)
        if (record->sample_index[k] == objective_rollout(objective, index)->sample_index)
            return &record->sequences[k];
    return NULL;
}

/* Every member with a reward, of every group, is in the request. */
static bool groups_are_whole(struct objective_call *objective)
{
    bool whole = true;
    size_t *missing = objective_allocate(objective, objective->group_count, sizeof *missing);

    if (!missing)
        return false;
    for (size_t g = 0; g < objective->group_count; g++)
        for (size_t k = 0; k < objective->results->groups[g].count; k++)
            missing[g] += objective->results->groups[g].sequences[k].rewarded;
    for (size_t i = 0; i < objective->count; i++)
        missing[objective->sequences[i].group] -= !isnan(objective->sequences[i].reward);
    for (size_t g = 0; g < objective->group_count; g++)
        whole = whole && missing[g] == 0;
    return whole;
}

static int refuse_incomplete(struct objective_call *objective)
{
    return call_refuse(objective->call, ERR_INCOMPLETE_GROUP, "sequences",
                       "this objective needs every member of a group that has a reward in one request");
}

/* --- objectives --- */

/* Whether the batch's own advantage rule is the request's; `missing` decided about rewards when they were recorded, and
 * the teacher's term is added at the evaluation. */
static int read_rule(struct objective_call *objective, struct store_reader *reader, const char *batch_id,
                     bool *ret_same)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    struct objective_knobs recorded;
    enum store_status status = store_read_batch(reader, text_of(batch_id), &batch);

    if (status != STORE_OK)
        return call_refuse_unreadable(objective->call);
    bool readable = objective_json_parse(batch.objective, &recorded) == 0;
    if (readable) {
        recorded.advantage.missing = objective->knobs.advantage.missing;
        recorded.advantage.teacher_coef = objective->knobs.advantage.teacher_coef;
    }
    *ret_same = readable && objective_same_advantage_rule(&objective->knobs, &recorded);
    return 0;
}

static int read_groups(struct objective_call *objective, struct store_reader *reader, json_t *names)
{
    struct store_results *results = objective->results;
    bool *known = objective_allocate(objective, objective->group_count, sizeof *known);
    const char *batch_id = "";
    bool same = false;

    results->groups = calloc(objective->group_count, sizeof *results->groups);
    results->same_rule = calloc(objective->group_count, sizeof *results->same_rule);
    if (!known || !results->groups || !results->same_rule)
        return call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
    results->group_count = objective->group_count;
    for (size_t i = 0; i < objective->count; i++) {
        const struct store_rollout *rollout = objective_rollout(objective, i);
        size_t group = objective->sequences[i].group;
        if (known[group])
            continue;
        known[group] = true;
        if (group_record_read(reader, objective->group_names[group], &objective->knobs, false, names,
                              &results->groups[group]) != STORE_OK)
            return call_refuse_unreadable(objective->call);
        if (strcmp(batch_id, rollout->batch_id) != 0 && read_rule(objective, reader, rollout->batch_id, &same) < 0)
            return -1;
        batch_id = rollout->batch_id;
        results->same_rule[group] = same;
    }
    return 0;
}

#define RECOMPUTED                                                                                                     \
    "advantages were recomputed from the recorded rewards: this advantage rule is not the one the batch was sampled "  \
    "with"

/* The rule needs more than one group, or the tokens: the request itself is evaluated, with the record's rewards. */
static int evaluate_from_rewards(struct objective_call *objective)
{
    const char *whole = objective_needs_whole_request(&objective->knobs, false);
    char path[PATH_BYTES];

    path_join(path, "objective", whole ? whole : "advantage.estimator");
    if (objective->has_totals)
        return call_refuse(objective->call, ERR_OBJECTIVE_OPTIONS, path,
                           "the batch was sampled with another rule, and with totals this may be a part: this rule "
                           "needs the whole request");
    if (!groups_are_whole(objective))
        return refuse_incomplete(objective);
    for (size_t i = 0; i < objective->count; i++) {
        const struct objective_sequence *member = member_of(objective, i);
        struct objective_sequence *sequence = &objective->sequences[i];
        sequence->prompt_tokens = member ? member->prompt_tokens : -1;
        sequence->scores = member ? member->scores : NULL;
        sequence->weights_of_scores = member ? member->weights_of_scores : NULL;
        sequence->steps = member ? member->steps : NULL;
        sequence->step_count = member ? member->step_count : 0;
        sequence->has_outcome = member && member->has_outcome;
        sequence->outcome = member ? member->outcome : NAN;
        sequence->rewarded = member ? member->rewarded : sequence->rewarded;
    }
    objective->score_count = objective->knobs.advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO ? GROUP_RECORD_SCORES : 0;
    objective->baselines = objective_allocate(objective, 1, sizeof *objective->baselines);
    objective_note(objective, RECOMPUTED);
    return objective->baselines ? 0 : -1;
}

static bool rule_needs_more(const struct objective_knobs *knobs)
{
    struct objective_knobs plain = *knobs;

    plain.advantage.teacher_coef = 0;
    return objective_needs_whole_batch(knobs) || objective_is_per_token(&plain) ||
           (knobs->kl.in == OBJECTIVE_KL_IN_REWARD && knobs->beta > 0);
}

/* Of a rule that gave each token its own: they are the rollout's, whose arrays were read. */
static int take_token_advantages(struct objective_call *objective, size_t index)
{
    _cleanup_free_ double *recorded = token_advantages_of(objective_rollout(objective, index));
    struct objective_sequence *sequence = &objective->sequences[index];
    double *advantages;

    if (!recorded || sequence->untrainable)
        return 0;
    if (!(advantages = objective_allocate(objective, sequence->tokens + 1, sizeof *advantages)))
        return -1;
    memcpy(advantages, recorded, sequence->tokens * sizeof *advantages);
    sequence->token_advantages = advantages;
    return 0;
}

/* From the record, or anew by the rule inside each group. */
static int take_advantages(struct objective_call *objective)
{
    for (size_t g = 0; g < objective->group_count; g++)
        if (describe_group(objective, g, !objective->results->same_rule[g]) < 0)
            return -1;
    for (size_t i = 0; i < objective->count; i++) {
        struct objective_sequence *sequence = &objective->sequences[i];
        const struct objective_sequence *member = member_of(objective, i);
        bool same = objective->results->same_rule[sequence->group];
        if (same && take_token_advantages(objective, i) < 0)
            return -1;
        if (same || !member)
            continue;
        objective_note(objective, RECOMPUTED);
        sequence->advantage = member->advantage;
        sequence->shaped_reward = member->shaped_reward;
    }
    bool by_group = objective->knobs.loss.kind == OBJECTIVE_LOSS_REAL ||
                    (objective->has_totals && objective_needs_whole_groups(&objective->knobs));
    if (by_group && !groups_are_whole(objective))
        return refuse_incomplete(objective);
    objective->advantages_given = objective->record_given = true;
    return 0;
}

static int find_advantages(struct objective_call *objective, struct store_reader *reader)
{
    bool all_same = true;
    json_auto_t *names = json_object();

    if (read_groups(objective, reader, names) < 0)
        return -1;
    for (size_t g = 0; g < objective->group_count; g++)
        all_same = all_same && objective->results->same_rule[g];
    return !all_same && rule_needs_more(&objective->knobs) ? evaluate_from_rewards(objective)
                                                           : take_advantages(objective);
}

/* Refuses a correction that the record's own log-probabilities cannot give. */
static int check_importance(struct objective_call *objective)
{
    for (size_t i = 0; objective->knobs.importance_count > 0 && i < objective->count; i++)
        if (!objective->items[i].has_old_logprobs && objective->sequences[i].rewarded)
            return objective_refuse(objective, ERR_OBJECTIVE_OPTIONS, i, "old_logprobs", NO_TOKEN,
                                    "importance compares them with the record's: without them every weight is 1");
    return 0;
}

/* Without an objective of its own the request means that of the batch. */
static int adopt_objective(struct objective_call *objective, struct store_reader *reader)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};

    if (objective->has_objective)
        return 0;
    if (store_read_batch(reader, text_of(objective_rollout(objective, 0)->batch_id), &batch) != STORE_OK)
        return call_refuse_unreadable(objective->call);
    if (objective_json_parse(batch.objective, &objective->knobs) < 0)
        return call_refuse(objective->call, ERR_MISSING_FIELD, "objective",
                           "the recorded objective of the batch cannot be read by this version");
    objective_note(objective, "the objective is the batch's own: the request brings none");
    return 0;
}

static void find_run(struct objective_call *objective)
{
    objective->run = objective_rollout(objective, 0)->run;
    for (size_t i = 1; i < objective->count; i++) {
        if (text_same(objective->run, objective_rollout(objective, i)->run))
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
        return call_refuse_unreadable(objective->call);
    results->count = objective->count;
    for (size_t i = 0; i < objective->count; i++)
        if (read_rollout(objective, reader, i) < 0)
            return -1;
    if (check_twins(objective) < 0 || adopt_objective(objective, reader) < 0)
        return -1;
    if (objective_check_totals(objective) < 0 || check_importance(objective) < 0 ||
        objective_number_groups(objective) < 0 || find_advantages(objective, reader) < 0)
        return -1;
    find_run(objective);
    return 0;
}
