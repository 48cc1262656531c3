/* One function for each preset: every knob, explicit. */
#include "server/objective/objective.h"

#include <math.h>
#include <string.h>

/* DeepSeekMath (arXiv 2402.03300) with its clip of PPO and without KL, as the trainers run it today. */
static void fill_grpo(struct objective_knobs *ret_knobs)
{
    *ret_knobs = (struct objective_knobs){
        .preset = "grpo",
        .advantage = {.estimator = OBJECTIVE_ESTIMATOR_GRPO,
                      .scale = OBJECTIVE_SCALE_GROUP,
                      .singleton = OBJECTIVE_SINGLETON_ZERO,
                      .missing = OBJECTIVE_MISSING_NULL,
                      .clip_low = NAN,
                      .clip_high = NAN},
        .loss = {.kind = OBJECTIVE_LOSS_PPO_CLIP,
                 .eps_low = 0.2,
                 .eps_high = 0.2,
                 .dual_c = NAN,
                 .delta = NAN,
                 .log_clamp = NAN},
        .kl = {.estimator = OBJECTIVE_KL_K3, .log_clamp = NAN, .value_clamp = NAN, .ratio = OBJECTIVE_KL_RATIO_NONE},
        .aggregation = {.mode = OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN,
                        .masked_seq = OBJECTIVE_MASKED_SEQ_COUNT,
                        .max_len = NAN,
                        .denominator = NAN},
    };
}

const struct objective_preset objective_presets[] = {
    {"grpo",
     "Group-relative advantages with the population deviation, PPO clip 0.2, tokens averaged inside a sequence, then "
     "sequences; no KL (DeepSeekMath, arXiv 2402.03300).",
     fill_grpo},
};
const size_t objective_presets_count = sizeof objective_presets / sizeof objective_presets[0];

bool objective_preset_find(const char *name, size_t length_bytes, struct objective_knobs *ret_knobs)
{
    for (size_t i = 0; i < objective_presets_count; i++) {
        const char *known = objective_presets[i].name;
        if (strlen(known) != length_bytes || memcmp(known, name, length_bytes) != 0)
            continue;
        objective_presets[i].fill(ret_knobs);
        return true;
    }
    return false;
}
