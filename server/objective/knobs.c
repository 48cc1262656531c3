/* The table of knobs, its sections, and the defaults that depend on a kind. */
#include "server/objective/knobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- the values that knobs may name --- */

#define NAME(symbol, name) name,
#define CHOICES(variable, LIST) static const char *const variable[] = {LIST(NAME) NULL}

CHOICES(estimators, OBJECTIVE_ESTIMATORS);
CHOICES(shapers, OBJECTIVE_SHAPERS);
CHOICES(scales, OBJECTIVE_SCALES);
CHOICES(singletons, OBJECTIVE_SINGLETONS);
CHOICES(missings, OBJECTIVE_MISSINGS);
CHOICES(forms, OBJECTIVE_FORMS);
CHOICES(filters, OBJECTIVE_FILTERS);
CHOICES(filter_ons, OBJECTIVE_FILTER_ONS);
CHOICES(tv_forms, OBJECTIVE_TV_FORMS);
CHOICES(zero_advs, OBJECTIVE_ZERO_ADVS);
CHOICES(anchors, OBJECTIVE_ANCHORS);
CHOICES(kls, OBJECTIVE_KLS);
CHOICES(kl_places, OBJECTIVE_KL_PLACES);
CHOICES(kl_ratios, OBJECTIVE_KL_RATIOS);
CHOICES(importances, OBJECTIVE_IMPORTANCES);
CHOICES(reductions, OBJECTIVE_REDUCTIONS);
CHOICES(rs_options, OBJECTIVE_RS_OPTIONS);
CHOICES(is_denominators, OBJECTIVE_IS_DENOMINATORS);
CHOICES(selections, OBJECTIVE_SELECTIONS);
CHOICES(modes, OBJECTIVE_MODES);
CHOICES(masked_seqs, OBJECTIVE_MASKED_SEQS);

#define LOSS(symbol, name, ...) name,
static const char *const losses[] = {
#include "server/objective/losses.def"
    NULL};
#undef LOSS

#define LOSS(symbol, name, terms, prepare, traits, value, derivative, source) {name, value, derivative, source},
const struct objective_loss_text objective_loss_texts[OBJECTIVE_LOSS_COUNT] = {
#include "server/objective/losses.def"
};
#undef LOSS

/* --- which kinds use a knob --- */

#define EVERY UINT32_MAX
#define E(kind) (1u << OBJECTIVE_ESTIMATOR_##kind)
#define S(kind) (1u << OBJECTIVE_SHAPER_##kind)
#define F(kind) (1u << OBJECTIVE_FILTER_##kind)
#define L(kind) (1u << OBJECTIVE_LOSS_##kind)
#define I(kind) (1u << OBJECTIVE_IMPORTANCE_##kind)
#define C(kind) (1u << OBJECTIVE_SELECTION_##kind)
#define M(kind) (1u << OBJECTIVE_MODE_##kind)

#define WHITENS (E(RPP) | E(RPP_BASELINE))
#define WITH_DDOF (E(GRPO) | E(PASSK) | E(RPP_BASELINE_SEQUENCE) | E(GDPO) | E(NORMALIZATION) | E(PROCESS) | WHITENS)
#define WITH_EPS ((WITH_DDOF & ~E(GDPO)) | E(RLOO) | E(LOO) | E(MAXRL) | E(OPTIMAL_TOKEN_BASELINE))
#define WITH_SCALE (E(GRPO) | E(NORMALIZATION) | E(PROCESS))
#define WITH_SINGLETON (WITH_SCALE | E(RLOO) | E(RPP_BASELINE) | E(RPP_BASELINE_SEQUENCE))
#define WITH_GAMMA (E(REWARD_TO_GO) | E(RPP) | E(OPTIMAL_TOKEN_BASELINE))

#define PPO (L(PPO_CLIP) | L(DUAL_CLIP) | L(TWO_SIDED))
#define WITH_EPSILON (PPO | L(GSPO) | L(GSPO_TOKEN) | L(GMPO) | L(LUSPO) | L(ROLLOUT_IS) | L(FIPO))
#define WITH_LOG_CLAMP                                                                                                 \
    (PPO | L(IMPORTANCE_SAMPLING) | L(CISPO) | L(SAPO) | L(DPPO_TV) | L(DPPO_KL) | L(ROLLOUT_IS) | L(FIPO))
#define WITH_RATIO (EVERY & ~L(GPG) & ~L(ROLLOUT_IS))
#define DPPO (L(DPPO_TV) | L(DPPO_KL))

#define BY_SEQUENCE (I(SEQUENCE_TRUNCATE) | I(SEQUENCE_MASK))
#define WITH_BOUNDS (I(TOKEN_TRUNCATE) | I(TOKEN_MASK) | BY_SEQUENCE | I(SEQ_MASK_TIS) | I(OUTLIER_TOKEN))
#define WEIGHS (I(TOKEN) | I(TOKEN_TRUNCATE) | I(TOKEN_MASK) | BY_SEQUENCE | I(SEQ_MASK_TIS))
#define WITH_THRESHOLD (I(TV_MASK) | I(SEQ_MULT_PROB_ERROR) | I(ROLLOUT_RS))
#define NOT_NONE (EVERY & ~I(NONE))

/* --- the table --- */

#define AT(member) offsetof(struct objective_knobs, member)
#define OF_SHAPER(member) offsetof(struct objective_shaper, member)
#define OF_CORRECTION(member) offsetof(struct objective_correction, member)
#define POSITIVE KNOB_ABOVE_MINIMUM
#define NULLABLE KNOB_NULLABLE
#define REQUIRED KNOB_REQUIRED

/* clang-format off */
#define NUMBER(section, name, at, flags, minimum, maximum, used) {section, name, KNOB_NUMBER, flags, at, minimum, maximum, NULL, used}
#define INTEGER(section, name, at, flags, minimum, maximum, used) {section, name, KNOB_INTEGER, flags, at, minimum, maximum, NULL, used}
#define BOOLEAN(section, name, at, used) {section, name, KNOB_BOOLEAN, 0, at, 0, 0, NULL, used}
#define CHOICE(section, name, at, flags, choices, used) {section, name, KNOB_CHOICE, flags, at, 0, 0, choices, used}
#define KIND(section, name, at, choices) {section, name, KNOB_CHOICE, KNOB_SELECTOR, at, 0, 0, choices, EVERY}
#define PAIR(section, name, at, used) {section, name, KNOB_PAIR, REQUIRED, at, -INFINITY, INFINITY, NULL, used}

const struct objective_knob objective_knobs_table[] = {
    KIND("advantage", "estimator", AT(advantage.estimator), estimators),
    INTEGER("advantage", "ddof", AT(advantage.ddof), 0, 0, 1, WITH_DDOF),
    NUMBER("advantage", "eps", AT(advantage.eps), 0, 0, INFINITY, WITH_EPS),
    CHOICE("advantage", "scale", AT(advantage.scale), 0, scales, WITH_SCALE),
    CHOICE("advantage", "singleton", AT(advantage.singleton), 0, singletons, WITH_SINGLETON),
    CHOICE("advantage", "missing", AT(advantage.missing), 0, missings, EVERY),
    CHOICE("advantage", "mean", AT(advantage.mean), 0, scales, E(NORMALIZATION)),
    BOOLEAN("advantage", "leave_one_out", AT(advantage.leave_one_out), E(NORMALIZATION)),
    BOOLEAN("advantage", "normalize_batch", AT(advantage.normalize_batch), E(RLOO)),
    BOOLEAN("advantage", "guard_nonpositive_mean", AT(advantage.guard_nonpositive_mean), E(MAXRL)),
    BOOLEAN("advantage", "norm", AT(advantage.norm), E(PASSK)),
    NUMBER("advantage", "f_norm", AT(advantage.f_norm), POSITIVE, 0, INFINITY, E(GPG)),
    NUMBER("advantage", "gamma", AT(advantage.gamma), 0, 0, 1, WITH_GAMMA),
    NUMBER("advantage", "outcome_coef", AT(advantage.outcome_coef), 0, -INFINITY, INFINITY, E(PROCESS)),
    CHOICE("advantage", "form", AT(advantage.form), 0, forms, WHITENS),
    NUMBER("advantage", "eps_group", AT(advantage.eps_group), 0, 0, INFINITY, E(GDPO)),
    NUMBER("advantage", "eps_batch", AT(advantage.eps_batch), 0, 0, INFINITY, E(GDPO)),
    NUMBER("advantage", "decay", AT(advantage.decay), 0, 0, 1, E(EMA_BASELINE)),
    NUMBER("advantage", "initial", AT(advantage.initial), 0, -INFINITY, INFINITY, E(EMA_BASELINE)),
    NUMBER("advantage", "clip_low", AT(advantage.clip_low), NULLABLE, -INFINITY, INFINITY, EVERY),
    NUMBER("advantage", "clip_high", AT(advantage.clip_high), NULLABLE, -INFINITY, INFINITY, EVERY),
    NUMBER("advantage", "teacher_coef", AT(advantage.teacher_coef), 0, -INFINITY, INFINITY, EVERY),

    KIND("shaping", "kind", OF_SHAPER(kind), shapers),
    NUMBER("shaping", "max_len", OF_SHAPER(max_len), REQUIRED | POSITIVE, 0, INFINITY, S(SOFT_OVERLONG) | S(COSINE)),
    NUMBER("shaping", "buffer", OF_SHAPER(buffer), REQUIRED, 0, INFINITY, S(SOFT_OVERLONG)),
    NUMBER("shaping", "factor", OF_SHAPER(factor), 0, 0, INFINITY, S(SOFT_OVERLONG)),
    BOOLEAN("shaping", "capped", OF_SHAPER(capped), S(SOFT_OVERLONG)),
    NUMBER("shaping", "coef", OF_SHAPER(coef), REQUIRED, -INFINITY, INFINITY, S(STOP_PROPERLY)),
    NUMBER("shaping", "w_out", OF_SHAPER(w_out), 0, -INFINITY, INFINITY, S(LINEAR_LENGTH)),
    NUMBER("shaping", "w_in", OF_SHAPER(w_in), 0, -INFINITY, INFINITY, S(LINEAR_LENGTH)),
    NUMBER("shaping", "w_turns", OF_SHAPER(w_turns), 0, -INFINITY, INFINITY, S(LINEAR_LENGTH)),
    PAIR("shaping", "source", OF_SHAPER(source), S(LINEAR_MAP)),
    PAIR("shaping", "target", OF_SHAPER(target), S(LINEAR_MAP)),
    NUMBER("shaping", "bias", OF_SHAPER(bias), REQUIRED, -INFINITY, INFINITY, S(BIAS_SCALE_CLIP)),
    NUMBER("shaping", "scale", OF_SHAPER(scale), REQUIRED, -INFINITY, INFINITY, S(BIAS_SCALE_CLIP)),
    NUMBER("shaping", "clip", OF_SHAPER(clip), REQUIRED, 0, INFINITY, S(BIAS_SCALE_CLIP)),
    NUMBER("shaping", "lo", OF_SHAPER(lo), REQUIRED, -INFINITY, INFINITY, S(REWARD_CLIP)),
    NUMBER("shaping", "hi", OF_SHAPER(hi), REQUIRED, -INFINITY, INFINITY, S(REWARD_CLIP)),
    NUMBER("shaping", "min_correct", OF_SHAPER(min_correct), 0, -INFINITY, INFINITY, S(COSINE)),
    NUMBER("shaping", "max_correct", OF_SHAPER(max_correct), 0, -INFINITY, INFINITY, S(COSINE)),
    NUMBER("shaping", "min_wrong", OF_SHAPER(min_wrong), 0, -INFINITY, INFINITY, S(COSINE)),
    NUMBER("shaping", "max_wrong", OF_SHAPER(max_wrong), 0, -INFINITY, INFINITY, S(COSINE)),
    INTEGER("shaping", "ngram", OF_SHAPER(ngram), 0, 1, 1000, S(REPETITION)),
    NUMBER("shaping", "max_penalty", OF_SHAPER(max_penalty), 0, -INFINITY, INFINITY, S(REPETITION)),

    BOOLEAN("mask", "truncated", AT(mask.truncated), EVERY),

    KIND("filter", "rule", AT(filter.rule), filters),
    NUMBER("filter", "tol", AT(filter.tol), 0, 0, INFINITY, F(RANGE)),
    NUMBER("filter", "lo", AT(filter.lo), 0, -INFINITY, INFINITY, F(MEAN_INTERVAL)),
    NUMBER("filter", "hi", AT(filter.hi), 0, -INFINITY, INFINITY, F(MEAN_INTERVAL)),
    CHOICE("filter", "on", AT(filter.on), 0, filter_ons, EVERY & ~F(NONE)),

    KIND("loss", "kind", AT(loss.kind), losses),
    NUMBER("loss", "eps_low", AT(loss.eps_low), 0, 0, INFINITY, WITH_EPSILON),
    NUMBER("loss", "eps_high", AT(loss.eps_high), 0, 0, INFINITY, WITH_EPSILON),
    NUMBER("loss", "dual_c", AT(loss.dual_c), NULLABLE | POSITIVE, 1, INFINITY, PPO),
    NUMBER("loss", "delta", AT(loss.delta), NULLABLE | POSITIVE, 0, INFINITY, PPO | L(FIPO)),
    BOOLEAN("loss", "accept_delta_below_clip", AT(loss.accept_delta_below_clip), PPO),
    NUMBER("loss", "lo", AT(loss.lo), NULLABLE, 0, INFINITY, L(CISPO)),
    NUMBER("loss", "hi", AT(loss.hi), REQUIRED, 0, INFINITY, L(CISPO)),
    NUMBER("loss", "log_max", AT(loss.log_max), NULLABLE, 0, INFINITY, L(GSPO) | L(GSPO_TOKEN)),
    NUMBER("loss", "tau_pos", AT(loss.tau_pos), POSITIVE, 0, INFINITY, L(SAPO)),
    NUMBER("loss", "tau_neg", AT(loss.tau_neg), POSITIVE, 0, INFINITY, L(SAPO)),
    NUMBER("loss", "k_pos", AT(loss.k_pos), 0, 0, INFINITY, L(VESPO)),
    NUMBER("loss", "lambda_pos", AT(loss.lambda_pos), 0, 0, INFINITY, L(VESPO)),
    NUMBER("loss", "k_neg", AT(loss.k_neg), 0, 0, INFINITY, L(VESPO)),
    NUMBER("loss", "lambda_neg", AT(loss.lambda_neg), 0, 0, INFINITY, L(VESPO)),
    NUMBER("loss", "d_low", AT(loss.d_low), 0, 0, INFINITY, DPPO),
    NUMBER("loss", "d_high", AT(loss.d_high), 0, 0, INFINITY, DPPO),
    CHOICE("loss", "form", AT(loss.form), 0, tv_forms, L(DPPO_TV)),
    NUMBER("loss", "c", AT(loss.c), NULLABLE | POSITIVE, 0, INFINITY, DPPO),
    CHOICE("loss", "zero_adv", AT(loss.zero_adv), 0, zero_advs, L(DPPO_TV)),
    NUMBER("loss", "threshold", AT(loss.threshold), 0, 0, INFINITY, L(IPO)),
    NUMBER("loss", "kl_tau", AT(loss.kl_tau), NULLABLE, 0, INFINITY, L(DPPO_TV) | L(IPO)),
    NUMBER("loss", "beta", AT(loss.beta), REQUIRED | POSITIVE, 0, INFINITY, L(DRO)),
    NUMBER("loss", "decay", AT(loss.decay), POSITIVE, 0, INFINITY, L(FIPO)),
    NUMBER("loss", "clip_range", AT(loss.clip_range), 0, 0, INFINITY, L(FIPO)),
    BOOLEAN("loss", "clip_high_only", AT(loss.clip_high_only), L(FIPO)),
    NUMBER("loss", "safety", AT(loss.safety), 0, 0, INFINITY, L(FIPO)),
    NUMBER("loss", "tau", AT(loss.tau), POSITIVE, 0, INFINITY, L(REAL)),
    NUMBER("loss", "log_clamp", AT(loss.log_clamp), NULLABLE | POSITIVE, 0, INFINITY, WITH_LOG_CLAMP),
    CHOICE("loss", "anchor", AT(loss.anchor), 0, anchors, WITH_RATIO),
    NUMBER("loss", "positive_nll", AT(loss.positive_nll), 0, 0, INFINITY, EVERY),

    NUMBER("", "beta", AT(beta), 0, 0, INFINITY, EVERY),

    KIND("kl", "estimator", AT(kl.estimator), kls),
    CHOICE("kl", "in", AT(kl.in), 0, kl_places, EVERY),
    NUMBER("kl", "log_clamp", AT(kl.log_clamp), NULLABLE | POSITIVE, 0, INFINITY, EVERY),
    NUMBER("kl", "value_clamp", AT(kl.value_clamp), NULLABLE | POSITIVE, 0, INFINITY, EVERY),
    CHOICE("kl", "ratio", AT(kl.ratio), 0, kl_ratios, EVERY),
    BOOLEAN("kl", "skip_zero_variance", AT(kl.skip_zero_variance), EVERY),

    KIND("importance", "method", OF_CORRECTION(method), importances),
    NUMBER("importance", "lo", OF_CORRECTION(lo), NULLABLE, 0, INFINITY, WITH_BOUNDS),
    NUMBER("importance", "hi", OF_CORRECTION(hi), NULLABLE, 0, INFINITY, WITH_BOUNDS),
    CHOICE("importance", "reduction", OF_CORRECTION(reduction), 0, reductions, BY_SEQUENCE),
    CHOICE("importance", "option", OF_CORRECTION(option), REQUIRED, rs_options, I(ROLLOUT_RS)),
    {"importance", "threshold", KNOB_BOUNDS, REQUIRED, OF_CORRECTION(threshold), 0, INFINITY, NULL, WITH_THRESHOLD},
    NUMBER("importance", "log_clamp", OF_CORRECTION(log_clamp), NULLABLE | POSITIVE, 0, INFINITY, NOT_NONE & ~I(ROLLOUT_RS)),
    BOOLEAN("importance", "batch_normalise", OF_CORRECTION(batch_normalise), WEIGHS),
    CHOICE("importance", "denominator", OF_CORRECTION(denominator), 0, is_denominators, NOT_NONE),

    KIND("selection", "method", AT(selection.method), selections),
    NUMBER("selection", "rho", AT(selection.rho), REQUIRED, 0, 1, C(TOP_ENTROPY)),
    NUMBER("selection", "delta", AT(selection.delta), REQUIRED, -INFINITY, INFINITY, C(OFF_POLICY)),
    NUMBER("selection", "threshold", AT(selection.threshold), REQUIRED, 0, INFINITY, C(M2PO)),
    NUMBER("selection", "ratio", AT(selection.ratio), REQUIRED, 0, 1, C(CLIP_COV)),
    NUMBER("selection", "lb", AT(selection.lb), 0, -INFINITY, INFINITY, C(CLIP_COV)),
    NUMBER("selection", "ub", AT(selection.ub), 0, -INFINITY, INFINITY, C(CLIP_COV)),
    {"selection", "seed", KNOB_SEED, 0, AT(selection.seed), 0, 0x1p63, NULL, C(CLIP_COV)},
    NUMBER("selection", "frac", AT(selection.frac), REQUIRED, 0, 1, C(KL_COV)),
    NUMBER("selection", "ppo_kl_coef", AT(selection.ppo_kl_coef), REQUIRED, 0, INFINITY, C(KL_COV)),

    KIND("aggregation", "mode", AT(aggregation.mode), modes),
    CHOICE("aggregation", "masked_seq", AT(aggregation.masked_seq), 0, masked_seqs, EVERY),
    NUMBER("aggregation", "max_len", AT(aggregation.max_len), REQUIRED | POSITIVE, 0, INFINITY,
           M(SEQ_MEAN_TOKEN_SUM_NORM) | M(SEQ_SUM_TOKEN_SUM_NORM)),
    NUMBER("aggregation", "denominator", AT(aggregation.denominator), REQUIRED | POSITIVE, 0, INFINITY, M(CONSTANT)),
};
/* clang-format on */
const size_t objective_knobs_count = sizeof objective_knobs_table / sizeof objective_knobs_table[0];

/* --- sections --- */

const struct objective_section objective_sections[] = {
    {.name = "advantage"},
    {.name = "shaping",
     .is_list = true,
     .offset = AT(shaping),
     .item_bytes = sizeof(struct objective_shaper),
     .count_offset = AT(shaping_count),
     .maximum = OBJECTIVE_SHAPING_MAX},
    {.name = "mask"},
    {.name = "filter"},
    {.name = "loss"},
    {.name = "kl"},
    {.name = "importance",
     .is_list = true,
     .may_be_object = true,
     .offset = AT(importance),
     .item_bytes = sizeof(struct objective_correction),
     .count_offset = AT(importance_count),
     .maximum = OBJECTIVE_IMPORTANCE_MAX},
    {.name = "selection"},
    {.name = "aggregation"},
};
const size_t objective_sections_count = sizeof objective_sections / sizeof objective_sections[0];

const struct objective_section *objective_section_find(const char *name)
{
    for (size_t i = 0; i < objective_sections_count; i++)
        if (strcmp(objective_sections[i].name, name) == 0)
            return &objective_sections[i];
    return NULL;
}

void *objective_section_item(struct objective_knobs *knobs, const struct objective_section *section, size_t index)
{
    return (char *)knobs + section->offset + index * section->item_bytes;
}

void objective_item_init(const struct objective_section *section, void *item)
{
    if (strcmp(section->name, "shaping") == 0)
        *(struct objective_shaper *)item = (struct objective_shaper){
            .max_len = NAN,
            .buffer = NAN,
            .factor = 1,
            .capped = true,
            .coef = NAN,
            .w_out = 0.25,
            .w_in = 0.1,
            .w_turns = 0.1,
            .source = {NAN, NAN},
            .target = {NAN, NAN},
            .bias = NAN,
            .scale = NAN,
            .clip = NAN,
            .lo = NAN,
            .hi = NAN,
            .min_correct = 0.5,
            .max_correct = 1,
            .min_wrong = -1,
            .max_wrong = -0.5,
            .ngram = 3,
            .max_penalty = -1,
        };
    else
        *(struct objective_correction *)item =
            (struct objective_correction){.lo = NAN,
                                          .hi = NAN,
                                          .log_clamp = NAN,
                                          .reduction = OBJECTIVE_REDUCTION_SUM,
                                          .option = -1,
                                          .threshold = {NAN, NAN, NAN},
                                          .denominator = OBJECTIVE_IS_DENOMINATOR_ORIGINAL};
}

static const struct objective_knob *selector_of(const char *section)
{
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (objective_knobs_table[i].flags & KNOB_SELECTOR && strcmp(objective_knobs_table[i].section, section) == 0)
            return &objective_knobs_table[i];
    return NULL;
}

bool objective_knob_is_used(const void *item, const struct objective_knob *knob)
{
    const struct objective_knob *selector = selector_of(knob->section);
    int kind = selector ? *(const int *)((const char *)item + selector->offset) : 0;
    return knob->used_by >> kind & 1;
}

/* --- defaults of kinds --- */

static bool is_ppo(int kind)
{
    return PPO >> kind & 1;
}

static void loss_chosen(struct objective_knobs *knobs, int previous)
{
    int kind = knobs->loss.kind;

    if (kind != previous && !(is_ppo(kind) && is_ppo(previous)))
        knobs->loss.eps_low = knobs->loss.eps_high = kind == OBJECTIVE_LOSS_GMPO ? 0.4 : 0.2;
    if (kind != previous) {
        knobs->loss.d_low = knobs->loss.d_high = kind == OBJECTIVE_LOSS_DPPO_KL ? 0.05 : 0.2;
        knobs->loss.kl_tau = kind == OBJECTIVE_LOSS_IPO ? 1e-3 : NAN;
    }
    if (kind == OBJECTIVE_LOSS_DUAL_CLIP && isnan(knobs->loss.dual_c))
        knobs->loss.dual_c = 3;
}

void objective_kind_chosen(void *item, const struct objective_knob *selector, int previous_kind)
{
    struct objective_knobs *knobs = item;

    if (selector->choices == losses)
        loss_chosen(knobs, previous_kind);
    if (selector->choices == kls && knobs->kl.estimator == OBJECTIVE_KL_LOW_VAR) {
        knobs->kl.log_clamp = 20;
        knobs->kl.value_clamp = 10;
    }
}
