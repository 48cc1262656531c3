/* The table of knobs, and what no single row can say. */
#include "server/objective/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- the values that knobs may name --- */

#define BUILT_NAME(symbol, name) name,
#define LATER_NAME(name) name,
#define NO_NAME(...)
#define ONE(symbol, name) +1 /* NOLINT(bugprone-macro-parentheses): a sum of them */

#define CHOICES(variable, LIST)                                                                                        \
    static const char *const variable##_names[] = {LIST(BUILT_NAME, NO_NAME) LIST(NO_NAME, LATER_NAME) NULL};          \
    static const struct objective_choices variable = {variable##_names, 0 LIST(ONE, NO_NAME)}

CHOICES(estimators, OBJECTIVE_ESTIMATORS);
CHOICES(scales, OBJECTIVE_SCALES);
CHOICES(singletons, OBJECTIVE_SINGLETONS);
CHOICES(missings, OBJECTIVE_MISSINGS);
CHOICES(filters, OBJECTIVE_FILTERS);
CHOICES(losses, OBJECTIVE_LOSSES);
CHOICES(anchors, OBJECTIVE_ANCHORS);
CHOICES(kls, OBJECTIVE_KLS);
CHOICES(kl_places, OBJECTIVE_KL_PLACES);
CHOICES(kl_ratios, OBJECTIVE_KL_RATIOS);
CHOICES(importances, OBJECTIVE_IMPORTANCES);
CHOICES(selections, OBJECTIVE_SELECTIONS);
CHOICES(modes, OBJECTIVE_MODES);
CHOICES(masked_seqs, OBJECTIVE_MASKED_SEQS);

/* --- the table --- */

#define EVERY UINT32_MAX
#define GRPO (1u << OBJECTIVE_ESTIMATOR_GRPO)
#define PPO (1u << OBJECTIVE_LOSS_PPO_CLIP | 1u << OBJECTIVE_LOSS_DUAL_CLIP | 1u << OBJECTIVE_LOSS_TWO_SIDED)
#define RATIO (PPO | 1u << OBJECTIVE_LOSS_IMPORTANCE_SAMPLING)
#define NORM (1u << OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM_NORM | 1u << OBJECTIVE_MODE_SEQ_SUM_TOKEN_SUM_NORM)
#define CONSTANT (1u << OBJECTIVE_MODE_CONSTANT)

#define AT(member) offsetof(struct objective_knobs, member)

const struct objective_knob objective_knobs_table[] = {
    {"advantage", "estimator", KNOB_CHOICE, KNOB_SELECTOR, AT(advantage.estimator), 0, 0, &estimators, EVERY},
    {"advantage", "ddof", KNOB_INTEGER, 0, AT(advantage.ddof), 0, 1, NULL, GRPO},
    {"advantage", "eps", KNOB_NUMBER, 0, AT(advantage.eps), 0, INFINITY, NULL, GRPO},
    {"advantage", "scale", KNOB_CHOICE, 0, AT(advantage.scale), 0, 0, &scales, GRPO},
    {"advantage", "singleton", KNOB_CHOICE, 0, AT(advantage.singleton), 0, 0, &singletons, GRPO},
    {"advantage", "missing", KNOB_CHOICE, 0, AT(advantage.missing), 0, 0, &missings, EVERY},
    {"advantage", "clip_low", KNOB_NUMBER, KNOB_NULLABLE, AT(advantage.clip_low), -INFINITY, INFINITY, NULL, EVERY},
    {"advantage", "clip_high", KNOB_NUMBER, KNOB_NULLABLE, AT(advantage.clip_high), -INFINITY, INFINITY, NULL, EVERY},
    {"mask", "truncated", KNOB_BOOLEAN, 0, AT(mask.truncated), 0, 0, NULL, EVERY},
    {"filter", "rule", KNOB_CHOICE, KNOB_SELECTOR, AT(filter.rule), 0, 0, &filters, EVERY},
    {"loss", "kind", KNOB_CHOICE, KNOB_SELECTOR, AT(loss.kind), 0, 0, &losses, EVERY},
    {"loss", "eps_low", KNOB_NUMBER, 0, AT(loss.eps_low), 0, INFINITY, NULL, PPO},
    {"loss", "eps_high", KNOB_NUMBER, 0, AT(loss.eps_high), 0, INFINITY, NULL, PPO},
    {"loss", "dual_c", KNOB_NUMBER, KNOB_NULLABLE | KNOB_ABOVE_MINIMUM, AT(loss.dual_c), 1, INFINITY, NULL, PPO},
    {"loss", "delta", KNOB_NUMBER, KNOB_NULLABLE | KNOB_ABOVE_MINIMUM, AT(loss.delta), 0, INFINITY, NULL, PPO},
    {"loss", "accept_delta_below_clip", KNOB_BOOLEAN, 0, AT(loss.accept_delta_below_clip), 0, 0, NULL, PPO},
    {"loss", "log_clamp", KNOB_NUMBER, KNOB_NULLABLE | KNOB_ABOVE_MINIMUM, AT(loss.log_clamp), 0, INFINITY, NULL,
     RATIO},
    {"loss", "anchor", KNOB_CHOICE, 0, AT(loss.anchor), 0, 0, &anchors, RATIO},
    {"", "beta", KNOB_NUMBER, 0, AT(beta), 0, INFINITY, NULL, EVERY},
    {"kl", "estimator", KNOB_CHOICE, KNOB_SELECTOR, AT(kl.estimator), 0, 0, &kls, EVERY},
    {"kl", "in", KNOB_CHOICE, 0, AT(kl.in), 0, 0, &kl_places, EVERY},
    {"kl", "log_clamp", KNOB_NUMBER, KNOB_NULLABLE | KNOB_ABOVE_MINIMUM, AT(kl.log_clamp), 0, INFINITY, NULL, EVERY},
    {"kl", "value_clamp", KNOB_NUMBER, KNOB_NULLABLE | KNOB_ABOVE_MINIMUM, AT(kl.value_clamp), 0, INFINITY, NULL,
     EVERY},
    {"kl", "ratio", KNOB_CHOICE, 0, AT(kl.ratio), 0, 0, &kl_ratios, EVERY},
    {"importance", "method", KNOB_CHOICE, KNOB_SELECTOR, AT(importance.method), 0, 0, &importances, EVERY},
    {"selection", "method", KNOB_CHOICE, KNOB_SELECTOR, AT(selection.method), 0, 0, &selections, EVERY},
    {"aggregation", "mode", KNOB_CHOICE, KNOB_SELECTOR, AT(aggregation.mode), 0, 0, &modes, EVERY},
    {"aggregation", "masked_seq", KNOB_CHOICE, 0, AT(aggregation.masked_seq), 0, 0, &masked_seqs, EVERY},
    {"aggregation", "max_len", KNOB_NUMBER, KNOB_REQUIRED | KNOB_ABOVE_MINIMUM, AT(aggregation.max_len), 0, INFINITY,
     NULL, NORM},
    {"aggregation", "denominator", KNOB_NUMBER, KNOB_REQUIRED | KNOB_ABOVE_MINIMUM, AT(aggregation.denominator), 0,
     INFINITY, NULL, CONSTANT},
};
const size_t objective_knobs_count = sizeof objective_knobs_table / sizeof objective_knobs_table[0];

/* Knobs of the contract that belong to kinds under LATER: they get a row, and leave this list, with their kind. */
static const char *const later[] = {
    "advantage.mean",
    "advantage.leave_one_out",
    "advantage.normalize_batch",
    "advantage.guard_nonpositive_mean",
    "advantage.norm",
    "advantage.f_norm",
    "advantage.gamma",
    "advantage.form",
    "advantage.eps_group",
    "advantage.eps_batch",
    "advantage.decay",
    "advantage.initial",
    "advantage.teacher_coef",
    "filter.tol",
    "filter.lo",
    "filter.hi",
    "filter.on",
    "loss.lo",
    "loss.hi",
    "loss.log_max",
    "loss.tau_pos",
    "loss.tau_neg",
    "loss.k_pos",
    "loss.lambda_pos",
    "loss.k_neg",
    "loss.lambda_neg",
    "loss.d_low",
    "loss.d_high",
    "loss.form",
    "loss.c",
    "loss.zero_adv",
    "loss.kl_tau",
    "loss.threshold",
    "loss.beta",
    "loss.decay",
    "loss.clip_range",
    "loss.clip_high_only",
    "loss.safety",
    "loss.tau",
    "loss.positive_nll",
    "kl.skip_zero_variance",
    "importance.lo",
    "importance.hi",
    "importance.reduction",
    "importance.log_clamp",
    "importance.batch_normalise",
    "importance.denominator",
    "importance.threshold",
    "importance.option",
    "selection.rho",
    "selection.delta",
    "selection.threshold",
    "selection.ratio",
    "selection.lb",
    "selection.ub",
    "selection.seed",
    "selection.frac",
    "selection.ppo_kl_coef",
};

bool objective_knob_is_known(const char *section, const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "%s.%s", section, name);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (strcmp(later[i], path) == 0)
            return true;
    return false;
}

static const struct objective_knob *selector_of(const char *section)
{
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (objective_knobs_table[i].flags & KNOB_SELECTOR && strcmp(objective_knobs_table[i].section, section) == 0)
            return &objective_knobs_table[i];
    return NULL;
}

bool objective_knob_is_used(const struct objective_knobs *knobs, const struct objective_knob *knob)
{
    const struct objective_knob *selector = selector_of(knob->section);
    int kind = selector ? *(const int *)((const char *)knobs + selector->offset) : 0;
    return knob->used_by >> kind & 1;
}

void objective_expand_short_kinds(struct objective_knobs *knobs, const struct objective_knob *selector)
{
    if (selector->choices == &losses && knobs->loss.kind == OBJECTIVE_LOSS_DUAL_CLIP && isnan(knobs->loss.dual_c))
        knobs->loss.dual_c = 3;
    if (selector->choices == &kls && knobs->kl.estimator == OBJECTIVE_KL_LOW_VAR) {
        knobs->kl.log_clamp = 20;
        knobs->kl.value_clamp = 10;
    }
}

/* --- checks over several knobs --- */

static int contradict(struct objective_contradiction *ret_contradiction, const char *section, const char *name,
                      const char *message)
{
    snprintf(ret_contradiction->path, sizeof ret_contradiction->path, "%s.%s", section, name);
    snprintf(ret_contradiction->message, sizeof ret_contradiction->message, "%s", message);
    return -1;
}

static int check_required(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (!(knob->flags & KNOB_REQUIRED) || !objective_knob_is_used(knobs, knob))
            continue;
        if (isnan(*(const double *)((const char *)knobs + knob->offset)))
            return contradict(ret_contradiction, knob->section, knob->name,
                              "this kind needs it, and it has no default");
    }
    return 0;
}

int objective_settle(struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (check_required(knobs, ret_contradiction) < 0)
        return -1;
    if (knobs->advantage.clip_low > knobs->advantage.clip_high)
        return contradict(ret_contradiction, "advantage", "clip_low", "it is above clip_high");
    if (knobs->loss.kind == OBJECTIVE_LOSS_TWO_SIDED && isnan(knobs->loss.delta))
        return contradict(ret_contradiction, "loss", "delta", "two_sided needs it, and it has no default");
    if (knobs->loss.delta < 1 + knobs->loss.eps_high && !knobs->loss.accept_delta_below_clip)
        return contradict(ret_contradiction, "loss", "delta",
                          "below 1 + eps_high it caps positive advantages too; say accept_delta_below_clip: true if "
                          "that is meant");
    if (knobs->loss.kind == OBJECTIVE_LOSS_DUAL_CLIP || knobs->loss.kind == OBJECTIVE_LOSS_TWO_SIDED)
        knobs->loss.kind = OBJECTIVE_LOSS_PPO_CLIP;
    if (knobs->kl.estimator == OBJECTIVE_KL_LOW_VAR)
        knobs->kl.estimator = OBJECTIVE_KL_K3;
    return 0;
}

bool objective_needs_whole_batch(const struct objective_knobs *knobs)
{
    return knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GRPO && knobs->advantage.scale == OBJECTIVE_SCALE_BATCH;
}

static bool same_number(double left, double right)
{
    return left == right || (isnan(left) && isnan(right));
}

static bool same_knob(const struct objective_knobs *left, const struct objective_knobs *right,
                      const struct objective_knob *knob)
{
    const char *a = (const char *)left + knob->offset;
    const char *b = (const char *)right + knob->offset;

    if (knob->type == KNOB_NUMBER)
        return same_number(*(const double *)a, *(const double *)b);
    if (knob->type == KNOB_BOOLEAN)
        return *(const bool *)a == *(const bool *)b;
    return *(const int *)a == *(const int *)b;
}

bool objective_same_advantage_rule(const struct objective_knobs *left, const struct objective_knobs *right)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, "advantage") != 0 || !objective_knob_is_used(left, knob))
            continue;
        if (!same_knob(left, right, knob))
            return false;
    }
    return true;
}
