/* Policy losses whose ratio belongs to a whole sequence: first what the sequence is, then its tokens. */
#include "server/objective/terms_private.h"

#include <string.h>

#define LOG_1E_8 (-18.420680743952367)

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

int work_x(struct objective_work *work, size_t index, size_t token, double *ret_x)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct objective_values anchor = anchor_values(work->knobs, sequence);
    double limit = work->knobs->loss.log_clamp;
    double now;
    double old;

    *ret_x = 0;
    if (!is_present(sequence->logprobs) || !is_present(anchor))
        return 0;
    if (work_read(work, index, token, sequence->logprobs, "logprobs", &now) < 0 ||
        work_read(work, index, token, anchor, "old_logprobs", &old) < 0)
        return -1;
    *ret_x = now - old;
    if (*ret_x > limit)
        *ret_x = limit;
    if (*ret_x < -limit)
        *ret_x = -limit;
    return 0;
}

/* All tokens from `token` on in one go: 0 where they are not a run in one precision, or one is no number. */
static size_t run_of_xs(struct objective_work *work, size_t index, size_t token, double *ret_x)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct objective_values anchor = anchor_values(work->knobs, sequence);
    double now[OBJECTIVE_BLOCK];
    double old[OBJECTIVE_BLOCK];
    double limit = work->knobs->loss.log_clamp;
    size_t left = sequence->tokens - token;
    size_t count = left < OBJECTIVE_BLOCK ? left : OBJECTIVE_BLOCK;

    bool finite = false;

    if (sequence->trainable_tokens != sequence->tokens)
        return 0;
    if (sequence->logprobs.f64 && anchor.f64)
        finite = work->kernels->subtract(count, sequence->logprobs.f64 + token, anchor.f64 + token, ret_x);
    else if (sequence->logprobs.f32 && anchor.f32)
        finite =
            work->kernels->subtract_floats(count, sequence->logprobs.f32 + token, anchor.f32 + token, now, old, ret_x);
    if (!finite)
        return 0;
    for (size_t k = 0; !isnan(limit) && k < count; k++)
        ret_x[k] = clip(ret_x[k], -limit, limit);
    return count;
}

int work_next_xs(struct objective_work *work, size_t index, size_t *token, double *ret_x, size_t *ret_count)
{
    size_t tokens = work->request->sequences[index].tokens;
    size_t count = *token < tokens ? run_of_xs(work, index, *token, ret_x) : 0;

    *ret_count = count;
    *token += count;
    if (count > 0)
        return 0;
    for (; *token < tokens && count < OBJECTIVE_BLOCK; ++*token) {
        if (!is_trained(work, index, *token))
            continue;
        if (work_x(work, index, *token, &ret_x[count++]) < 0)
            return -1;
    }
    *ret_count = count;
    return 0;
}

/* The sum of x over the trained tokens, in lanes. */
static int sum_xs(struct objective_work *work, size_t index, double *ret_sum)
{
    struct lane_exact_sum lanes = {0};
    struct precise_sum sum = {0};
    double x[OBJECTIVE_BLOCK];
    size_t token = 0;
    size_t count;

    do {
        if (work_next_xs(work, index, &token, x, &count) < 0)
            return -1;
        work->kernels->add_exactly(count, x, &lanes);
    } while (count > 0);
    lane_exact_sum_add_to(&lanes, &sum);
    *ret_sum = precise_sum_value(&sum);
    return 0;
}

/* The factor of a token's policy term from importance and selection. */
static double outer_weight(const struct objective_work *work, size_t index, size_t token)
{
    size_t at = work->parts[index].first + token;

    if (work->dropped && work->dropped[at] & (DROPPED_BY_SELECTION | DROPPED_BY_IMPORTANCE))
        return 0;
    return work->weights ? work->weights[at] : 1;
}

/* --- GSPO --- */

/* -min(s A, clip(s) A), and whether the clip decides. */
static double gspo_value(const struct objective_knobs *knobs, double ratio, double advantage, bool *ret_held)
{
    double held = clip(ratio, 1 - knobs->loss.eps_low, 1 + knobs->loss.eps_high);

    *ret_held = advantage == 0 || held * advantage < ratio * advantage;
    return advantage == 0 ? 0 : -(*ret_held ? held : ratio) * advantage;
}

/* The mean over the tokens of -s A w where the clip does not hold it. */
static double gspo_slope(const struct objective_work *work, const struct objective_whole *whole)
{
    const struct objective_sequence *sequence = &work->request->sequences[whole->index];
    struct precise_sum slopes = {0};
    bool held;

    if (!work->advantages && !work->weights && !work->dropped) {
        double value = gspo_value(work->knobs, whole->ratio, sequence->advantage, &held);
        return held ? 0 : value;
    }
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(work, whole->index, t))
            continue;
        double weight = outer_weight(work, whole->index, t);
        double value = gspo_value(work->knobs, whole->ratio, work_advantage(work, whole->index, t), &held);
        if (!held && weight != 0)
            precise_sum_add(&slopes, value * weight);
    }
    return precise_sum_value(&slopes) / whole->n;
}

/* s = exp(min(sum of m x / n, log_max)). Every token's value depends on every token's log-probability through s. */
int gspo_prepare(struct objective_work *work, struct objective_whole *whole)
{
    double sum;

    if (sum_xs(work, whole->index, &sum) < 0)
        return -1;
    whole->log_ratio = sum / whole->n;
    whole->constant = whole->log_ratio > work->knobs->loss.log_max;
    if (whole->constant)
        whole->log_ratio = work->knobs->loss.log_max;
    whole->ratio = objective_exp(whole->log_ratio);
    whole->shared = whole->constant ? 0 : gspo_slope(work, whole);
    return 0;
}

static void gspo_token(const struct objective_knobs *knobs, const struct objective_whole *whole,
                       struct objective_block *block, size_t k, double factor)
{
    double advantage = block->advantage[k];
    bool held, above = whole->ratio > 1 + knobs->loss.eps_high, below = whole->ratio < 1 - knobs->loss.eps_low;

    block->value[k] = factor * gspo_value(knobs, whole->ratio, advantage, &held);
    block->slope[k] = factor * whole->shared;
    block->whole[k] = whole->ratio;
    block->clipped[k] = advantage > 0 ? above : advantage < 0 ? -below : 0;
}

static void repeat(size_t n, double *values)
{
    for (size_t k = 1; k < n; k++)
        values[k] = values[0];
}

/* With one advantage all tokens are alike. */
static void gspo_tokens(const struct objective_knobs *knobs, const struct objective_whole *whole,
                        struct objective_block *block, double factor)
{
    size_t n = block->count;

    block->shown = block->whole;
    memset(block->selected, 1, n);
    for (size_t k = 0; k < (block->one_advantage ? 1 : n); k++)
        gspo_token(knobs, whole, block, k, factor);
    if (!block->one_advantage)
        return;
    repeat(n, block->value);
    repeat(n, block->slope);
    repeat(n, block->whole);
    repeat(n, block->clipped);
}

/* Source: GSPO (arXiv 2507.18071) eq. 5-7; TRL `importance_sampling_level="sequence"`; log_max: verl `gspo`. */
void gspo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    gspo_tokens(knobs, whole, block, 1);
}

/* s_t = sg(s) exp(lp - sg lp): the value of gspo, the derivative of the own token. Source: GSPO eq. 13-15, verl. */
void gspo_token_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                      struct objective_block *block)
{
    gspo_tokens(knobs, whole, block, 1);
    for (size_t k = 0; k < block->count; k++) {
        bool held;
        double value = gspo_value(knobs, whole->ratio, block->advantage[k], &held);
        block->slope[k] = held || whole->constant ? 0 : value;
    }
}

/* n times gspo. Source: LUSPO, TRL `loss_type="luspo"`. */
void luspo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                 struct objective_block *block)
{
    gspo_tokens(knobs, whole, block, whole->n);
}

/* --- GMPO --- */

/* x clipped on the side that A pushes to; A = 0: 0. */
static double gmpo_clip(const struct objective_knobs *knobs, double x, double advantage)
{
    if (advantage == 0)
        return 0;
    if (advantage > 0)
        return x > knobs->loss.eps_high ? knobs->loss.eps_high : x;
    return x < -knobs->loss.eps_low ? -knobs->loss.eps_low : x;
}

int gmpo_prepare(struct objective_work *work, struct objective_whole *whole)
{
    const struct objective_sequence *sequence = &work->request->sequences[whole->index];
    struct precise_sum sum = {0};
    struct precise_sum advantages = {0};
    double x;

    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(work, whole->index, t))
            continue;
        if (work_x(work, whole->index, t, &x) < 0)
            return -1;
        double advantage = work_advantage(work, whole->index, t);
        double weight = outer_weight(work, whole->index, t);
        precise_sum_add(&sum, gmpo_clip(work->knobs, x, advantage));
        if (weight != 0 && advantage != 0)
            precise_sum_add(&advantages, -advantage * weight);
    }
    whole->log_ratio = precise_sum_value(&sum) / whole->n;
    whole->ratio = objective_exp(whole->log_ratio);
    double slopes = precise_sum_value(&advantages);
    whole->shared = slopes == 0 ? 0 : slopes * whole->ratio / whole->n;
    return 0;
}

/* -A exp(sum of m c / n) on each trainable token. Source: GMPO (arXiv 2507.20673), verl `geo_mean`. */
void gmpo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    block->shown = block->whole;
    for (size_t k = 0; k < block->count; k++) {
        double advantage = block->advantage[k];
        double x = block->x[k];
        bool above = advantage > 0 && x > knobs->loss.eps_high, below = advantage < 0 && x < -knobs->loss.eps_low;
        block->value[k] = advantage == 0 ? 0 : -advantage * whole->ratio;
        block->slope[k] = above || below || advantage == 0 ? 0 : whole->shared;
        block->whole[k] = whole->ratio;
        block->clipped[k] = above - below;
        block->selected[k] = 1;
    }
}

/* --- VESPO --- */

static double vespo_phi(double log_w, double k, double lambda)
{
    return objective_exp(lambda + k * log_w - lambda * objective_exp(log_w));
}

/* log w = sum of clamped x, plus the clamped logarithms of the importance weights. */
int vespo_prepare(struct objective_work *work, struct objective_whole *whole)
{
    const struct objective_sequence *sequence = &work->request->sequences[whole->index];
    struct precise_sum sum = {0};
    double x;

    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(work, whole->index, t))
            continue;
        if (work_x(work, whole->index, t, &x) < 0)
            return -1;
        precise_sum_add(&sum, clip(x, -20, 20));
        if (work->weights)
            precise_sum_add(&sum,
                            clip(objective_log(work->weights[work->parts[whole->index].first + t]), LOG_1E_8, 20));
    }
    double log_w = clip(precise_sum_value(&sum), LOG_1E_8, 20);
    whole->log_ratio = log_w;
    whole->ratio = objective_exp(log_w);
    whole->phi_pos = vespo_phi(log_w, work->knobs->loss.k_pos, work->knobs->loss.lambda_pos);
    whole->phi_neg = vespo_phi(log_w, work->knobs->loss.k_neg, work->knobs->loss.lambda_neg);
    return 0;
}

/* -sg(phi) A lp, phi = exp(lambda + k log w - lambda w). Source: VESPO, TRL `loss_type="vespo"`. */
void vespo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                 struct objective_block *block)
{
    (void)knobs;
    block->shown = block->whole;
    for (size_t k = 0; k < block->count; k++) {
        double advantage = block->advantage[k];
        double slope = -(advantage >= 0 ? whole->phi_pos : whole->phi_neg) * advantage;
        block->slope[k] = slope;
        block->value[k] = slope * block->logprob[k];
        block->whole[k] = whole->ratio;
        block->clipped[k] = 0;
        block->selected[k] = 1;
    }
}

/* --- FIPO --- */

/* 2^y of a real y. */
static double power_of_two(double y)
{
    return objective_exp(y * 0.69314718055994530942);
}

/* The factor of FIPO: the discounted movement of the tokens after each one, computed from the last to the first. */
int fipo_prepare(struct objective_work *work, struct objective_whole *whole)
{
    const struct objective_knobs *knobs = work->knobs;
    const struct objective_sequence *sequence = &work->request->sequences[whole->index];
    double gamma = power_of_two(-1 / knobs->loss.decay);
    double future = 0;
    double x;
    double low = knobs->loss.clip_high_only ? 1 : 1 - knobs->loss.clip_range;
    double high = 1 + knobs->loss.clip_range;
    size_t at = (size_t)whole->n;

    if (!work->spare && !(work->spare = work_allocate(work, work->tokens, sizeof *work->spare)))
        return -1;
    for (size_t t = sequence->tokens; t > 0; t--) {
        future *= gamma;
        if (!is_trained(work, whole->index, t - 1))
            continue;
        if (work_x(work, whole->index, t - 1, &x) < 0)
            return -1;
        double ratio = objective_exp(x);
        double advantage = work_advantage(work, whole->index, t - 1);
        if (!(ratio > knobs->loss.delta))
            future += x;
        double factor = clip(objective_exp(future), low, high);
        if (advantage < 0 && ratio > knobs->loss.safety)
            factor = clip(factor, 0.8, 1);
        work->spare[--at] = factor;
    }
    whole->factor = work->spare;
    return 0;
}

/* ppo_clip times the influence on what followed. Source: FIPO, ms-swift. */
void fipo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    struct objective_knobs plain = *knobs;

    plain.loss.delta = plain.loss.dual_c = NAN;
    ppo_clip_terms(&plain, whole, block);
    for (size_t k = 0; k < block->count; k++) {
        block->value[k] *= whole->factor[block->first + k];
        block->slope[k] *= whole->factor[block->first + k];
    }
}

/* --- REAL --- */

/* The sums of a group: ln(1 + sum of e^z), z = s/tau of the bad ones, -s/tau of the good ones, shifted by their
 * largest. */
struct real_side {
    double largest, sum; /* sum of e^(z - largest) */
    size_t members;
};

static double real_z(const struct objective_work *work, size_t index)
{
    double z = work->sequence_values[index] / work->knobs->loss.tau;
    return work->request->sequences[index].advantage > 0 ? -z : z;
}

static void add_to_side(struct real_side *side, double z)
{
    double most = side->members == 0 ? (z > 0 ? z : 0) : side->largest > z ? side->largest : z;
    /* e^(0 - largest) stands for the 1 inside the logarithm. */
    double before = side->members == 0 ? objective_exp(-most) : side->sum * objective_exp(side->largest - most);

    side->sum = before + objective_exp(z - most);
    side->largest = most;
    side->members++;
}

static int mean_x(struct objective_work *work, size_t index)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double sum = 0;

    if (is_present(sequence->logprobs) && sum_xs(work, index, &sum) < 0)
        return -1;
    work->sequence_values[index] = sum / (double)sequence->trainable_tokens;
    return 0;
}

static bool takes_part(const struct objective_work *work, size_t index)
{
    return work->parts[index].live && work->request->sequences[index].trainable_tokens > 0;
}

/* Shares the loss of the group out over its tokens by the size of their derivatives. */
static void share_out(struct objective_work *work, size_t group, const struct real_side sides[2])
{
    double loss = 0;
    double all = 0;
    double groups = work->result->totals.groups;
    double tau = work->knobs->loss.tau;

    for (int s = 0; s < 2; s++)
        loss += sides[s].largest + objective_log(sides[s].sum);
    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        bool good = work->request->sequences[i].advantage > 0;
        if (!takes_part(work, i))
            continue;
        double size = objective_exp(real_z(work, i) - sides[good].largest) / sides[good].sum / tau;
        work->sequence_slopes[i] = good ? -size : size;
        all += size;
    }
    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        if (!takes_part(work, i))
            continue;
        double n = (double)work->request->sequences[i].trainable_tokens;
        double weight = work->parts[i].weight;
        double share = all > 0 ? fabs(work->sequence_slopes[i]) / all : 0;
        work->sequence_values[i] = loss / groups * share / n / weight;
        work->sequence_slopes[i] = work->sequence_slopes[i] / groups / n / weight;
    }
}

static int real_group(struct objective_work *work, size_t group)
{
    struct real_side sides[2] = {0}; /* bad, good */
    const size_t *first = work->by_group + work->group_first[group];
    const size_t *end = work->by_group + work->group_first[group + 1];

    for (const size_t *at = first; at < end; at++) {
        const struct objective_sequence *sequence = &work->request->sequences[*at];
        if (!takes_part(work, *at))
            continue;
        if (work->advantages)
            return objective_fail(work->error, OBJECTIVE_ERROR_INVALID, *at, SIZE_MAX, "advantage",
                                  "the loss real needs one advantage for a sequence");
        if (mean_x(work, *at) < 0)
            return -1;
        add_to_side(&sides[sequence->advantage > 0], real_z(work, *at));
    }
    if (sides[0].members > 0 && sides[1].members > 0) {
        share_out(work, group, sides);
        return 0;
    }
    for (const size_t *at = first; at < end; at++)
        work->sequence_values[*at] = work->sequence_slopes[*at] = 0;
    return 0;
}

int real_begin(struct objective_work *work)
{
    size_t n = work->request->sequence_count;

    if (work->knobs->loss.kind != OBJECTIVE_LOSS_REAL)
        return 0;
    work->sequence_values = work_allocate(work, n, sizeof *work->sequence_values);
    work->sequence_slopes = work_allocate(work, n, sizeof *work->sequence_slopes);
    if (!work->sequence_values || !work->sequence_slopes)
        return -1;
    for (size_t g = 0; g < work->request->group_count; g++)
        if (real_group(work, g) < 0)
            return -1;
    return 0;
}

int real_prepare(struct objective_work *work, struct objective_whole *whole)
{
    whole->value = work->sequence_values[whole->index];
    whole->slope = work->sequence_slopes[whole->index];
    return 0;
}

/* Per group ln(1 + sum over A<=0 of e^(s/tau)) + ln(1 + sum over A>0 of e^(-s/tau)), s = mean x; mean over groups.
 * Source: REAL, ms-swift. */
void real_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    (void)knobs;
    for (size_t k = 0; k < block->count; k++) {
        block->value[k] = whole->value;
        block->slope[k] = whole->slope;
        block->clipped[k] = 0;
        block->selected[k] = 1;
    }
}
