/* One function for each preset: the default, and what differs from it. Each ends with every knob explicit. Values were
 * read in the trainers' own source at the version in the name; where a trainer does what no knob says, the summary
 * does. */
#include "server/objective/knobs.h"

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
                      .mean = OBJECTIVE_SCALE_GROUP,
                      .guard_nonpositive_mean = true,
                      .norm = true,
                      .f_norm = 1,
                      .gamma = 1,
                      .form = OBJECTIVE_FORM_PLUS_EPS,
                      .eps_group = 1e-4,
                      .eps_batch = 1e-4,
                      .decay = 0.95,
                      .clip_low = NAN,
                      .clip_high = NAN},
        .filter = {.rule = OBJECTIVE_FILTER_NONE, .tol = 1e-6, .hi = 1, .on = OBJECTIVE_FILTER_ON_RAW},
        .loss = {.kind = OBJECTIVE_LOSS_PPO_CLIP,
                 .eps_low = 0.2,
                 .eps_high = 0.2,
                 .dual_c = NAN,
                 .delta = NAN,
                 .log_clamp = NAN,
                 .lo = NAN,
                 .hi = NAN,
                 .log_max = NAN,
                 .tau_pos = 1,
                 .tau_neg = 1.05,
                 .k_pos = 2,
                 .lambda_pos = 3,
                 .k_neg = 3,
                 .lambda_neg = 2,
                 .d_low = 0.2,
                 .d_high = 0.2,
                 .c = NAN,
                 .kl_tau = NAN,
                 .form = OBJECTIVE_TV_FORM_RATIO,
                 .zero_adv = OBJECTIVE_ZERO_ADV_KEEP,
                 .threshold = 0.1,
                 .beta = NAN,
                 .decay = 32,
                 .clip_range = 0.2,
                 .safety = 4,
                 .clip_high_only = true,
                 .tau = 0.5},
        .kl = {.estimator = OBJECTIVE_KL_K3, .log_clamp = NAN, .value_clamp = NAN, .ratio = OBJECTIVE_KL_RATIO_NONE},
        .selection = {.method = OBJECTIVE_SELECTION_NONE,
                      .rho = NAN,
                      .delta = NAN,
                      .threshold = NAN,
                      .ratio = NAN,
                      .lb = 1,
                      .ub = 5,
                      .frac = NAN,
                      .ppo_kl_coef = NAN},
        .aggregation = {.mode = OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN,
                        .masked_seq = OBJECTIVE_MASKED_SEQ_COUNT,
                        .max_len = NAN,
                        .denominator = NAN},
    };
}

/* --- methods --- */

static void fill_dr_grpo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.scale = OBJECTIVE_SCALE_NONE;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM_NORM;
    ret_knobs->aggregation.max_len = 1024;
}

static void fill_dapo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    ret_knobs->loss.eps_high = 0.28;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_gspo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->loss.kind = OBJECTIVE_LOSS_GSPO;
    ret_knobs->loss.eps_low = 3e-4;
    ret_knobs->loss.eps_high = 4e-4;
}

static void fill_rloo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_RLOO;
}

static void fill_reinforce_pp(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_RPP;
    ret_knobs->advantage.eps = 1e-8;
    ret_knobs->advantage.form = OBJECTIVE_FORM_MAX_EPS;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_reinforce_pp_baseline(struct objective_knobs *ret_knobs)
{
    fill_reinforce_pp(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_RPP_BASELINE;
}

static void fill_cispo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->loss.kind = OBJECTIVE_LOSS_CISPO;
    ret_knobs->loss.hi = 5;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_gmpo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->loss.kind = OBJECTIVE_LOSS_GMPO;
    ret_knobs->loss.eps_low = ret_knobs->loss.eps_high = 0.4;
}

static void fill_sapo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->loss.kind = OBJECTIVE_LOSS_SAPO;
}

static void fill_gpg(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_GPG;
    ret_knobs->loss.kind = OBJECTIVE_LOSS_GPG;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_opo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_OPO;
}

static void fill_remax(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_REMAX;
}

static void fill_gdpo(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_GDPO;
    ret_knobs->advantage.ddof = 1;
    ret_knobs->advantage.missing = OBJECTIVE_MISSING_SKIP;
}

static void fill_maxrl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_MAXRL;
}

/* --- trainers --- */

static void correct(struct objective_knobs *knobs, int method, double lo, double hi)
{
    struct objective_correction *correction = &knobs->importance[knobs->importance_count++];

    objective_item_init(objective_section_find("importance"), correction);
    correction->method = method;
    correction->lo = lo;
    correction->hi = hi;
}

static void sample_deviation(struct objective_knobs *knobs, double eps)
{
    knobs->advantage.ddof = 1;
    knobs->advantage.eps = eps;
}

static void low_var_kl(struct objective_knobs *knobs)
{
    knobs->kl.log_clamp = 20;
    knobs->kl.value_clamp = 10;
}

static void fill_trl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-4);
    ret_knobs->advantage.missing = OBJECTIVE_MISSING_SKIP;
    ret_knobs->kl.ratio = OBJECTIVE_KL_RATIO_MULTIPLY; /* `use_bias_correction_kl`, which this release switches on */
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
    correct(ret_knobs, OBJECTIVE_IMPORTANCE_SEQUENCE_MASK, NAN, 3);
}

static void fill_verl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-6);
    low_var_kl(ret_knobs);
    ret_knobs->advantage.singleton = OBJECTIVE_SINGLETON_RAW;
    ret_knobs->loss.dual_c = 3;
    ret_knobs->loss.log_clamp = 20;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_verl_january(struct objective_knobs *ret_knobs)
{
    fill_verl(ret_knobs);
    ret_knobs->aggregation.masked_seq = OBJECTIVE_MASKED_SEQ_EXCLUDE;
}

static void fill_openrlhf(struct objective_knobs *ret_knobs)
{
    fill_reinforce_pp(ret_knobs);
    ret_knobs->shaping_count = 1;
    objective_item_init(objective_section_find("shaping"), &ret_knobs->shaping[0]);
    ret_knobs->shaping[0].kind = OBJECTIVE_SHAPER_REWARD_CLIP;
    ret_knobs->shaping[0].lo = -10;
    ret_knobs->shaping[0].hi = 10;
    ret_knobs->loss.log_clamp = 20;
    ret_knobs->beta = 0.01;
    ret_knobs->kl.estimator = OBJECTIVE_KL_K1;
    ret_knobs->kl.in = OBJECTIVE_KL_IN_REWARD;
    ret_knobs->kl.value_clamp = 10;
    ret_knobs->aggregation.masked_seq = OBJECTIVE_MASKED_SEQ_EXCLUDE;
}

static void fill_nemo_rl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    low_var_kl(ret_knobs);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_LOO;
    ret_knobs->advantage.eps = 1e-6;
    ret_knobs->beta = 0.01;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_prime_rl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.scale = OBJECTIVE_SCALE_NONE;
    ret_knobs->filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    ret_knobs->filter.on = OBJECTIVE_FILTER_ON_SHAPED;
    ret_knobs->loss.kind = OBJECTIVE_LOSS_DPPO_TV;
    ret_knobs->loss.zero_adv = OBJECTIVE_ZERO_ADV_LOW;
    ret_knobs->loss.kl_tau = 1e-3;
    ret_knobs->loss.anchor = OBJECTIVE_ANCHOR_ROLLOUT;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_areal(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-5);
    ret_knobs->advantage.estimator = OBJECTIVE_ESTIMATOR_NORMALIZATION;
    ret_knobs->shaping_count = 1;
    objective_item_init(objective_section_find("shaping"), &ret_knobs->shaping[0]);
    ret_knobs->shaping[0].kind = OBJECTIVE_SHAPER_BIAS_SCALE_CLIP;
    ret_knobs->shaping[0].bias = 0;
    ret_knobs->shaping[0].scale = 1;
    ret_knobs->shaping[0].clip = 20;
    ret_knobs->kl.estimator = OBJECTIVE_KL_K1;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_slime(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-6);
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_ROLLOUT_MEAN;
}

static void fill_skyrl(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-6);
    ret_knobs->advantage.singleton = OBJECTIVE_SINGLETON_RAW;
    ret_knobs->loss.log_clamp = 20;
    ret_knobs->beta = 0.001;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_open_instruct(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    ret_knobs->advantage.scale = OBJECTIVE_SCALE_NONE;
    ret_knobs->filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    ret_knobs->loss.eps_high = 0.272;
    ret_knobs->beta = 0.05;
    ret_knobs->kl.log_clamp = 40;
    ret_knobs->aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
}

static void fill_ms_swift(struct objective_knobs *ret_knobs)
{
    fill_grpo(ret_knobs);
    sample_deviation(ret_knobs, 1e-4);
    low_var_kl(ret_knobs);
    ret_knobs->advantage.missing = OBJECTIVE_MISSING_SKIP;
    ret_knobs->beta = 0.04;
}

/* --- the table --- */

/* clang-format off */
const struct objective_preset objective_presets[] = {
    {"grpo", "Group-relative advantages with the population deviation, PPO clip 0.2, tokens averaged inside a sequence, then "
             "sequences; no KL (DeepSeekMath, arXiv 2402.03300).", fill_grpo},
    {"dr_grpo", "Rewards centred but not scaled, token losses divided by a constant length: max_len is 1024 and should be the "
                "run's own limit (Dr. GRPO, arXiv 2503.20783).", fill_dr_grpo},
    {"dapo", "Clip 0.2 below and 0.28 above, mean over all tokens, groups without variance left out (DAPO, arXiv 2503.14476); "
             "its overlong penalty is the shaper dapo_soft_overlong.", fill_dapo},
    {"gspo", "One ratio for a sequence, the geometric mean of its tokens', clipped at 3e-4 and 4e-4 (GSPO, arXiv 2507.18071).", fill_gspo},
    {"rloo", "Leave-one-out baseline, PPO clip (RLOO, arXiv 2402.14740).", fill_rloo},
    {"reinforce_pp", "Returns of tokens, whitened over the request with the population variance; mean over tokens "
                     "(REINFORCE++, arXiv 2501.03262).", fill_reinforce_pp},
    {"reinforce_pp_baseline", "Rewards minus the group's mean on every token, whitened over the request (REINFORCE++-baseline, "
                              "arXiv 2501.03262).", fill_reinforce_pp_baseline},
    {"cispo", "Clipped importance weight of at most 5 on the policy gradient, mean over tokens (MiniMax-M1, arXiv 2506.13585).", fill_cispo},
    {"gmpo", "Geometric mean of one-sidedly clipped ratios, bounds of 0.4 on their logarithms (GMPO, arXiv 2507.20673).", fill_gmpo},
    {"sapo", "A soft gate in place of the clip, temperatures 1 and 1.05 (SAPO, arXiv 2511.20347).", fill_sapo},
    {"gpg", "Plain policy gradient, advantages scaled by the share of rewarded sequences, mean over tokens (GPG, arXiv 2504.02546).", fill_gpg},
    {"opo", "Length-weighted baseline of the group (OPO, arXiv 2505.23585).", fill_opo},
    {"remax", "Baseline from a greedy completion, which the request brings (ReMax, arXiv 2310.10505).", fill_remax},
    {"gdpo", "Each reward normalised by name in its group, then their sum over the request (GDPO).", fill_gdpo},
    {"maxrl", "Rewards relative to the group's mean, 0 where it is not positive (MaxRL as in prime-rl).", fill_maxrl},
    {"trl@1.16", "TRL GRPOTrainer's defaults: sample deviation + 1e-4, mean over tokens (loss_type dapo), no KL (with a beta: k3 times the ratio), "
                 "sequences with an importance ratio above 3 masked.", fill_trl},
    {"verl@1dda039b", "verl's defaults for GRPO: sample deviation + 1e-6, a single member keeps its raw reward, dual clip 3, log-ratio "
                      "within 20, mean over tokens, no KL.", fill_verl},
    {"verl@b178a3cd", "verl of January 2026: as 1dda039b, and masked sequences leave the counts.", fill_verl_january},
    {"openrlhf@3c3be623", "OpenRLHF's REINFORCE++: rewards within 10, k1 with 0.01 in the reward, returns whitened with the population "
                          "variance, mean over tokens.", fill_openrlhf},
    {"nemo_rl@7ea279ab", "NeMo-RL's GRPO: mean and deviation of the others, KL 0.01 by k3 with clamps 20 and 10, mean over tokens.", fill_nemo_rl},
    {"prime_rl@559b4477", "prime-rl's default loss: centred rewards, a trust region of 0.2 on the probability, 1e-3 of the squared "
                          "log-ratio, against the engine's own policy; groups without signal leave the counts.", fill_prime_rl},
    {"areal@4aef98d8", "AReaL: rewards within 20, normalised in the group with the sample deviation + 1e-5, PPO clip, mean over tokens. Its "
                       "KL enters after the normalisation, which no knob says: beta is 0.", fill_areal},
    {"slime@624b824a", "slime's GRPO: sample deviation + 1e-6, samples of one rollout share a denominator, no KL.", fill_slime},
    {"skyrl@a9564572", "SkyRL's GRPO: sample deviation + 1e-6, a single member keeps its raw reward, log-ratio within 20, KL 0.001 by k3, "
                       "mean over tokens.", fill_skyrl},
    {"open_instruct@e6c3044a", "open-instruct: centred rewards, clip 0.2 and 0.272, KL 0.05 by k3 within 40, groups without variance left "
                               "out, mean over tokens.", fill_open_instruct},
    {"ms_swift@3602360a", "ms-swift's GRPO: sample deviation + 1e-4, KL 0.04 by k3 with clamps 20 and 10, tokens inside a sequence, then "
                          "sequences.", fill_ms_swift},
};
/* clang-format on */
const size_t objective_presets_count = sizeof objective_presets / sizeof objective_presets[0];

/* With its version, or the first of that trainer. */
static bool is_named(const char *known, const char *name, size_t length_bytes)
{
    return strncmp(known, name, length_bytes) == 0 && (known[length_bytes] == '\0' || known[length_bytes] == '@');
}

void objective_preset_fill(const struct objective_preset *preset, struct objective_knobs *ret_knobs)
{
    preset->fill(ret_knobs);
    ret_knobs->preset = preset->name;
}

bool objective_preset_find(const char *name, size_t length_bytes, struct objective_knobs *ret_knobs)
{
    for (size_t i = 0; i < objective_presets_count; i++) {
        const char *known = objective_presets[i].name;
        if (strlen(known) < length_bytes || memchr(name, '\0', length_bytes) || !is_named(known, name, length_bytes))
            continue;
        objective_preset_fill(&objective_presets[i], ret_knobs);
        return true;
    }
    return false;
}
