/* Metrics for a trainer's plots: sums over blocks, then means. Masked tokens never get here. */
#include "server/objective/terms_private.h"

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double finite_or_nan(double value)
{
    return isfinite(value) ? value : NAN;
}

/* --- over tokens --- */

static void meter_rollout(struct objective_block *block, struct objective_meter *meter)
{
    double weights[OBJECTIVE_BLOCK];

    lane_powers(block->kernels, block->count, block->rollout_x, weights, &meter->sequence_x);
    block->kernels->add(block->count, block->rollout, &meter->sequence_rollout);
    block->kernels->meter_weights(block->count, block->rollout_x, weights, &meter->weights);
    meter->rollout_tokens += block->count;
    meter->sequence_tokens += block->count;
}

static uint64_t count_overflows(const struct objective_block *block)
{
    uint64_t count = 0;

    for (size_t k = 0; k < block->count; k++)
        count += block->shown[k] == INFINITY;
    return count;
}

void meter_block(const struct objective_request *request, struct objective_block *block, bool has_rollout, bool has_kl,
                 struct objective_meter *meter, struct objective_sums *sums)
{
    const struct objective_knobs *knobs = request->knobs;
    bool bounds = objective_losses[knobs->loss.kind].has_bounds;
    double low = bounds ? 1 - knobs->loss.eps_low : -INFINITY;
    double high = bounds ? 1 + knobs->loss.eps_high : INFINITY;

    block->kernels->meter(block->count, low, high, block->shown, block->clipped, &meter->shown);
    if (meter->shown.most == INFINITY)
        sums->ratio_overflows += count_overflows(block);
    if (has_kl)
        block->kernels->add(block->count, block->kl, &meter->kl);
    sums->kl_tokens += has_kl ? block->count : 0;
    if (has_rollout)
        meter_rollout(block, meter);
}

void meter_sequence(struct objective_meter *meter)
{
    double n = (double)meter->sequence_tokens;

    if (n > 0) {
        double x = lane_sum_value(&meter->sequence_x.x);
        double rollout = lane_sum_value(&meter->sequence_rollout) / n;
        double training = rollout + x / n;
        meter->rollout_sequences++;
        meter->rollout_k1 -= x;
        meter->rollout_k3 += lane_sum_value(&meter->sequence_x.k3);
        meter->training_ppl -= training;
        meter->rollout_ppl -= rollout;
        meter->ppl_difference -= x / n;
        meter->ppl_ratio += objective_exp(-x / n);
        meter->chi2_seq += objective_exp(2 * x);
    }
    meter->sequence_tokens = 0;
    meter->sequence_x = (struct lane_ratio_sums){0};
    meter->sequence_rollout = (struct lane_sum){0};
}

static void fill_sums(const struct objective_meter *meter, struct objective_sums *sums)
{
    sums->clip_low = (uint64_t)meter->shown.below;
    sums->clip_high = (uint64_t)meter->shown.above;
    sums->outside_band = (uint64_t)meter->shown.outside;
    sums->ratio_sum = lane_sum_value(&meter->shown.ratio);
    sums->ratio_max = meter->shown.most;
    sums->k1_sum = -lane_sum_value(&meter->ratios.x);
    sums->k3_sum = lane_sum_value(&meter->ratios.k3);
    sums->kl_sum = lane_sum_value(&meter->kl);
    sums->gap_tokens = meter->rollout_tokens;
    sums->gap_sum = lane_sum_value(&meter->weights.gap);
}

static void fill_token_metrics(struct objective_result *result)
{
    const struct objective_sums *sums = &result->sums;
    struct objective_metrics *metrics = &result->metrics;
    double tokens = (double)sums->tokens;

    /* Clipping is counted, so with no token it is 0 (the contract's vectors say so); a mean over nothing is no number.
     */
    metrics->clip_low_fraction = tokens > 0 ? (double)sums->clip_low / tokens : 0;
    metrics->clip_high_fraction = tokens > 0 ? (double)sums->clip_high / tokens : 0;
    metrics->clip_fraction = tokens > 0 ? (double)(sums->clip_low + sums->clip_high) / tokens : 0;
    metrics->ratio_outside_band = share((double)sums->outside_band, tokens);
    metrics->ratio_mean = finite_or_nan(share(sums->ratio_sum, tokens));
    metrics->ratio_max = tokens > 0 ? finite_or_nan(sums->ratio_max) : NAN;
    metrics->approx_kl_k1 = finite_or_nan(share(sums->k1_sum, tokens) + 0.0);
    metrics->approx_kl_k3 = finite_or_nan(share(sums->k3_sum, tokens));
    metrics->kl = share(sums->kl_sum, (double)sums->kl_tokens);
}

/* Source: verl rollout_corr metrics; the weights before any bound. */
static void fill_rollout_metrics(const struct objective_meter *meter, struct objective_metrics *metrics)
{
    double tokens = (double)meter->rollout_tokens;
    double sequences = (double)meter->rollout_sequences;

    metrics->has_rollout = tokens > 0;
    metrics->rollout.kl = finite_or_nan(share(meter->rollout_k1, tokens) + 0.0);
    metrics->rollout.k3_kl = finite_or_nan(share(meter->rollout_k3, tokens));
    metrics->rollout.training_log_ppl = finite_or_nan(share(meter->training_ppl, sequences));
    metrics->rollout.rollout_log_ppl = finite_or_nan(share(meter->rollout_ppl, sequences));
    metrics->rollout.log_ppl_diff = finite_or_nan(share(meter->ppl_difference, sequences) + 0.0);
    metrics->rollout.ppl_ratio = finite_or_nan(share(meter->ppl_ratio, sequences));
    double sum = lane_sum_value(&meter->weights.weight);
    double squares = lane_sum_value(&meter->weights.square);
    metrics->rollout.chi2_token = finite_or_nan(share(squares, tokens) - 1);
    metrics->rollout.chi2_seq = finite_or_nan(share(meter->chi2_seq, sequences) - 1);
    metrics->rollout.is_mean = finite_or_nan(share(sum, tokens));
    metrics->rollout.is_max = finite_or_nan(tokens > 0 ? meter->weights.most : NAN);
    metrics->rollout.is_min = finite_or_nan(tokens > 0 ? meter->weights.least : NAN);
    metrics->rollout.logprob_gap = finite_or_nan(share(lane_sum_value(&meter->weights.gap), tokens));
    metrics->rollout.ess = finite_or_nan(sum * sum / (tokens * squares));
}

/* --- over sequences and groups --- */

static void fill_reward_metrics(const struct objective_work *work, struct objective_metrics *metrics)
{
    const struct objective_request *request = work->request;
    struct objective_statistics rewards = {0};
    double zero_rollouts = 0;
    double groups = 0;

    for (size_t i = 0; i < request->sequence_count; i++) {
        if (isnan(request->sequences[i].reward) || !is_first_of_rollout(work, i))
            continue;
        statistics_first(&rewards, request->sequences[i].reward);
        zero_rollouts += request->groups[request->sequences[i].group].zero_variance;
    }
    statistics_turn(&rewards);
    for (size_t i = 0; i < request->sequence_count; i++)
        if (!isnan(request->sequences[i].reward) && is_first_of_rollout(work, i))
            statistics_second(&rewards, request->sequences[i].reward);
    for (size_t g = 0; g < request->group_count; g++) {
        groups += request->groups[g].rewarded > 0;
        metrics->zero_variance_groups += request->groups[g].zero_variance;
    }
    metrics->reward_mean = rewards.mean;
    metrics->reward_std = statistics_deviation(&rewards, 1);
    metrics->frac_reward_zero_std = share(zero_rollouts, (double)rewards.count);
    metrics->frac_groups_zero_std = share((double)metrics->zero_variance_groups, groups);
}

static void fill_length_metrics(const struct objective_request *request, struct objective_metrics *metrics)
{
    struct objective_statistics all = {0};
    struct objective_statistics ended = {0};
    double truncated = 0;
    double known = 0;

    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        if (!sequence->rewarded)
            continue;
        statistics_first(&all, (double)sequence->length);
        known += sequence->finish_reason != OBJECTIVE_FINISH_UNKNOWN;
        truncated += sequence->finish_reason == OBJECTIVE_FINISH_LENGTH;
        if (sequence->finish_reason == OBJECTIVE_FINISH_OTHER)
            statistics_first(&ended, (double)sequence->length);
    }
    statistics_turn(&all);
    statistics_turn(&ended);
    metrics->mean_length = all.mean;
    metrics->min_length = all.count ? all.minimum : NAN;
    metrics->max_length = all.count ? all.maximum : NAN;
    metrics->truncated_fraction = share(truncated, known);
    metrics->mean_terminated_length = ended.mean;
    metrics->min_terminated_length = ended.count ? ended.minimum : NAN;
    metrics->max_terminated_length = ended.count ? ended.maximum : NAN;
}

void objective_fill_metrics(const struct objective_work *work, const struct objective_meter *meter)
{
    const struct objective_request *request = work->request;
    struct objective_result *result = work->result;

    fill_sums(meter, &result->sums);
    fill_token_metrics(result);
    fill_rollout_metrics(meter, &result->metrics);
    fill_reward_metrics(work, &result->metrics);
    fill_length_metrics(request, &result->metrics);
}

/* 1 - C(n-c, k) / C(n, k) as a product, which neither overflows nor cancels. */
static double pass_of_group(uint64_t n, uint64_t correct, uint64_t k)
{
    double all_wrong = 1;

    if (n - correct < k)
        return 1;
    for (uint64_t i = n - correct + 1; i <= n; i++)
        all_wrong *= 1 - (double)k / (double)i;
    return 1 - all_wrong;
}

double objective_pass_at_k(const struct objective_request *request, uint64_t k)
{
    double sum = 0;
    double groups = 0;

    for (size_t g = 0; g < request->group_count; g++) {
        const struct objective_group *group = &request->groups[g];
        if (group->rewarded == 0)
            continue;
        if (group->rewarded < k)
            return NAN;
        sum += pass_of_group(group->rewarded, group->correct, k);
        groups++;
    }
    return share(sum, groups);
}
