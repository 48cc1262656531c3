/* One of `sequences` in the body of POST /v1/objective, read and checked. */
#include "server/base/words.h"
#include "server/objective_call/objective_call.h"
#include "server/objective_call/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct sequence_fields {
    struct text rollout, group, agent;
    int finish_reason; /* -1: not said */
    json_t *reward, *rewards, *step_rewards, *advantage;
    struct numbers token_advantages, token_rewards, mask, completion_ids;
    struct numbers logprobs, old_logprobs, ref_logprobs, rollout_logprobs;
    struct numbers teacher_logprobs, entropy, sum_pi_squared;
    double greedy_reward;
    int64_t length, prompt_tokens, turns;
};

#define AT(member) offsetof(struct sequence_fields, member)
#define FINISH(name, word) FINISH_##name,
enum { FINISH_REASON_WORDS(FINISH) };
static const char *const finish_reasons[] = {FINISH_REASON_WORDS(WORD_TEXT) NULL};

/* clang-format off */
#define NUMBERS(name) {#name, FIELD_NUMBERS, FIELD_NULLABLE, AT(name), 0, 0, NULL}
#define COUNT_OF(name) {#name, FIELD_INT, FIELD_NULLABLE, AT(name), 0, 0x1p53, NULL}

/* `advantage` is one number or one for each token, so it stands in the table in one of two ways. */
#define SEQUENCE_TABLE(advantage_row) \
    { \
        {"rollout", FIELD_TEXT, 0, AT(rollout), 0, 256, NULL}, \
        {"group", FIELD_TEXT, 0, AT(group), 0, 1024, NULL}, \
        {"reward", FIELD_ANY, 0, AT(reward), 0, 0, NULL}, \
        {"rewards", FIELD_OBJECT, 0, AT(rewards), 0, 0, NULL}, \
        advantage_row, \
        {"step_rewards", FIELD_ANY, FIELD_NULLABLE, AT(step_rewards), 0, 0, NULL}, \
        {"finish_reason", FIELD_CHOICE, FIELD_NULLABLE, AT(finish_reason), 0, 0, finish_reasons}, \
        {"agent", FIELD_TEXT, FIELD_NULLABLE, AT(agent), 0, 256, NULL}, \
        {"greedy_reward", FIELD_DOUBLE, FIELD_NULLABLE, AT(greedy_reward), 0, 0, NULL}, \
        COUNT_OF(length), COUNT_OF(prompt_tokens), COUNT_OF(turns), \
        NUMBERS(mask), NUMBERS(token_rewards), NUMBERS(completion_ids), NUMBERS(logprobs), NUMBERS(old_logprobs), \
        NUMBERS(ref_logprobs), NUMBERS(rollout_logprobs), NUMBERS(teacher_logprobs), NUMBERS(entropy), \
        NUMBERS(sum_pi_squared) \
    }
#define ADVANTAGE_NUMBER {"advantage", FIELD_ANY, 0, AT(advantage), 0, 0, NULL}
#define ADVANTAGE_NUMBERS {"advantage", FIELD_NUMBERS, 0, AT(token_advantages), 0, 0, NULL}
/* clang-format on */

static const struct field with_number[] = SEQUENCE_TABLE(ADVANTAGE_NUMBER);
static const struct field with_numbers[] = SEQUENCE_TABLE(ADVANTAGE_NUMBERS);

static bool is_single(const json_t *value)
{
    return json_is_number(value) || json_is_null(value);
}

/* --- rewards --- */

static int read_score(struct objective_call *objective, size_t index, const char *name, const json_t *part,
                      double *ret_score, double *ret_weight)
{
    char path[PATH_BYTES];
    const json_t *score = json_object_get(part, "score");
    const json_t *weight = json_object_get(part, "weight");
    bool whole = json_is_object(part) && json_object_size(part) == (weight ? 2U : 1U);

    snprintf(path, sizeof path, "rewards.%s", name);
    if (!whole || !score || !is_single(score) || (weight && !json_is_number(weight)))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, path, NO_TOKEN,
                                "expected {\"score\": number or null, \"weight\": number}");
    *ret_score = json_is_null(score) ? NAN : json_number_value(score);
    *ret_weight = weight ? json_number_value(weight) : 1;
    if (isinf(*ret_score * *ret_weight))
        return objective_refuse(objective, ERR_NON_FINITE, index, path, NO_TOKEN,
                                "score times weight is beyond double");
    return 0;
}

static int read_rewards(struct objective_call *objective, size_t index, json_t *rewards, double *ret_reward)
{
    size_t n = json_object_size(rewards);
    size_t i = 0;
    const char *name;
    json_t *part;
    double *scores = objective_allocate(objective, 2 * n + 1, sizeof *scores);

    if (!scores)
        return -1;
    json_object_foreach (rewards, name, part) {
        if (read_score(objective, index, name, part, &scores[i], &scores[n + i]) < 0)
            return -1;
        i++;
    }
    *ret_reward = objective_combine_rewards(n, scores, scores + n, objective->knobs.advantage.missing);
    if (isinf(*ret_reward))
        return objective_refuse(objective, ERR_NON_FINITE, index, "rewards", NO_TOKEN, "their sum is beyond double");
    return 0;
}

/* [[end, reward], …], ends rising, within the tokens. */
static int read_steps(struct objective_call *objective, size_t index, const json_t *list, size_t tokens)
{
    struct objective_sequence *sequence = &objective->sequences[index];
    size_t count = json_array_size(list);
    struct objective_step *steps = objective_allocate(objective, count + 1, sizeof *steps);
    json_int_t last = 0;

    if (!steps)
        return -1;
    if (!json_is_array(list) || count == 0)
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "step_rewards", NO_TOKEN,
                                "expected a list of [end, reward]");
    for (size_t s = 0; s < count; s++) {
        const json_t *step = json_array_get(list, s);
        const json_t *end = json_array_get(step, 0);
        const json_t *reward = json_array_get(step, 1);
        int64_t at;
        if (json_array_size(step) != 2 || !json_whole(end, &at) || !json_is_number(reward))
            return objective_refuse(objective, ERR_INVALID_FIELD, index, "step_rewards", s, "expected [end, reward]");
        if (at <= last || (size_t)at > tokens)
            return objective_refuse(objective, ERR_INVALID_FIELD, index, "step_rewards", s,
                                    "ends rise from 1 to the number of tokens");
        last = at;
        steps[s] = (struct objective_step){(size_t)last, json_number_value(reward)};
    }
    sequence->steps = steps;
    sequence->step_count = count;
    return 0;
}

/* A sequence has one of: reward, rewards, token_rewards, step_rewards; or its advantage. Beside the rewards of steps a
 * reward is the outcome's. */
static int check_rewards(struct objective_call *objective, size_t index, const struct sequence_fields *fields)
{
    struct objective_item *item = &objective->items[index];
    int rewards = (fields->reward != NULL) + (fields->rewards != NULL) + (numbers_are_given(&fields->token_rewards)) +
                  (fields->step_rewards != NULL);
    bool outcome = fields->step_rewards && rewards == 2 && !numbers_are_given(&fields->token_rewards) &&
                   objective->knobs.advantage.estimator == OBJECTIVE_ESTIMATOR_PROCESS;

    if (rewards > 1 && !outcome)
        return objective_refuse(
            objective, ERR_INVALID_FIELD, index,
            fields->step_rewards                        ? "step_rewards"
            : numbers_are_given(&fields->token_rewards) ? "token_rewards"
                                                        : "rewards",
            NO_TOKEN,
            "give one of reward, rewards, token_rewards, step_rewards; process takes a reward beside step_rewards");
    if (fields->reward && !is_single(fields->reward))
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "reward", NO_TOKEN, "expected a number or null");
    item->has_reward = rewards > 0;
    item->has_advantage = fields->advantage || fields->token_advantages.values;
    if (item->has_reward && item->has_advantage)
        return objective_refuse(objective, ERR_INVALID_FIELD, index, "advantage", NO_TOKEN,
                                "give a reward or an advantage, not both");
    return 0;
}

static int read_reward(struct objective_call *objective, size_t index, const struct sequence_fields *fields)
{
    struct objective_item *item = &objective->items[index];
    struct objective_sequence *sequence = &objective->sequences[index];

    if (check_rewards(objective, index, fields) < 0)
        return -1;
    sequence->reward = json_is_number(fields->reward) ? json_number_value(fields->reward) : NAN;
    if (fields->rewards && read_rewards(objective, index, fields->rewards, &sequence->reward) < 0)
        return -1;
    if (fields->step_rewards && read_steps(objective, index, fields->step_rewards, fields->logprobs.count) < 0)
        return -1;
    sequence->has_outcome = fields->step_rewards && !isnan(sequence->reward);
    sequence->outcome = sequence->reward;
    item->rewards = fields->rewards;
    sequence->token_rewards = objective_values_of(&fields->token_rewards);
    sequence->token_advantages = fields->token_advantages.values;
    sequence->advantage = json_is_number(fields->advantage) ? json_number_value(fields->advantage) : NAN;
    if (item->has_advantage)
        sequence->rewarded = !json_is_null(fields->advantage);
    else
        sequence->rewarded =
            numbers_are_given(&fields->token_rewards) || fields->step_rewards || !isnan(sequence->reward);
    return 0;
}

/* --- arrays --- */

static int read_mask(struct objective_call *objective, size_t index)
{
    const struct numbers *mask = &objective->items[index].mask;
    uint8_t *bytes;

    if (mask->u8) {
        for (size_t t = 0; t < mask->count; t++)
            if (mask->u8[t] > 1)
                return objective_refuse(objective, ERR_INVALID_FIELD, index, "mask", t, "expected 0 or 1");
        objective->sequences[index].mask = mask->u8;
        return 0;
    }
    if (!mask->values)
        return 0;
    if (!(bytes = objective_allocate(objective, mask->count + 1, 1)))
        return -1;
    for (size_t t = 0; t < mask->count; t++) {
        if (mask->values[t] != 0 && mask->values[t] != 1)
            return objective_refuse(objective, ERR_INVALID_FIELD, index, "mask", t, "expected 0 or 1");
        bytes[t] = mask->values[t] == 1;
    }
    objective->sequences[index].mask = bytes;
    return 0;
}

static int read_ids(struct objective_call *objective, size_t index, const struct numbers *ids)
{
    uint32_t *values;

    if (!ids->values)
        return 0;
    if (!(values = objective_allocate(objective, ids->count + 1, sizeof *values)))
        return -1;
    for (size_t t = 0; t < ids->count; t++) {
        double id = ids->values[t];
        if (!(id >= 0 && id <= UINT32_MAX) || id != floor(id))
            return objective_refuse(objective, ERR_INVALID_FIELD, index, "completion_ids", t,
                                    "expected an integer of 32 bits, at least 0");
        values[t] = (uint32_t)id;
    }
    objective->sequences[index].completion_ids = values;
    objective->sequences[index].completion_id_count = ids->count;
    return 0;
}

/* The number of tokens is that of `logprobs`; every other array must have as many. */
static int check_lengths(struct objective_call *objective, size_t index, const struct sequence_fields *fields)
{
    size_t tokens = fields->logprobs.count;
    char message[96];
    const struct {
        const char *name;
        const struct numbers *numbers;
    } arrays[] = {
        {"mask", &fields->mask},
        {"old_logprobs", &fields->old_logprobs},
        {"ref_logprobs", &fields->ref_logprobs},
        {"rollout_logprobs", &fields->rollout_logprobs},
        {"teacher_logprobs", &fields->teacher_logprobs},
        {"entropy", &fields->entropy},
        {"sum_pi_squared", &fields->sum_pi_squared},
        {"token_rewards", &fields->token_rewards},
        {"advantage", &fields->token_advantages},
        {"completion_ids", &fields->completion_ids},
    };

    if (!numbers_are_given(&fields->logprobs))
        return objective_refuse(objective, ERR_MISSING_FIELD, index, "logprobs", NO_TOKEN, "this field is required");
    if (tokens == 0)
        return objective_refuse(objective, ERR_EMPTY_COMPLETION, index, "logprobs", NO_TOKEN,
                                "a completion has at least one token");
    for (size_t i = 0; i < ARRAY_LENGTH(arrays); i++) {
        if (!numbers_are_given(arrays[i].numbers) || arrays[i].numbers->count == tokens)
            continue;
        snprintf(message, sizeof message, "%zu values, but logprobs has %zu", arrays[i].numbers->count, tokens);
        return objective_refuse(objective, ERR_LENGTH_MISMATCH, index, arrays[i].name, NO_TOKEN, message);
    }
    return 0;
}

static enum objective_finish finish_of(int reason)
{
    if (reason < 0)
        return OBJECTIVE_FINISH_UNKNOWN;
    return reason == FINISH_LENGTH ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER;
}

/* The first field that a stored rollout has from the record. */
static const char *recorded_field(const struct sequence_fields *fields, const struct objective_item *item)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        {"reward", item->has_reward},
        {"advantage", item->has_advantage},
        {"rollout_logprobs", numbers_are_given(&fields->rollout_logprobs)},
        {"completion_ids", numbers_are_given(&fields->completion_ids)},
        {"finish_reason", fields->finish_reason >= 0},
        {"length", fields->length >= 0},
        {"prompt_tokens", fields->prompt_tokens >= 0},
        {"turns", fields->turns >= 0},
        {"agent", fields->agent.data != NULL},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].given)
            return rows[i].name;
    return NULL;
}

static void take_arrays(struct objective_sequence *sequence, const struct sequence_fields *fields)
{
    sequence->tokens = fields->logprobs.count;
    sequence->logprobs = objective_values_of(&fields->logprobs);
    sequence->old_logprobs = objective_values_of(&fields->old_logprobs);
    sequence->ref_logprobs = objective_values_of(&fields->ref_logprobs);
    sequence->rollout_logprobs = objective_values_of(&fields->rollout_logprobs);
    sequence->teacher_logprobs = objective_values_of(&fields->teacher_logprobs);
    sequence->entropy = objective_values_of(&fields->entropy);
    sequence->sum_pi_squared = objective_values_of(&fields->sum_pi_squared);
}

int objective_read_sequence(struct objective_call *objective, size_t index, const json_t *object)
{
    struct sequence_fields fields = {
        .finish_reason = -1, .greedy_reward = NAN, .length = -1, .prompt_tokens = -1, .turns = -1};
    struct objective_sequence *sequence = &objective->sequences[index];
    char path[PATH_BYTES];
    const json_t *advantage = json_object_get(object, "advantage");
    bool single = advantage && is_single(advantage);

    path_index(path, "", "sequences", index);
    if (json_read_object(&objective->input, object, path, single ? with_number : with_numbers,
                         ARRAY_LENGTH(with_number), &fields) < 0)
        return -1;
    if (objective_tensors_fill(objective, index, object, with_numbers, ARRAY_LENGTH(with_numbers), &fields) < 0)
        return -1;
    objective->items[index] = (struct objective_item){
        .rollout = fields.group.data ? TEXT_NONE : fields.rollout,
        .rollout_name = fields.group.data ? fields.rollout : TEXT_NONE,
        .group = fields.group,
        .agent = fields.agent,
        .has_old_logprobs = numbers_are_given(&fields.old_logprobs),
        .mask = fields.mask,
        .rollout_logprobs = fields.rollout_logprobs,
    };
    if (check_lengths(objective, index, &fields) < 0 || read_reward(objective, index, &fields) < 0)
        return -1;
    objective->items[index].recorded = recorded_field(&fields, &objective->items[index]);
    take_arrays(sequence, &fields);
    sequence->length = fields.length >= 0 ? fields.length : (int64_t)sequence->tokens;
    sequence->prompt_tokens = fields.prompt_tokens;
    sequence->turns = fields.turns;
    sequence->greedy_reward = fields.greedy_reward;
    sequence->finish_reason = finish_of(fields.finish_reason);
    if (read_ids(objective, index, &fields.completion_ids) < 0)
        return -1;
    return read_mask(objective, index);
}

/* --- rewards by name --- */

#define SCORES_MAX 256

static json_t *name_scores(struct objective_call *objective)
{
    json_t *names = json_object();
    json_t *part;
    const char *name;

    for (size_t i = 0; i < objective->count; i++) {
        json_object_foreach (objective->items[i].rewards, name, part) {
            if (json_object_get(names, name))
                continue;
            json_object_set_new(names, name, json_integer((json_int_t)objective->score_count++));
            if (objective->score_count <= SCORES_MAX)
                continue;
            objective_refuse(objective, ERR_OBJECTIVE_OPTIONS, i, "rewards", NO_TOKEN,
                             "a request may hold 256 names of rewards");
            json_decref(names);
            return NULL;
        }
    }
    return names;
}

/* Its reward decided whether it is `rewarded`: `missing` was applied there. */
static void take_scores(struct objective_call *objective, size_t index, const json_t *names, double *scores)
{
    struct objective_sequence *sequence = &objective->sequences[index];
    size_t n = objective->score_count;
    const char *name;
    json_t *part;

    for (size_t k = 0; k < n; k++)
        scores[k] = NAN;
    json_object_foreach (objective->items[index].rewards, name, part) {
        size_t k = (size_t)json_integer_value(json_object_get(names, name));
        const json_t *score = json_object_get(part, "score");
        const json_t *weight = json_object_get(part, "weight");
        scores[k] = json_is_number(score) ? json_number_value(score) : NAN;
        scores[n + k] = weight ? json_number_value(weight) : 1;
    }
    sequence->scores = scores;
    sequence->weights_of_scores = scores + n;
}

static bool lacks(const struct objective_sequence *sequence, size_t name)
{
    return isnan(sequence->scores[name]) && sequence->weights_of_scores[name] == 0;
}

/* gdpo compares the members of a group name by name: a name that another one with a reward has, with a weight, is a
 * missing score of each member that lacks it. A score that is null has taken the reward already, or has no weight. */
static int take_absent_names(struct objective_call *objective)
{
    size_t names = objective->score_count;
    bool *has = objective_allocate(objective, objective->group_count * names + 1, sizeof *has);
    if (!has)
        return -1;
    for (size_t i = 0; i < objective->count; i++) {
        const struct objective_sequence *sequence = &objective->sequences[i];
        for (size_t k = 0; sequence->rewarded && sequence->scores && k < names; k++)
            has[sequence->group * names + k] |= sequence->weights_of_scores[k] != 0;
    }
    for (size_t i = 0; i < objective->count; i++) {
        struct objective_sequence *sequence = &objective->sequences[i];
        for (size_t k = 0; sequence->rewarded && sequence->scores && k < names; k++)
            sequence->rewarded = !(lacks(sequence, k) && has[sequence->group * names + k]);
        if (!sequence->rewarded)
            sequence->reward = NAN;
    }
    return 0;
}

int objective_read_scores(struct objective_call *objective)
{
    if (objective->knobs.advantage.estimator != OBJECTIVE_ESTIMATOR_GDPO || objective->advantages_given)
        return 0;
    json_auto_t *names = name_scores(objective);
    if (!names)
        return -1;
    for (size_t i = 0; i < objective->count; i++) {
        double *scores;
        if (!objective->items[i].rewards)
            continue;
        if (!(scores = objective_allocate(objective, 2 * objective->score_count, sizeof *scores)))
            return -1;
        take_scores(objective, i, names, scores);
    }
    return objective->knobs.advantage.missing == OBJECTIVE_MISSING_NULL ? take_absent_names(objective) : 0;
}

/* --- names to numbers --- */

static int compare_texts(struct text left, struct text right)
{
    size_t shorter = left.length_bytes < right.length_bytes ? left.length_bytes : right.length_bytes;
    int order = shorter && left.data && right.data ? memcmp(left.data, right.data, shorter) : 0;
    return order ? order : (left.length_bytes > right.length_bytes) - (left.length_bytes < right.length_bytes);
}

/* By name, then by place: the first of equal names comes first. */
static int compare_names(const void *left, const void *right, void *names)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const struct text *all = names;
    int order = (all[a].data != NULL) - (all[b].data != NULL);
    order = order ? order : compare_texts(all[a], all[b]);
    return order ? order : (a > b) - (a < b);
}

/* ret_number[i]: the place of names[i] among the distinct names, in order of first appearance. A name of TEXT_NONE is
 * distinct from all others. ret_distinct: room for n. Returns how many there are; 0 without memory. */
static size_t number_names(struct objective_call *objective, const struct text *names, size_t *ret_number,
                           struct text *ret_distinct)
{
    size_t n = objective->count;
    size_t count = 0;
    size_t *order = objective_allocate(objective, n, sizeof *order);
    size_t *first = objective_allocate(objective, n, sizeof *first);

    if (!order || !first)
        return 0;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof *order, compare_names, (void *)(uintptr_t)names);
    for (size_t k = 0; k < n; k++) {
        bool same = k > 0 && names[order[k]].data && compare_texts(names[order[k]], names[order[k - 1]]) == 0;
        first[order[k]] = same ? first[order[k - 1]] : order[k];
    }
    for (size_t i = 0; i < n; i++) {
        if (first[i] == i)
            ret_distinct[count] = names[i];
        ret_number[i] = first[i] == i ? count++ : ret_number[first[i]];
    }
    return count;
}

int objective_number_groups(struct objective_call *objective)
{
    size_t n = objective->count;
    size_t *number = objective_allocate(objective, n, sizeof *number);
    struct text *names = objective_allocate(objective, n, sizeof *names);

    objective->group_names = objective_allocate(objective, n, sizeof *objective->group_names);
    if (!number || !names || !objective->group_names)
        return -1;
    for (size_t i = 0; i < n; i++)
        names[i] = objective->items[i].group;
    objective->group_count = number_names(objective, names, number, objective->group_names);
    if (objective->group_count == 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        objective->sequences[i].group = number[i];
    objective->groups = objective_allocate(objective, objective->group_count, sizeof *objective->groups);
    return objective->groups ? 0 : -1;
}

static int number_rollouts(struct objective_call *objective, struct text *names, size_t *number, struct text *distinct)
{
    bool any = false;

    for (size_t i = 0; i < objective->count; i++) {
        names[i] = objective->items[i].rollout_name;
        any = any || names[i].data;
    }
    if (!any)
        return 0;
    objective->rollout_count = number_names(objective, names, number, distinct);
    for (size_t i = 0; i < objective->count; i++)
        objective->sequences[i].rollout = number[i];
    return objective->rollout_count ? 0 : -1;
}

/* Those without an agent are one agent without a name. */
static int number_agents(struct objective_call *objective, struct text *names, size_t *number)
{
    bool any = false;

    for (size_t i = 0; i < objective->count; i++) {
        names[i] = objective->items[i].agent.data ? objective->items[i].agent : TEXT_LITERAL("");
        any = any || objective->items[i].agent.data;
    }
    objective->agent_names = objective_allocate(objective, objective->count, sizeof *objective->agent_names);
    objective->baselines = objective_allocate(objective, objective->count, sizeof *objective->baselines);
    if (!objective->agent_names || !objective->baselines)
        return -1;
    if (!any)
        return 0;
    objective->agent_count = number_names(objective, names, number, objective->agent_names);
    for (size_t i = 0; i < objective->count; i++)
        objective->sequences[i].agent = number[i];
    return objective->agent_count ? 0 : -1;
}

int objective_number_others(struct objective_call *objective)
{
    size_t n = objective->count;
    size_t *number = objective_allocate(objective, n, sizeof *number);
    struct text *names = objective_allocate(objective, n, sizeof *names);
    struct text *distinct = objective_allocate(objective, n, sizeof *distinct);

    if (!number || !names || !distinct || number_rollouts(objective, names, number, distinct) < 0)
        return -1;
    return number_agents(objective, names, number);
}
