/* From raw rewards to what the estimator sees: shaping, KL, statistics of the groups, filter. */
#include "server/objective/terms_private.h"

#include "server/base/sum.h"

#include <stdlib.h>

double objective_combine_rewards(size_t n, const double *scores, const double *weights, int missing)
{
    double sum = 0;
    double size = 0;
    size_t known = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isnan(scores[i])) {
            sum += weights[i] * scores[i];
            size += fabs(weights[i] * scores[i]);
            known++;
        } else if (missing == OBJECTIVE_MISSING_NULL && weights[i] != 0) {
            return NAN;
        }
    }
    return known ? sum_or_nothing(sum, size) : NAN;
}

/* --- raw rewards --- */

static int sum_token_rewards(struct objective_work *work, size_t index)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    double value;
    double size = 0;

    sequence->reward = 0;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (work_read(work, index, t, sequence->token_rewards, "token_rewards", &value) < 0)
            return -1;
        sequence->reward += value;
        size += fabs(value);
    }
    sequence->reward = sum_or_nothing(sequence->reward, size);
    return 0;
}

static void sum_step_rewards(struct objective_sequence *sequence)
{
    double size = 0;

    sequence->reward = 0;
    for (size_t s = 0; s < sequence->step_count; s++) {
        sequence->reward += sequence->steps[s].reward;
        size += fabs(sequence->steps[s].reward);
    }
    sequence->reward = sum_or_nothing(sequence->reward, size);
}

/* Rewards of tokens, or of steps without a reward beside them, stand for one of the sequence in metrics, filter and
 * statistics: their sum. */
static int take_raw_rewards(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (sequence->rewarded && is_present(sequence->token_rewards) && sum_token_rewards(work, i) < 0)
            return -1;
        if (sequence->rewarded && sequence->steps && isnan(sequence->reward))
            sum_step_rewards(sequence);
        if (sequence->rewarded && isinf(sequence->reward))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, i, SIZE_MAX, "reward",
                                  "it is beyond double");
        if (!work->request->shaped_given)
            sequence->shaped_reward = sequence->reward;
    }
    return 0;
}

/* --- KL in the reward --- */

static int kl_of_block(struct objective_work *work, size_t index, struct objective_block *block, double *sum)
{
    struct objective_part *part = &work->parts[index];

    objective_kl_block(work->knobs, block);
    for (size_t k = 0; k < block->count; k++) {
        double term = work->knobs->beta * block->kl[k];
        if (!isfinite(term))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, index, block->token[k], "ref_logprobs",
                                  "its KL term is beyond double");
        work->reward_kl[part->first + block->token[k]] = term;
        *sum += term;
    }
    block->count = 0;
    return 0;
}

static int kl_of_sequence(struct objective_work *work, size_t index, struct objective_block *block)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *seen = &work->parts[work->parts[index].head].seen;
    double old;
    double reference;
    double sum = 0;

    if (work_need(work, index, old_values(sequence), "old_logprobs", "a KL in the reward is taken at them") < 0 ||
        work_need(work, index, sequence->ref_logprobs, "ref_logprobs", "beta above 0 needs them") < 0)
        return -1;
    block->count = 0;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (work_read(work, index, t, old_values(sequence), "old_logprobs", &old) < 0 ||
            work_read(work, index, t, sequence->ref_logprobs, "ref_logprobs", &reference) < 0)
            return -1;
        block->token[block->count] = t;
        block->distance[block->count++] = old - reference;
        if (block->count == OBJECTIVE_BLOCK && kl_of_block(work, index, block, &sum) < 0)
            return -1;
    }
    if (block->count && kl_of_block(work, index, block, &sum) < 0)
        return -1;
    *seen = add_rewards(*seen, -sum);
    return 0;
}

/* rho_t = -beta * kl_t, with R on the last trainable token; estimators on sequences see R - beta * sum of kl_t, summed
 * over all sequences of the rollout.
 * Source: InstructGPT (arXiv 2203.02155) eq. 2; verl `use_kl_in_reward`, TRL RLOOTrainer. */
int put_kl_into_rewards(struct objective_work *work)
{
    const struct objective_knobs *knobs = work->knobs;
    struct objective_block *block;

    if (knobs->kl.in != OBJECTIVE_KL_IN_REWARD || knobs->beta == 0 || work->request->advantages_given)
        return 0;
    work->reward_kl = work_allocate(work, work->tokens, sizeof *work->reward_kl);
    block = work_allocate(work, 1, sizeof *block);
    if (!work->reward_kl || !block)
        return -1;
    block->kernels = work->kernels;
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        bool skip = knobs->kl.skip_zero_variance && work->request->groups[sequence->group].zero_variance;
        if (has_tokens(sequence) && !skip && kl_of_sequence(work, i, block) < 0)
            return -1;
    }
    return 0;
}

/* --- statistics of groups --- */

static double raw_of(const struct objective_work *work, size_t index)
{
    return work->request->sequences[index].reward;
}

static double shaped_of(const struct objective_work *work, size_t index)
{
    return work->request->sequences[index].shaped_reward;
}

double seen_of(const struct objective_work *work, size_t index)
{
    return work->parts[index].seen;
}

static int gather_statistics(struct objective_work *work, size_t group, reward_of *of, const char *field,
                             struct objective_statistics *ret_statistics)
{
    const size_t *member = work->by_group + work->group_first[group];
    const size_t *end = work->by_group + work->group_first[group + 1];

    *ret_statistics = (struct objective_statistics){0};
    for (const size_t *at = member; at < end; at++)
        if (!isnan(of(work, *at)) && is_first_of_rollout(work, *at))
            statistics_first(ret_statistics, of(work, *at));
    statistics_turn(ret_statistics);
    for (const size_t *at = member; at < end; at++) {
        if (isnan(of(work, *at)) || !is_first_of_rollout(work, *at))
            continue;
        if (!isfinite(ret_statistics->mean))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, *at, SIZE_MAX, field,
                                  "the sum of the rewards of its group is beyond double");
        statistics_second(ret_statistics, of(work, *at));
    }
    return 0;
}

static void describe(struct objective_group *group, int ddof)
{
    const struct objective_statistics *raw = &group->raw;

    group->rewarded = raw->count;
    group->mean = raw->mean;
    group->minimum = raw->count ? raw->minimum : NAN;
    group->maximum = raw->count ? raw->maximum : NAN;
    group->std = statistics_deviation(raw, ddof);
    group->zero_variance = group->shaped.count > 0 && statistics_constant(&group->shaped);
}

static int describe_groups(struct objective_work *work)
{
    struct objective_group *groups = work->request->groups;

    for (size_t g = 0; g < work->request->group_count; g++) {
        groups[g] = (struct objective_group){.members = work->group_first[g + 1] - work->group_first[g]};
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++)
            groups[g].correct += is_first_of_rollout(work, work->by_group[k]) && raw_of(work, work->by_group[k]) > 0;
        if (gather_statistics(work, g, raw_of, "reward", &groups[g].raw) < 0 ||
            gather_statistics(work, g, shaped_of, "reward", &groups[g].shaped) < 0)
            return -1;
        groups[g].seen = groups[g].shaped;
        describe(&groups[g], work->knobs->advantage.ddof);
    }
    return 0;
}

static int describe_seen(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++)
        if (gather_statistics(work, g, seen_of, "reward", &work->request->groups[g].seen) < 0)
            return -1;
    return 0;
}

/* --- filter --- */

/* By more than the rounding of its rewards. */
static bool is_below(const struct objective_statistics *on, double left, double right)
{
    double largest = fabs(on->minimum) > fabs(on->maximum) ? fabs(on->minimum) : fabs(on->maximum);
    return left < right && right - left > 1e-12 * largest;
}

/* Source: nonzero_variance: DAPO's dynamic sampling (arXiv 2503.14476), verl `filter_groups`; range: SkyRL
 * `zero_variance_filter`; mean_interval: OpenRLHF `dynamic_filtering`. Variance is a difference of rewards, never a
 * rounded number.
 */
static bool is_kept(const struct objective_knobs *knobs, const struct objective_group *group)
{
    const struct objective_statistics *on = knobs->filter.on == OBJECTIVE_FILTER_ON_RAW ? &group->raw : &group->shaped;

    if (on->count == 0)
        return true;
    switch (knobs->filter.rule) {
    case OBJECTIVE_FILTER_NONZERO_VARIANCE:
        return !statistics_constant(on);
    case OBJECTIVE_FILTER_RANGE:
        return on->count == 1 || (!statistics_constant(on) && on->maximum - on->minimum > knobs->filter.tol);
    case OBJECTIVE_FILTER_MEAN_INTERVAL:
        return is_below(on, knobs->filter.lo, on->mean) && is_below(on, on->mean, knobs->filter.hi);
    default:
        return true;
    }
}

void filter_groups(struct objective_work *work)
{
    const struct objective_request *request = work->request;

    for (size_t g = 0; g < request->group_count; g++)
        request->groups[g].dropped = !is_kept(work->knobs, &request->groups[g]);
    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_sequence *sequence = &request->sequences[i];
        bool truncated = work->knobs->mask.truncated && sequence->finish_reason == OBJECTIVE_FINISH_LENGTH;
        sequence->kept = !request->groups[sequence->group].dropped;
        work->parts[i].live = has_tokens(sequence) && !truncated && sequence->kept;
    }
}

/* --- the whole --- */

int work_rewards(struct objective_work *work)
{
    const struct objective_request *request = work->request;

    if (take_raw_rewards(work) < 0)
        return -1;
    if (!request->advantages_given && (shape_rewards(work) < 0 || check_rollouts(work) < 0))
        return -1;
    for (size_t i = 0; i < request->sequence_count; i++)
        work->parts[i].seen = request->sequences[i].rewarded ? request->sequences[i].shaped_reward : NAN;
    if (!request->groups_given && describe_groups(work) < 0)
        return -1;
    if (put_kl_into_rewards(work) < 0)
        return -1;
    share_seen(work);
    if (work->reward_kl && describe_seen(work) < 0)
        return -1;
    filter_groups(work);
    return 0;
}
