/* One function for each estimator of KL(policy || reference) from d = logprob - reference: value and derivative by the
 * log-probability. Source: Schulman, "Approximating KL divergence" (2020); the _plus forms: verl, straight-through. */
#include "server/objective/terms.h"

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
    for (size_t k = 0; k < block->count; k++) {
        double lift = objective_expm1(-block->distance[k]);
        block->kl[k] = lift + block->distance[k];
        block->kl_slope[k] = -lift;
    }
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

/* |value| at most limit; true if that changed it. A NAN limit is none. */
static bool clamp(double *value, double limit)
{
    if (*value > limit)
        *value = limit;
    else if (*value < -limit)
        *value = -limit;
    else
        return false;
    return true;
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
    bool held[OBJECTIVE_BLOCK];
    const size_t count = block->count;

    for (size_t k = 0; k < count; k++)
        held[k] = clamp(&block->distance[k], knobs->kl.log_clamp);
    estimators[knobs->kl.estimator](knobs, block);
    for (size_t k = 0; k < count; k++) {
        if (clamp(&block->kl[k], knobs->kl.value_clamp) || held[k])
            block->kl_slope[k] = 0;
        if (knobs->kl.ratio != OBJECTIVE_KL_RATIO_NONE)
            weight_by_ratio(knobs->kl.ratio, block, k);
    }
}
