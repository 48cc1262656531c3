/* One function for each estimator of KL(policy || reference) from d = logprob - reference: value and derivative by the
 * log-probability. Source: Schulman, "Approximating KL divergence" (2020); the _plus forms: verl, straight-through. */
#include "server/objective/terms_private.h"

static void kl_k1(const struct objective_knobs *knobs, struct objective_block *block)
{
    (void)knobs;
    for (size_t k = 0; k < block->count; k++) {
        block->kl[k] = block->distance[k];
        block->kl_slope[k] = 1;
    }
}

static void kl_abs(const struct objective_knobs *knobs, struct objective_block *block)
{
    (void)knobs;
    for (size_t k = 0; k < block->count; k++) {
        block->kl[k] = fabs(block->distance[k]);
        block->kl_slope[k] = (block->distance[k] > 0) - (block->distance[k] < 0);
    }
}

static void kl_k2(const struct objective_knobs *knobs, struct objective_block *block)
{
    (void)knobs;
    for (size_t k = 0; k < block->count; k++) {
        block->kl[k] = 0.5 * block->distance[k] * block->distance[k];
        block->kl_slope[k] = block->distance[k];
    }
}

/* e^-d + d - 1 */
static void kl_k3(const struct objective_knobs *knobs, struct objective_block *block)
{
    (void)knobs;
    lane_k3(block->kernels, block->count, block->distance, block->kl, block->kl_slope);
}

static void slope_of_k2(struct objective_block *block)
{
    for (size_t k = 0; k < block->count; k++)
        block->kl_slope[k] = block->distance[k];
}

static void kl_k1_plus(const struct objective_knobs *knobs, struct objective_block *block)
{
    kl_k1(knobs, block);
    slope_of_k2(block);
}

static void kl_k3_plus(const struct objective_knobs *knobs, struct objective_block *block)
{
    kl_k3(knobs, block);
    slope_of_k2(block);
}

typedef void kl_terms(const struct objective_knobs *knobs, struct objective_block *block);
static kl_terms *const estimators[OBJECTIVE_KL_COUNT] = {
    [OBJECTIVE_KL_K1] = kl_k1,      [OBJECTIVE_KL_ABS] = kl_abs,         [OBJECTIVE_KL_K2] = kl_k2,
    [OBJECTIVE_KL_K3] = kl_k3,      [OBJECTIVE_KL_K1_PLUS] = kl_k1_plus, [OBJECTIVE_KL_K3_PLUS] = kl_k3_plus,
    [OBJECTIVE_KL_LOW_VAR] = kl_k3,
};

/* |value| at most limit; where that changes it, the slope is 0. */
OBJECTIVE_CLONES
static void clamp(size_t n, double limit, double *restrict values, double *restrict held)
{
    for (size_t k = 0; k < n; k++) {
        double value = values[k];
        double within = value > limit ? limit : value;
        within = value < -limit ? -limit : within;
        held[k] = within != value ? 1 : held[k];
        values[k] = within;
    }
}

/* r * kl, with the gradient of r (multiply) or without (detached). Source: DeepSeek-V3.2, the unbiased estimate off
 * policy. */
static void weight_by_ratio(int how, struct objective_block *block, size_t k)
{
    double ratio = block->ratio[k];
    block->kl_slope[k] *= ratio;
    block->kl[k] *= ratio;
    if (how == OBJECTIVE_KL_RATIO_MULTIPLY)
        block->kl_slope[k] += block->kl[k] * block->clamped[k];
}

void objective_kl_block(const struct objective_knobs *knobs, struct objective_block *block)
{
    bool clamps = !isnan(knobs->kl.log_clamp) || !isnan(knobs->kl.value_clamp);
    double held[OBJECTIVE_BLOCK] = {0}; /* 1: clamped */

    if (!isnan(knobs->kl.log_clamp))
        clamp(block->count, knobs->kl.log_clamp, block->distance, held);
    estimators[knobs->kl.estimator](knobs, block);
    if (!isnan(knobs->kl.value_clamp))
        clamp(block->count, knobs->kl.value_clamp, block->kl, held);
    for (size_t k = 0; clamps && k < block->count; k++)
        block->kl_slope[k] = held[k] != 0 ? 0 : block->kl_slope[k];
    for (size_t k = 0; knobs->kl.ratio != OBJECTIVE_KL_RATIO_NONE && k < block->count; k++)
        weight_by_ratio(knobs->kl.ratio, block, k);
}
