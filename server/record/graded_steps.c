#include "server/record/graded_steps.h"

#include "server/base/cleanup.h"

#include <jansson.h>
#include <math.h>

/* --- steps ------------------------------------------------------------------------------------------------ */

static json_t *load(struct text text)
{
    return text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
}

static const json_t *steps_of(const json_t *verdicts, const char *id)
{
    const json_t *verdict;
    size_t i;

    json_array_foreach (verdicts, i, verdict) {
        const char *name = json_string_value(json_object_get(verdict, "id"));
        if (name && strcmp(name, id) == 0)
            return json_object_get(verdict, "steps");
    }
    return NULL;
}

static double weight_of(const json_t *reward)
{
    const json_t *weight = json_object_get(reward, "weight");
    return json_is_number(weight) ? json_number_value(weight) : 1;
}

static double score_of(const json_t *reward)
{
    const json_t *score = json_object_get(reward, "score");
    return json_is_number(score) ? json_number_value(score) : NAN;
}

static bool is_shut(json_t *rewards)
{
    const char *id;
    json_t *reward;

    json_object_foreach (rewards, id, reward) {
        if (json_is_true(json_object_get(reward, "gate")) && score_of(reward) == 0)
            return true;
    }
    return false;
}

static void add_steps(const json_t *list, double weight, struct graded_steps *steps)
{
    const json_t *step;
    size_t i;

    steps->steps = xrealloc(steps->steps, (steps->count + json_array_size(list) + 1) * sizeof *steps->steps);
    json_array_foreach (list, i, step) {
        json_int_t end = json_integer_value(json_object_get(step, "end"));
        const json_t *score = json_object_get(step, "score");
        if (end > 0 && json_is_number(score))
            steps->steps[steps->count++] = (struct objective_step){(size_t)end, weight * json_number_value(score)};
    }
}

struct outcome {
    double *scores; /* [count], and as many weights behind them */
    size_t count, room;
};

static void add_outcome(struct outcome *outcome, double score, double weight)
{
    outcome->scores[outcome->count] = score;
    outcome->scores[outcome->room + outcome->count++] = weight;
}

/* Stable, so that the same record gives the same sum. */
static void sort_by_end(struct objective_step *steps, size_t count)
{
    _cleanup_free_ struct objective_step *other = xcalloc(count + 1, sizeof *other);

    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = from + width < count ? from + width : count;
            size_t end = from + 2 * width < count ? from + 2 * width : count;
            size_t left = from;
            size_t right = middle;
            for (size_t at = from; at < end; at++)
                other[at] = left < middle && (right == end || steps[left].end <= steps[right].end) ? steps[left++]
                                                                                                   : steps[right++];
        }
        memcpy(steps, other, count * sizeof *steps);
    }
}

void graded_steps_read(struct text rewards, struct text verdicts, int missing, struct graded_steps *ret_steps)
{
    json_auto_t *counting = load(rewards);
    json_auto_t *all = load(verdicts);
    size_t room = json_object_size(counting);
    _cleanup_free_ double *scores = xcalloc(2 * room + 1, sizeof *scores);
    struct outcome outcome = {scores, 0, room};
    double factor = is_shut(counting) ? 0 : 1;
    const char *id;
    json_t *reward;

    *ret_steps = (struct graded_steps){.steps = xcalloc(1, sizeof *ret_steps->steps), .outcome = NAN};
    json_object_foreach (counting, id, reward) {
        const json_t *list = steps_of(all, id);
        if (weight_of(reward) == 0)
            continue;
        if (list)
            add_steps(list, factor * weight_of(reward), ret_steps);
        else
            add_outcome(&outcome, score_of(reward), weight_of(reward));
    }
    sort_by_end(ret_steps->steps, ret_steps->count);
    ret_steps->outcome = objective_combine_rewards(outcome.count, scores, scores + room, missing) * factor;
    ret_steps->has_outcome = isfinite(ret_steps->outcome) != 0;
}

void graded_steps_finish(struct graded_steps *steps)
{
    free(TAKE_PTR(steps->steps));
    steps->count = 0;
}

/* --- advantages of tokens ------------------------------------------------------------------------------------ */

double *graded_steps_room(const struct objective_knobs *knobs, struct objective_sequence *sequences, size_t count)
{
    size_t tokens = 0;

    if (knobs->advantage.estimator != OBJECTIVE_ESTIMATOR_PROCESS)
        return NULL;
    for (size_t i = 0; i < count; i++)
        tokens += sequences[i].tokens;
    double *advantages = xcalloc(tokens + 1, sizeof(*advantages));
    tokens = 0;
    for (size_t i = 0; i < count; i++) {
        sequences[i].advantages = advantages + tokens;
        tokens += sequences[i].tokens;
    }
    return advantages;
}

double *token_advantages_of(const struct store_rollout *rollout)
{
    if (!rollout->advantages || !rollout->completion_ids)
        return NULL;
    double *advantages = xcalloc(rollout->token_count + 1, sizeof *advantages);
    size_t token = 0;
    for (size_t i = 0; i < rollout->advantage_count; i++)
        for (; token < rollout->advantages[i].end && token < rollout->token_count; token++)
            advantages[token] = rollout->advantages[i].advantage;
    return advantages;
}

struct store_advantage *token_advantage_runs(const double *advantages, size_t token_count, size_t *ret_count)
{
    struct store_advantage *runs = xcalloc(token_count + 1, sizeof *runs);
    size_t count = 0;

    for (size_t t = 0; t < token_count; t++) {
        if (t == 0 || advantages[t] != advantages[t - 1])
            runs[count++].advantage = advantages[t];
        runs[count - 1].end = (uint32_t)t + 1;
    }
    *ret_count = count;
    return runs;
}
