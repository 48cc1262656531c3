/* One function for each policy loss of single tokens: from advantage and ratio to the token's loss and its derivative
 * by the log-probability. An advantage of 0 contributes nothing, whatever the ratio: 0 times an infinite ratio would be
 * no number. */
#include "server/objective/terms_private.h"

#include <string.h>

/* No bound acts, all are counted: what a loss says that knows neither. */
static void nothing_clipped(struct objective_block *block)
{
    memset(block->clipped, 0, block->count * sizeof block->clipped[0]);
    memset(block->selected, 1, block->count);
}

static void contribute_nothing(struct objective_block *block)
{
    memset(block->value, 0, block->count * sizeof block->value[0]);
    memset(block->slope, 0, block->count * sizeof block->slope[0]);
    nothing_clipped(block);
}

/* -min(min(r, delta) A, clip(r, 1-eps_low, 1+eps_high) A); for A < 0 at most -dual_c A.
 * Source: Schulman et al. 2017 (arXiv 1707.06347) eq. 7; dual_c: Ye et al. 2020 (arXiv 1912.09729) eq. 7;
 * delta: INTELLECT-2 (arXiv 2505.07291), TRL GRPOConfig.delta; different bounds: DAPO (arXiv 2503.14476). */
void ppo_clip_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                    struct objective_block *block)
{
    bool is_plain =
        block->one_advantage && isnan(knobs->loss.delta) && isnan(knobs->loss.dual_c) && isnan(knobs->loss.log_clamp);
    struct lane_clip clip = {
        .low = 1 - knobs->loss.eps_low,
        .high = 1 + knobs->loss.eps_high,
        .delta = isnan(knobs->loss.delta) ? INFINITY : knobs->loss.delta,
        .dual_c = isnan(knobs->loss.dual_c) ? INFINITY : knobs->loss.dual_c,
    };

    (void)whole;
    memset(block->selected, 1, block->count);
    if (!is_plain)
        block->kernels->clip_any(block->count, &clip, block->advantage, block->clamped, block->ratio, block->value,
                                 block->slope, block->clipped);
    else if (block->advantage[0] == 0)
        contribute_nothing(block);
    else
        block->kernels->clip(block->count, &clip, block->advantage[0], block->ratio, block->value, block->slope,
                             block->clipped);
}

/* -r A, no clip. Source: Tinker and SkyRL, `importance_sampling`; DeepSeekMath's gradient. */
void importance_sampling_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                               struct objective_block *block)
{
    (void)knobs;
    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double value = block->advantage[k] == 0 ? 0 : -block->ratio[k] * block->advantage[k];
        block->value[k] = value;
        block->slope[k] = block->clamped[k] == 0 ? 0 : value;
    }
    nothing_clipped(block);
}

/* -sg(clip(r, lo, hi)) A lp: bounds on r itself.
 * Source: MiniMax-M1 (arXiv 2506.13585) eq. 4-5. TRL and ms-swift: hi = epsilon_high; verl, NeMo-RL, slime: 1 -+ eps;
 * SkyRL: 0 to 5; open-instruct: hi 1.272. */
void cispo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                 struct objective_block *block)
{
    double low = isnan(knobs->loss.lo) ? 0 : knobs->loss.lo;
    double high = knobs->loss.hi;

    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double ratio = block->ratio[k];
        bool below = ratio<low, above = ratio> high;
        double slope = -(below ? low : above ? high : ratio) * block->advantage[k];
        block->slope[k] = slope;
        block->value[k] = slope * block->logprob[k];
        block->clipped[k] = above - below;
    }
    memset(block->selected, 1, block->count);
}

/* -(4 / tau) sigmoid(tau (r - 1)) A. Source: SAPO (arXiv 2511.20347); TRL, verl. */
void sapo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double advantage = block->advantage[k];
        double ratio = block->ratio[k];
        double tau = advantage > 0 ? knobs->loss.tau_pos : knobs->loss.tau_neg;
        double z = tau * (ratio - 1);
        double tail = objective_exp(z > 0 ? -z : z);
        double gate = (z > 0 ? 1 : tail) / (1 + tail);
        bool flat = gate == 1 || advantage == 0 || block->clamped[k] == 0;
        block->value[k] = -4 / tau * gate * advantage + 0.0;
        block->slope[k] = flat ? 0 : -4 * gate * (1 - gate) * ratio * advantage;
    }
    nothing_clipped(block);
}

/* -A lp. Source: Williams 1992 (REINFORCE); GPG (arXiv 2504.02546), verl `gpg`, NeMo-RL `disable_ppo_ratio`. */
void gpg_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    (void)knobs;
    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        block->slope[k] = -block->advantage[k];
        block->value[k] = -block->advantage[k] * block->logprob[k];
    }
    nothing_clipped(block);
}

/* -(A lp - beta/2 x^2). Source: DRO (arXiv 2405.19107), verl `dro`. */
void dro_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    double beta = knobs->loss.beta;

    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double advantage = block->advantage[k];
        double x = block->x[k];
        block->value[k] = -(advantage * block->logprob[k] - beta / 2 * x * x);
        block->slope[k] = -advantage + beta * x;
    }
    nothing_clipped(block);
}

/* -sg(q) A lp where 1-eps_low < q < 1+eps_high, else 0; q against the rollout policy.
 * Source: GLM-5, SkyRL `rollout_is`. */
void rollout_is_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                      struct objective_block *block)
{
    double low = 1 - knobs->loss.eps_low;
    double high = 1 + knobs->loss.eps_high;

    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double ratio = block->ratio[k];
        bool inside = low < ratio && ratio < high;
        double slope = inside ? -ratio * block->advantage[k] : 0;
        block->slope[k] = slope;
        block->value[k] = slope * block->logprob[k];
        block->clipped[k] = (ratio >= high && block->advantage[k] > 0) - (ratio <= low && block->advantage[k] < 0);
        block->selected[k] = inside;
    }
}

/* --- trust regions on the probability itself --- */

/* -r A (`ratio`) or -sg(min(r, c)) A lp (`logp`) of a token inside its trust region; + kl_tau x^2 inside and outside.
 */
static void region_token(const struct objective_knobs *knobs, struct objective_block *block, size_t k, bool inside,
                         bool by_logprob)
{
    double advantage = block->advantage[k];
    double ratio = block->ratio[k];
    double x = block->x[k];
    double tau = isnan(knobs->loss.kl_tau) ? 0 : knobs->loss.kl_tau;
    double held = ratio > knobs->loss.c ? knobs->loss.c : ratio;
    double value = 0;
    double slope = 0;

    if (inside && advantage != 0 && by_logprob) {
        slope = -held * advantage;
        value = slope * block->logprob[k];
    } else if (inside && advantage != 0) {
        value = -ratio * advantage;
        slope = block->clamped[k] == 0 ? 0 : value;
    }
    block->value[k] = value + tau * x * x;
    block->slope[k] = slope + 2 * tau * x * block->clamped[k];
    block->clipped[k] = 0;
    block->selected[k] = inside;
}

/* Keep if A > 0: p - p_old <= d_high; A < 0: >= -d_low. Source: DPPO, verl `dppo_tv`, SkyRL; prime-rl's
 * default loss is form ratio with kl_tau 1e-3. */
void dppo_tv_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                   struct objective_block *block)
{
    bool low_at_zero = knobs->loss.zero_adv == OBJECTIVE_ZERO_ADV_LOW;

    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double advantage = block->advantage[k];
        double moved = objective_exp(block->logprob[k]) - objective_exp(block->old[k]);
        bool low_test = advantage < 0 || (advantage == 0 && low_at_zero);
        bool inside = advantage > 0 ? moved <= knobs->loss.d_high : !low_test || moved >= -knobs->loss.d_low;
        region_token(knobs, block, k, inside, knobs->loss.form == OBJECTIVE_TV_FORM_LOGP);
    }
}

/* The KL of two coins with the probabilities p_old and p. Source: verl `dppo_kl`, 1e-8 inside the logarithm. */
static double binary_kl(double old_logprob, double logprob)
{
    const double eps = 1e-8;
    double old = objective_exp(old_logprob);
    double now = objective_exp(logprob);
    double rest_old = 1 - old > 0 ? 1 - old : 0;
    double rest = 1 - now > 0 ? 1 - now : 0;
    double own = old == 0 ? 0 : old * (old_logprob - logprob);
    return own + rest_old * objective_log((rest_old + eps) / (rest + eps));
}

/* Drop where the KL is above d and p moved to where A pushes it. Source: DPPO, verl `dppo_kl`. */
void dppo_kl_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                   struct objective_block *block)
{
    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double kl = binary_kl(block->old[k], block->logprob[k]);
        bool up = block->logprob[k] > block->old[k], down = block->logprob[k] < block->old[k];
        bool outside = block->advantage[k] > 0 ? up && kl > knobs->loss.d_high : down && kl > knobs->loss.d_low;
        region_token(knobs, block, k, !outside, true);
    }
}

/* -r A where |p - p_old| <= threshold. Source: prime-rl `ipo`. */
void ipo_terms(const struct objective_knobs *knobs, const struct objective_whole *whole, struct objective_block *block)
{
    (void)whole;
    for (size_t k = 0; k < block->count; k++) {
        double moved = objective_exp(block->logprob[k]) - objective_exp(block->old[k]);
        region_token(knobs, block, k, fabs(moved) <= knobs->loss.threshold, false);
    }
}

#define TRAITS(...) __VA_ARGS__
#define LOSS(symbol, name, terms, prepare, traits, ...) [OBJECTIVE_LOSS_##symbol] = {terms, prepare, traits},
const struct objective_loss objective_losses[OBJECTIVE_LOSS_COUNT] = {
#include "server/objective/losses.def"
};
#undef LOSS
