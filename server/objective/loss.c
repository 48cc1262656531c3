/* One function for each policy loss: from advantage and ratio to the token's loss and its derivative by the
 * log-probability. */
#include "server/objective/terms.h"

#include <math.h>

/* An advantage of 0 contributes nothing, whatever the ratio: 0 times an infinite ratio would be no number. */
static void nothing(struct objective_block *block, size_t k)
{
    block->value[k] = 0;
    block->slope[k] = 0;
    block->clipped[k] = 0;
    block->selected[k] = 1;
}

struct clip_bounds {
    double low, high;
    double delta;  /* cap of the unclipped ratio, for both signs */
    double dual_c; /* cap of the loss for a negative advantage, in units of |A| */
};

static void ppo_clip_token(const struct clip_bounds *bounds, struct objective_block *block, size_t k)
{
    double advantage = block->advantage[k];
    double ratio = block->ratio[k];
    bool below = ratio<bounds->low, above = ratio> bounds->high, capped = ratio > bounds->delta;
    double own = capped ? bounds->delta : ratio;
    double held = below ? bounds->low : above ? bounds->high : ratio;
    bool clip_decides = held * advantage < own * advantage;
    bool constant = clip_decides ? below || above : capped;
    double loss = -(clip_decides ? held : own) * advantage;

    block->clipped[k] = (int8_t)(advantage > 0 ? above : -below);
    if (advantage < 0 && loss > -bounds->dual_c * advantage) {
        loss = -bounds->dual_c * advantage;
        constant = true;
        block->clipped[k] = 2;
    }
    block->value[k] = loss;
    block->slope[k] = constant ? 0 : -ratio * advantage * block->clamped[k];
    block->selected[k] = 1;
}

/* -min(min(r, delta) A, clip(r, 1-eps_low, 1+eps_high) A); for A < 0 at most -dual_c A.
 * Source: Schulman et al. 2017 (arXiv 1707.06347) eq. 7; dual_c: Ye et al. 2020 (arXiv 1912.09729) eq. 7;
 * delta: INTELLECT-2 (arXiv 2505.07291), TRL GRPOConfig.delta; different bounds: DAPO (arXiv 2503.14476). */
static void ppo_clip(const struct objective_knobs *knobs, struct objective_block *block)
{
    struct clip_bounds bounds = {
        .low = 1 - knobs->loss.eps_low,
        .high = 1 + knobs->loss.eps_high,
        .delta = isnan(knobs->loss.delta) ? INFINITY : knobs->loss.delta,
        .dual_c = isnan(knobs->loss.dual_c) ? INFINITY : knobs->loss.dual_c,
    };
    for (size_t k = 0; k < block->count; k++) {
        if (block->advantage[k] == 0)
            nothing(block, k);
        else
            ppo_clip_token(&bounds, block, k);
    }
}

/* -r A, no clip. Source: Tinker and SkyRL, `importance_sampling`. */
static void importance_sampling(const struct objective_knobs *knobs, struct objective_block *block)
{
    (void)knobs;
    for (size_t k = 0; k < block->count; k++) {
        nothing(block, k);
        if (block->advantage[k] == 0)
            continue;
        block->value[k] = -block->ratio[k] * block->advantage[k];
        block->slope[k] = block->value[k] * block->clamped[k];
    }
}

const struct objective_loss objective_losses[OBJECTIVE_LOSS_BUILT] = {
    [OBJECTIVE_LOSS_PPO_CLIP] = {ppo_clip, .has_bounds = true},
    [OBJECTIVE_LOSS_DUAL_CLIP] = {ppo_clip, .has_bounds = true},
    [OBJECTIVE_LOSS_TWO_SIDED] = {ppo_clip, .has_bounds = true},
    [OBJECTIVE_LOSS_IMPORTANCE_SAMPLING] = {importance_sampling},
};
