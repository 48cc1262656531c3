/* Tokens or sequences out of the policy term; the denominators stay. */
#include "server/objective/terms_private.h"

#include <stdlib.h>

/* Calls of the trained tokens of the request, in its order. */
typedef int each_token(struct objective_work *work, size_t index, size_t token, void *arg);

static int for_trained(struct objective_work *work, each_token *each, void *arg)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        for (size_t t = 0; work->parts[i].live && t < work->request->sequences[i].tokens; t++)
            if (is_trained(work, i, t) && each(work, i, t, arg) < 0)
                return -1;
    return 0;
}

/* The trained tokens by place, and a value of each. */
struct ranking {
    size_t count;
    size_t *at;    /* places in the arrays of the request */
    double *value; /* [tokens of the request] */
};

static int ranking_init(struct objective_work *work, struct ranking *ret_ranking)
{
    work->token_order = work_allocate(work, work->tokens, sizeof *work->token_order);
    work->spare = work->spare ? work->spare : work_allocate(work, work->tokens, sizeof *work->spare);
    *ret_ranking = (struct ranking){.at = work->token_order, .value = work->spare};
    return work->token_order && work->spare ? 0 : -1;
}

static void rank(struct objective_work *work, struct ranking *ranking, size_t index, size_t token, double value)
{
    size_t at = work->parts[index].first + token;

    ranking->at[ranking->count++] = at;
    ranking->value[at] = value;
}

/* Largest first; equal ones in the order of the request. */
static int compare_values(const void *left, const void *right, void *values)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const double *value = values;

    if (value[a] != value[b])
        return value[a] > value[b] ? -1 : 1;
    return (a > b) - (a < b);
}

static void sort_ranking(struct ranking *ranking)
{
    qsort_r(ranking->at, ranking->count, sizeof *ranking->at, compare_values, ranking->value);
}

/* --- entropy --- */

static int rank_entropy(struct objective_work *work, size_t index, size_t token, void *arg)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double entropy;

    if (work_need(work, index, sequence->entropy, "entropy", "top_entropy_quantile needs it") < 0 ||
        work_read(work, index, token, sequence->entropy, "entropy", &entropy) < 0)
        return -1;
    rank(work, arg, index, token, entropy);
    return 0;
}

/* Keeps entropy >= quantile(1 - rho) over the trainable tokens of the request, linear between two tokens.
 * Source: Wang et al. 2025 (arXiv 2506.01939), TRL `top_entropy_quantile`. */
static int top_entropy(struct objective_work *work)
{
    struct ranking ranking;

    if (ranking_init(work, &ranking) < 0 || for_trained(work, rank_entropy, &ranking) < 0)
        return -1;
    if (ranking.count == 0)
        return 0;
    sort_ranking(&ranking);
    /* From the largest down, quantile(1 - rho) stands at rho * (count - 1). */
    double place = (1 - work->knobs->selection.rho) * (double)(ranking.count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < ranking.count ? below + 1 : below;
    double low = ranking.value[ranking.at[ranking.count - 1 - below]];
    double high = ranking.value[ranking.at[ranking.count - 1 - above]];
    double threshold = low + (high - low) * (place - (double)below);
    for (size_t k = 0; k < ranking.count; k++)
        if (ranking.value[ranking.at[k]] < threshold)
            work->dropped[ranking.at[k]] |= DROPPED_BY_SELECTION;
    return 0;
}

/* --- off-policy sequences --- */

static int drift_of(struct objective_work *work, size_t index, double *ret_drift)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct precise_sum sum = {0};
    double now;
    double rollout;
    double n = 0;

    if (work_need(work, index, sequence->rollout_logprobs, "rollout_logprobs", "off_policy_sequence_mask needs them") <
            0 ||
        work_need(work, index, sequence->logprobs, "logprobs", "off_policy_sequence_mask needs them") < 0)
        return -1;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(work, index, t))
            continue;
        if (work_read(work, index, t, sequence->logprobs, "logprobs", &now) < 0 ||
            work_read(work, index, t, sequence->rollout_logprobs, "rollout_logprobs", &rollout) < 0)
            return -1;
        precise_sum_add(&sum, rollout - now);
        n++;
    }
    *ret_drift = n > 0 ? precise_sum_value(&sum) / n : 0;
    return 0;
}

/* Drops what is bad (A < 0) and far from what was sampled: mean of rollout - logprob above delta. With an advantage for
 * each token, its bad tokens. Source: DeepSeek-V3.2 (arXiv 2512.02556), TRL, slime `use_opsm`. */
static int off_policy(struct objective_work *work)
{
    double drift;

    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        bool stays = false;
        if (!work->parts[i].live)
            continue;
        if (drift_of(work, i, &drift) < 0)
            return -1;
        if (!(drift > work->knobs->selection.delta))
            continue;
        for (size_t t = 0; t < sequence->tokens; t++) {
            if (!is_trained(work, i, t))
                continue;
            if (work_advantage(work, i, t) < 0)
                work->dropped[work->parts[i].first + t] |= DROPPED_BY_SELECTION;
            else
                stays = true;
        }
        sequence->kept = sequence->kept && stays;
    }
    return 0;
}

/* --- M2PO --- */

static int rank_square(struct objective_work *work, size_t index, size_t token, void *arg)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double old;
    double rollout;

    if (work_need(work, index, sequence->rollout_logprobs, "rollout_logprobs", "m2po needs them") < 0 ||
        work_need(work, index, old_values(sequence), "old_logprobs", "m2po needs them") < 0 ||
        work_read(work, index, token, old_values(sequence), "old_logprobs", &old) < 0 ||
        work_read(work, index, token, sequence->rollout_logprobs, "rollout_logprobs", &rollout) < 0)
        return -1;
    rank(work, arg, index, token, (old - rollout) * (old - rollout));
    return 0;
}

/* Drops the largest (old - rollout)^2 until the mean of the rest is below the threshold; one token stays. The sums are
 * taken from the smallest up, so that no rest of a difference decides.
 * Source: M2PO (arXiv 2510.01161), AReaL `actor.py`. */
static int m2po(struct objective_work *work)
{
    struct ranking ranking;
    double sum = 0;
    size_t stays = 1;

    if (ranking_init(work, &ranking) < 0 || for_trained(work, rank_square, &ranking) < 0)
        return -1;
    sort_ranking(&ranking);
    for (size_t n = 1; n <= ranking.count; n++) {
        sum += ranking.value[ranking.at[ranking.count - n]];
        if (sum / (double)n < work->knobs->selection.threshold)
            stays = n;
    }
    for (size_t k = 0; k + stays < ranking.count; k++)
        work->dropped[ranking.at[k]] |= DROPPED_BY_SELECTION;
    return 0;
}

/* --- covariance of advantage and log-probability --- */

struct covariance {
    struct ranking ranking;
    struct precise_sum advantages, logprobs;
    double tokens;
    double mean_advantage, mean_logprob;
};

static int logprob_of(struct objective_work *work, size_t index, size_t token, double *ret_logprob)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];

    if (work_need(work, index, sequence->logprobs, "logprobs", "this selection needs them") < 0)
        return -1;
    return work_read(work, index, token, sequence->logprobs, "logprobs", ret_logprob);
}

static int add_to_means(struct objective_work *work, size_t index, size_t token, void *arg)
{
    struct covariance *covariance = arg;
    double logprob;

    if (logprob_of(work, index, token, &logprob) < 0)
        return -1;
    precise_sum_add(&covariance->advantages, work_advantage(work, index, token));
    precise_sum_add(&covariance->logprobs, logprob);
    covariance->tokens++;
    return 0;
}

static double covariance_of(struct objective_work *work, size_t index, size_t token,
                            const struct covariance *covariance)
{
    double logprob = value_at(work->request->sequences[index].logprobs, token);
    return (work_advantage(work, index, token) - covariance->mean_advantage) * (logprob - covariance->mean_logprob);
}

static int covariance_init(struct objective_work *work, struct covariance *covariance)
{
    if (ranking_init(work, &covariance->ranking) < 0 || for_trained(work, add_to_means, covariance) < 0)
        return -1;
    if (covariance->tokens > 0) {
        covariance->mean_advantage = precise_sum_value(&covariance->advantages) / covariance->tokens;
        covariance->mean_logprob = precise_sum_value(&covariance->logprobs) / covariance->tokens;
    }
    return 0;
}

static size_t share_of_tokens(double share, double tokens)
{
    size_t n = (size_t)(share * tokens);
    return n > 0 ? n : 1;
}

static bool clip_holds(const struct objective_knobs *knobs, double x, double advantage)
{
    double ratio = objective_exp(x);

    if (knobs->loss.kind != OBJECTIVE_LOSS_PPO_CLIP)
        return false;
    return advantage > 0 ? ratio > 1 + knobs->loss.eps_high : advantage < 0 && ratio < 1 - knobs->loss.eps_low;
}

static int rank_candidate(struct objective_work *work, size_t index, size_t token, void *arg)
{
    struct covariance *covariance = arg;
    double cov = covariance_of(work, index, token, covariance);
    double x;

    if (work_x(work, index, token, &x) < 0)
        return -1;
    bool inside = work->knobs->selection.lb < cov && cov < work->knobs->selection.ub;
    if (inside && !clip_holds(work->knobs, x, work_advantage(work, index, token)))
        rank(work, &covariance->ranking, index, token, cov);
    return 0;
}

static uint64_t next_random(uint64_t *state) /* SplitMix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Among the tokens whose covariance is between lb and ub and that the clip does not hold, a seeded choice gets loss 0.
 * Source: Cui et al. 2025 (arXiv 2505.22617) Clip-Cov, verl `clip_cov`. */
static int clip_cov(struct objective_work *work)
{
    struct covariance covariance = {0};
    uint64_t state = (uint64_t)work->knobs->selection.seed;

    if (covariance_init(work, &covariance) < 0 || for_trained(work, rank_candidate, &covariance) < 0)
        return -1;
    struct ranking *ranking = &covariance.ranking;
    size_t chosen = share_of_tokens(work->knobs->selection.ratio, covariance.tokens);
    for (size_t k = 0; k < chosen && k < ranking->count; k++) {
        size_t other =
            k + (size_t)((__extension__(unsigned __int128) next_random(&state) * (ranking->count - k)) >> 64);
        size_t at = ranking->at[other];
        ranking->at[other] = ranking->at[k];
        ranking->at[k] = at;
        work->dropped[at] |= DROPPED_BY_SELECTION;
    }
    return 0;
}

static int rank_covariance(struct objective_work *work, size_t index, size_t token, void *arg)
{
    struct covariance *covariance = arg;
    rank(work, &covariance->ranking, index, token, covariance_of(work, index, token, covariance));
    return 0;
}

/* The tokens of largest covariance get an additive ppo_kl_coef |x|; the loss is -rA everywhere.
 * Source: Cui et al. 2025 (arXiv 2505.22617) KL-Cov, verl `kl_cov`. */
static int kl_cov(struct objective_work *work)
{
    struct covariance covariance = {0};

    if (covariance_init(work, &covariance) < 0 || for_trained(work, rank_covariance, &covariance) < 0)
        return -1;
    struct ranking *ranking = &covariance.ranking;
    sort_ranking(ranking);
    size_t chosen = share_of_tokens(work->knobs->selection.frac, covariance.tokens);
    for (size_t k = 0; k < chosen && k < ranking->count; k++)
        work->dropped[ranking->at[k]] |= CHOSEN_BY_KL_COV;
    return 0;
}

static int (*const selections[OBJECTIVE_SELECTION_COUNT])(struct objective_work *work) = {
    [OBJECTIVE_SELECTION_TOP_ENTROPY] = top_entropy,
    [OBJECTIVE_SELECTION_OFF_POLICY] = off_policy,
    [OBJECTIVE_SELECTION_M2PO] = m2po,
    [OBJECTIVE_SELECTION_CLIP_COV] = clip_cov,
    [OBJECTIVE_SELECTION_KL_COV] = kl_cov,
};

int work_selection(struct objective_work *work)
{
    if (work->knobs->selection.method == OBJECTIVE_SELECTION_NONE)
        return 0;
    if (!work->dropped && !(work->dropped = work_allocate(work, work->tokens, 1)))
        return -1;
    return selections[work->knobs->selection.method](work);
}
