#include "server/record/group_record.h"

#include "server/base/cleanup.h"

#include <math.h>
#include <string.h>

bool group_record_is_needed(const struct objective_knobs *knobs)
{
    switch (knobs->advantage.estimator) {
    case OBJECTIVE_ESTIMATOR_OPO:
    case OBJECTIVE_ESTIMATOR_REWARD_TO_GO:
    case OBJECTIVE_ESTIMATOR_RPP:
    case OBJECTIVE_ESTIMATOR_RPP_BASELINE:
    case OBJECTIVE_ESTIMATOR_GDPO:
    case OBJECTIVE_ESTIMATOR_PROCESS:
        return true;
    default:
        return knobs->shaping_count > 0;
    }
}

static bool is_process(const struct objective_knobs *knobs)
{
    return knobs && knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_PROCESS;
}

static bool has_shaper(const struct objective_knobs *knobs, int kind)
{
    for (size_t i = 0; i < knobs->shaping_count; i++)
        if (knobs->shaping[i].kind == kind)
            return true;
    return false;
}

unsigned group_record_with(const struct objective_knobs *knobs, bool with_logprobs)
{
    bool arrays = with_logprobs || has_shaper(knobs, OBJECTIVE_SHAPER_LINEAR_LENGTH) ||
                  has_shaper(knobs, OBJECTIVE_SHAPER_REPETITION) || is_process(knobs);
    bool verdicts = knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO || is_process(knobs);
    return (arrays ? STORE_WITH_ARRAYS : 0) | (verdicts ? STORE_WITH_VERDICTS : 0);
}

static enum objective_finish finish_of(struct text reason)
{
    if (!reason.data)
        return OBJECTIVE_FINISH_UNKNOWN;
    return text_equals(reason, "length") ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER;
}

static void take_member(struct group_record *record, size_t index, const struct store_member *member)
{
    record->sample_index[index] = member->sample_index;
    record->sequences[index] = (struct objective_sequence){
        .reward = member->reward,
        .shaped_reward = member->shaped_reward,
        .rewarded = !isnan(member->reward),
        .untrainable = !member->trainable,
        .tokens = (size_t)member->trainable_tokens,
        .finish_reason = finish_of(member->finish_reason),
        .length = member->completion_tokens,
        .prompt_tokens = -1,
        .turns = 1,
        .greedy_reward = NAN,
        .advantage = member->advantage,
    };
}

struct objective_sequence group_record_sequence(const struct store_rollout *rollout)
{
    bool arrays = rollout->completion_ids && rollout->logprobs;

    return (struct objective_sequence){
        .reward = rollout->reward,
        .shaped_reward = rollout->shaped_reward,
        .rewarded = !isnan(rollout->reward),
        .untrainable = !rollout->trainable,
        .tokens = arrays ? rollout->token_count : (size_t)rollout->trainable_tokens,
        .mask = arrays ? rollout->completion_mask : NULL,
        .logprobs.f32 = arrays ? rollout->logprobs : NULL,
        .completion_ids = rollout->completion_ids,
        .completion_id_count = rollout->token_count,
        .finish_reason = finish_of(rollout->finish_reason),
        .length = rollout->completion_tokens,
        .prompt_tokens = -1,
        .turns = 1,
        .greedy_reward = NAN,
        .advantage = rollout->advantage,
    };
}

void group_record_reward_by_advantage(struct group_record *record)
{
    for (size_t i = 0; i < record->count; i++)
        record->sequences[i].rewarded = !isnan(record->sequences[i].advantage);
}

/* --- scores by name --- */

static void take_score(double *scores, json_t *names, const char *name, const json_t *part)
{
    json_t *number = json_object_get(names, name);
    const json_t *score = json_object_get(part, "score");
    const json_t *weight = json_object_get(part, "weight");

    if (!number && json_object_size(names) < GROUP_RECORD_SCORES) {
        json_object_set_new(names, name, json_integer((json_int_t)json_object_size(names)));
        number = json_object_get(names, name);
    }
    if (!number || !json_is_number(score))
        return;
    scores[json_integer_value(number)] = json_number_value(score);
    scores[GROUP_RECORD_SCORES + json_integer_value(number)] = json_is_number(weight) ? json_number_value(weight) : 1;
}

/* The recorded reward decides whether a member is `rewarded`: `missing` was applied there. */
static void take_scores(struct group_record *record, size_t index, struct text text, json_t *names)
{
    struct objective_sequence *sequence = &record->sequences[index];
    double *scores = record->scores + index * 2 * GROUP_RECORD_SCORES;
    const char *name;
    json_t *part;

    for (size_t k = 0; k < GROUP_RECORD_SCORES; k++)
        scores[k] = NAN;
    sequence->scores = scores;
    sequence->weights_of_scores = scores + GROUP_RECORD_SCORES;
    json_auto_t *rewards = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    json_object_foreach (rewards, name, part) {
        take_score(scores, names, name, part);
    }
}

/* --- steps, and advantages of tokens --- */

static void take_steps(struct group_record *record, size_t index, const struct store_rollout *rollout, int missing)
{
    struct objective_sequence *sequence = &record->sequences[index];
    struct graded_steps *steps = &record->steps[index];

    graded_steps_read(rollout->rewards, rollout->verdicts, missing, steps);
    sequence->steps = steps->steps;
    sequence->step_count = steps->count;
    sequence->has_outcome = steps->has_outcome;
    sequence->outcome = steps->outcome;
}

static void take_token_advantages(struct group_record *record, size_t index, const struct store_rollout *rollout)
{
    if (!rollout->logprobs || !(record->token_advantages[index] = token_advantages_of(rollout)))
        return;
    record->sequences[index].token_advantages = record->token_advantages[index];
}

/* --- reading --- */

static void make_room(struct group_record *record, size_t count)
{
    record->count = count;
    record->sample_index = xcalloc(count + 1, sizeof *record->sample_index);
    record->sequences = xcalloc(count + 1, sizeof *record->sequences);
}

void group_record_of_rollouts(const struct store_rollout *rollouts, size_t count, int64_t prompt_tokens,
                              const struct objective_knobs *knobs, json_t *names, struct group_record *ret_record)
{
    struct group_record record = *ret_record;

    make_room(&record, count);
    record.scores = names ? xcalloc(count + 1, 2 * GROUP_RECORD_SCORES * sizeof *record.scores) : NULL;
    record.steps = is_process(knobs) ? xcalloc(count + 1, sizeof *record.steps) : NULL;
    record.token_advantages = xcalloc(count + 1, sizeof *record.token_advantages);
    for (size_t i = 0; i < count; i++) {
        record.sample_index[i] = rollouts[i].sample_index;
        record.sequences[i] = group_record_sequence(&rollouts[i]);
        record.sequences[i].prompt_tokens = prompt_tokens;
        take_token_advantages(&record, i, &rollouts[i]);
        if (record.steps)
            take_steps(&record, i, &rollouts[i], knobs->advantage.missing);
        if (names)
            take_scores(&record, i, rollouts[i].rewards, names);
    }
    *ret_record = record;
}

enum store_status group_record_read(struct store_reader *reader, struct text group_id,
                                    const struct objective_knobs *knobs, bool with_logprobs, json_t *names,
                                    struct group_record *ret_record)
{
    unsigned with = group_record_with(knobs, with_logprobs);

    *ret_record = (struct group_record){.has_group = with != 0};
    enum store_status status = with ? store_read_group(reader, group_id, with, &ret_record->group)
                                    : store_read_group_members(reader, group_id, &ret_record->members);
    if (status != STORE_OK)
        return status;
    if (with) {
        const struct store_group *group = &ret_record->group;
        int64_t prompt_tokens = group->prompt_ids ? (int64_t)group->prompt_id_count : -1;
        bool by_name = knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO;
        group_record_of_rollouts(group->rollouts, group->rollout_count, prompt_tokens, knobs, by_name ? names : NULL,
                                 ret_record);
        return STORE_OK;
    }
    make_room(ret_record, ret_record->members.count);
    for (size_t i = 0; i < ret_record->count; i++)
        take_member(ret_record, i, &ret_record->members.members[i]);
    return STORE_OK;
}

void group_record_finish(struct group_record *record)
{
    store_members_finish(&record->members);
    if (record->has_group)
        store_group_finish(&record->group);
    for (size_t i = 0; i < record->count; i++) {
        if (record->steps)
            graded_steps_finish(&record->steps[i]);
        if (record->token_advantages)
            free(record->token_advantages[i]);
    }
    free(record->steps);
    free(record->token_advantages);
    free(record->sample_index);
    free(record->sequences);
    free(record->scores);
    *record = (struct group_record){0};
}
