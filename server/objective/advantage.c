/* One function for each estimator: from rewards to one advantage for each sequence. */
#include "server/objective/terms.h"

#include <math.h>
#include <stdlib.h>

double objective_combine_rewards(size_t n, const double *scores, const double *weights, int missing)
{
    double sum = 0;
    size_t known = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isnan(scores[i])) {
            sum += weights[i] * scores[i];
            known++;
        } else if (missing == OBJECTIVE_MISSING_NULL && weights[i] != 0) {
            return NAN;
        }
    }
    return known ? sum : NAN;
}

/* The deviation of all rewards of the request. */
static int batch_deviation(const struct objective_request *request, double *ret_std, struct objective_error *ret_error)
{
    struct objective_statistics all = {0};

    for (size_t i = 0; i < request->sequence_count; i++)
        if (!isnan(request->sequences[i].reward))
            statistics_first(&all, request->sequences[i].reward);
    statistics_turn(&all);
    for (size_t i = 0; i < request->sequence_count; i++)
        if (!isnan(request->sequences[i].reward))
            statistics_second(&all, request->sequences[i].reward);
    *ret_std = statistics_deviation(&all, request->knobs->advantage.ddof);
    if (all.count > 0 && !isfinite(all.mean))
        return objective_fail(ret_error, OBJECTIVE_ERROR_NON_FINITE, SIZE_MAX, SIZE_MAX, "reward",
                              "the sum of the rewards is beyond double");
    return 0;
}

/* (R - mean) / (std + eps) inside the group. max == min gives exactly 0.
 * Source: DeepSeekMath (arXiv 2402.03300) section 4.1; Dr. GRPO (arXiv 2503.20783) is scale none. The population
 * deviation is the default, so that [0,0,1,1] gives [-1,-1,1,1]; TRL and verl take the sample one (ddof 1). */
static double grpo_advantage(const struct objective_knobs *knobs, const struct objective_group *group, double reward,
                             double batch_std)
{
    double divisor = 1;

    if (group->judged == 1) {
        bool raw = knobs->advantage.singleton == OBJECTIVE_SINGLETON_RAW;
        divisor = knobs->advantage.scale == OBJECTIVE_SCALE_NONE ? 1 : 1 + knobs->advantage.eps;
        return raw ? reward / divisor : 0;
    }
    if (group->zero_variance)
        return 0;
    if (knobs->advantage.scale == OBJECTIVE_SCALE_GROUP)
        divisor = group->std + knobs->advantage.eps;
    else if (knobs->advantage.scale == OBJECTIVE_SCALE_BATCH)
        divisor = batch_std + knobs->advantage.eps;
    return (reward - group->mean) / divisor;
}

static int estimate_grpo(const struct objective_request *request, struct objective_error *ret_error)
{
    double batch_std = NAN;

    if (request->knobs->advantage.scale == OBJECTIVE_SCALE_BATCH && batch_deviation(request, &batch_std, ret_error) < 0)
        return -1;
    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_sequence *sequence = &request->sequences[i];
        if (sequence->judged)
            sequence->advantage =
                grpo_advantage(request->knobs, &request->groups[sequence->group], sequence->reward, batch_std);
    }
    return 0;
}

/* A = R. Source: Williams 1992 (REINFORCE) without a baseline. */
static int estimate_reward(const struct objective_request *request, struct objective_error *ret_error)
{
    (void)ret_error;
    for (size_t i = 0; i < request->sequence_count; i++)
        request->sequences[i].advantage = request->sequences[i].judged ? request->sequences[i].reward : NAN;
    return 0;
}

objective_estimate *const objective_estimators[OBJECTIVE_ESTIMATOR_BUILT] = {
    [OBJECTIVE_ESTIMATOR_GRPO] = estimate_grpo,
    [OBJECTIVE_ESTIMATOR_REWARD] = estimate_reward,
};

static double clip(double value, double low, double high) /* NAN: no bound */
{
    if (value < low)
        return low;
    if (value > high)
        return high;
    return value;
}

static int clip_advantages(const struct objective_request *request, struct objective_error *ret_error)
{
    double low = request->knobs->advantage.clip_low;
    double high = request->knobs->advantage.clip_high;

    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_sequence *sequence = &request->sequences[i];
        if (!sequence->judged) {
            sequence->advantage = NAN;
        } else if (!sequence->token_advantages) {
            if (!isfinite(sequence->advantage))
                return objective_fail(ret_error, OBJECTIVE_ERROR_NON_FINITE, i, SIZE_MAX,
                                      request->advantages_given ? "advantage" : "reward",
                                      "its advantage is not a finite number");
            sequence->advantage = clip(sequence->advantage, low, high) + 0.0;
        }
    }
    return 0;
}

int objective_advantages(const struct objective_request *request, struct objective_error *ret_error)
{
    for (size_t g = 0; g < request->group_count && request->groups_given; g++)
        request->groups[g].counted = false;
    if (!request->groups_given && objective_group_statistics(request, ret_error) < 0)
        return -1;
    if (!request->advantages_given && objective_estimators[request->knobs->advantage.estimator](request, ret_error) < 0)
        return -1;
    return clip_advantages(request, ret_error);
}

int objective_group_advantages(const struct objective_knobs *knobs, size_t n, const double *rewards,
                               double *ret_advantages, struct objective_group *ret_group)
{
    struct objective_sequence *members = calloc(n ? n : 1, sizeof *members);
    struct objective_request request = {
        .knobs = knobs, .sequences = members, .sequence_count = n, .groups = ret_group, .group_count = 1};
    struct objective_error error;
    bool whole = objective_needs_whole_batch(knobs);
    int result = members ? 0 : -1;

    *ret_group = (struct objective_group){.mean = NAN, .std = NAN};
    for (size_t i = 0; result == 0 && i < n; i++) {
        members[i].reward = rewards[i];
        members[i].judged = !isnan(rewards[i]);
    }
    if (result == 0)
        result = whole ? objective_group_statistics(&request, &error) : objective_advantages(&request, &error);
    for (size_t i = 0; ret_advantages && i < n; i++)
        ret_advantages[i] = result == 0 && !whole ? members[i].advantage : NAN;
    free(members);
    return result;
}
