/* Rules over several knobs: missing ones, contradictions, dependencies. */
#include "server/objective/knobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int contradict(struct objective_contradiction *ret_contradiction, const char *path, const char *message)
{
    snprintf(ret_contradiction->path, sizeof ret_contradiction->path, "%s", path);
    snprintf(ret_contradiction->message, sizeof ret_contradiction->message, "%s", message);
    return -1;
}

static int contradict_item(struct objective_contradiction *ret_contradiction, const char *section, size_t index,
                           const char *name, const char *message)
{
    char path[64];

    snprintf(path, sizeof path, "%s[%zu].%s", section, index, name);
    return contradict(ret_contradiction, path, message);
}

/* --- required knobs --- */

static bool is_absent(const void *at, enum objective_knob_type type)
{
    const struct objective_bounds *bounds = at;

    if (type == KNOB_CHOICE)
        return *(const int *)at < 0;
    if (type == KNOB_BOUNDS)
        return isnan(bounds->number) && isnan(bounds->low);
    return isnan(*(const double *)at);
}

/* A list of one is written as an object, so its path has no index. */
static void path_of(char path[64], const struct objective_section *section, size_t count, size_t index,
                    const char *name)
{
    if (section->is_list && !(section->may_be_object && count == 1))
        snprintf(path, 64, "%s[%zu].%s", section->name, index, name);
    else
        snprintf(path, 64, "%s%s%s", section->name, section->name[0] ? "." : "", name);
}

static int check_item(const struct objective_section *section, size_t count, size_t index, void *item,
                      struct objective_contradiction *ret_contradiction)
{
    char path[64];

    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, section->name) != 0)
            continue;
        void *at = (char *)item + knob->offset;
        bool used = objective_knob_is_used(item, knob);
        /* A knob that the kind does not use must not act without being echoed. */
        if (!used && knob->type == KNOB_NUMBER && knob->flags & KNOB_NULLABLE)
            *(double *)at = NAN;
        path_of(path, section, count, index, knob->name);
        if (used && knob->flags & KNOB_REQUIRED && is_absent(at, knob->type))
            return contradict(ret_contradiction, path, "this kind needs it, and it has no default");
    }
    return 0;
}

static int check_required(struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    for (size_t s = 0; s < objective_sections_count; s++) {
        const struct objective_section *section = &objective_sections[s];
        size_t count = section->is_list ? *(size_t *)((char *)knobs + section->count_offset) : 1;
        for (size_t i = 0; i < count; i++)
            if (check_item(section, count, i, objective_section_item(knobs, section, i), ret_contradiction) < 0)
                return -1;
    }
    return 0;
}

/* --- checks of one section --- */

static int check_advantage(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (knobs->advantage.clip_low > knobs->advantage.clip_high)
        return contradict(ret_contradiction, "advantage.clip_low", "it is above clip_high");
    return 0;
}

static int check_shaping(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    for (size_t i = 0; i < knobs->shaping_count; i++) {
        const struct objective_shaper *shaper = &knobs->shaping[i];
        if (shaper->kind == OBJECTIVE_SHAPER_LINEAR_MAP && !(shaper->source[0] < shaper->source[1]))
            return contradict_item(ret_contradiction, "shaping", i, "source",
                                   "its first number must be below its second");
        if (shaper->kind == OBJECTIVE_SHAPER_REWARD_CLIP && shaper->lo > shaper->hi)
            return contradict_item(ret_contradiction, "shaping", i, "lo", "it is above hi");
    }
    return 0;
}

static bool is_ppo(int kind)
{
    return kind == OBJECTIVE_LOSS_PPO_CLIP || kind == OBJECTIVE_LOSS_DUAL_CLIP || kind == OBJECTIVE_LOSS_TWO_SIDED;
}

static int check_loss(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (knobs->loss.kind == OBJECTIVE_LOSS_TWO_SIDED && isnan(knobs->loss.delta))
        return contradict(ret_contradiction, "loss.delta", "two_sided needs it, and it has no default");
    if (is_ppo(knobs->loss.kind) && knobs->loss.delta < 1 + knobs->loss.eps_high &&
        !knobs->loss.accept_delta_below_clip)
        return contradict(ret_contradiction, "loss.delta",
                          "below 1 + eps_high it caps positive advantages too; say accept_delta_below_clip: true if "
                          "that is meant");
    if (knobs->loss.kind == OBJECTIVE_LOSS_CISPO && knobs->loss.lo > knobs->loss.hi)
        return contradict(ret_contradiction, "loss.lo", "it is above hi");
    if (knobs->loss.anchor == OBJECTIVE_ANCHOR_ROLLOUT && knobs->importance_count > 0)
        return contradict(ret_contradiction, "loss.anchor",
                          "a ratio against the rollout policy corrects already: importance would count twice");
    return 0;
}

static int check_kl(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (knobs->kl.in != OBJECTIVE_KL_IN_REWARD)
        return 0;
    if (knobs->kl.ratio != OBJECTIVE_KL_RATIO_NONE)
        return contradict(ret_contradiction, "kl.ratio",
                          "a KL in the reward is taken at the old policy: there is no ratio");
    if (knobs->beta > 0 && knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_PROCESS)
        return contradict(ret_contradiction, "kl.in",
                          "process has rewards of steps, and no reward that a KL could enter");
    if (knobs->beta > 0 && knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GDPO)
        return contradict(ret_contradiction, "kl.in", "gdpo has rewards by name, and no reward that a KL could enter");
    return 0;
}

static bool is_k1(int option)
{
    return option == OBJECTIVE_RS_TOKEN_K1 || option == OBJECTIVE_RS_SEQ_SUM_K1 || option == OBJECTIVE_RS_SEQ_MEAN_K1;
}

/* A single bound u of k1 means 1/u to u, as in verl's rollout_rs_threshold. */
static int check_threshold(const struct objective_correction *correction, char path[64],
                           struct objective_contradiction *ret_contradiction)
{
    const struct objective_bounds *threshold = &correction->threshold;
    bool pair = isnan(threshold->number), k1 = is_k1(correction->option);

    if (correction->method != OBJECTIVE_IMPORTANCE_ROLLOUT_RS || !k1)
        return pair ? contradict(ret_contradiction, path, "one number is expected") : 0;
    if (pair ? !(threshold->low > 0 && threshold->low <= threshold->high) : threshold->number < 1)
        return contradict(ret_contradiction, path,
                          "expected \"lo_hi\" with 0 < lo <= hi, or one number u of at least 1, which means 1/u to u");
    return 0;
}

static int check_importance(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    const struct objective_section *section = objective_section_find("importance");
    char path[64];

    for (size_t i = 0; i < knobs->importance_count; i++) {
        const struct objective_correction *correction = &knobs->importance[i];
        path_of(path, section, knobs->importance_count, i, "threshold");
        bool with_threshold = correction->method >= OBJECTIVE_IMPORTANCE_TV_MASK;
        if (with_threshold && check_threshold(correction, path, ret_contradiction) < 0)
            return -1;
        path_of(path, section, knobs->importance_count, i, "lo");
        if (correction->lo > correction->hi)
            return contradict(ret_contradiction, path, "it is above hi");
        path_of(path, section, knobs->importance_count, i, "denominator");
        if (knobs->loss.kind == OBJECTIVE_LOSS_VESPO && correction->denominator == OBJECTIVE_IS_DENOMINATOR_KEPT)
            return contradict(ret_contradiction, path, "vespo takes the weights into its own and drops no token");
    }
    return 0;
}

static int check_selection(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    int method = knobs->selection.method;
    int kind = knobs->loss.kind;
    bool plain = is_ppo(kind) || kind == OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;

    if ((method == OBJECTIVE_SELECTION_CLIP_COV || method == OBJECTIVE_SELECTION_KL_COV) && !plain)
        return contradict(ret_contradiction, "selection.method", "it goes with ppo_clip or importance_sampling alone");
    if (method == OBJECTIVE_SELECTION_CLIP_COV && knobs->selection.lb > knobs->selection.ub)
        return contradict(ret_contradiction, "selection.lb", "it is above ub");
    return 0;
}

/* The loss of a group is one number, shared out over its tokens: nothing can be weighed or left out one by one. */
static int check_real(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (knobs->loss.kind != OBJECTIVE_LOSS_REAL)
        return 0;
    if (knobs->importance_count > 0)
        return contradict(ret_contradiction, "importance.method",
                          "the loss real has no terms of single tokens to weigh");
    if (knobs->selection.method != OBJECTIVE_SELECTION_NONE)
        return contradict(ret_contradiction, "selection.method",
                          "the loss real has no terms of single tokens to leave out");
    if (objective_is_per_token(knobs))
        return contradict(ret_contradiction,
                          knobs->advantage.teacher_coef != 0 ? "advantage.teacher_coef" : "advantage.estimator",
                          "the loss real needs one advantage for a sequence");
    return 0;
}

static void take_full_names(struct objective_knobs *knobs)
{
    if (is_ppo(knobs->loss.kind))
        knobs->loss.kind = OBJECTIVE_LOSS_PPO_CLIP;
    if (knobs->kl.estimator == OBJECTIVE_KL_LOW_VAR)
        knobs->kl.estimator = OBJECTIVE_KL_K3;
    /* kl_cov is -rA everywhere. */
    if (knobs->selection.method == OBJECTIVE_SELECTION_KL_COV) {
        knobs->loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
        knobs->loss.dual_c = knobs->loss.delta = NAN;
    }
}

int objective_settle(struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    static int (*const checks[])(const struct objective_knobs *, struct objective_contradiction *) = {
        check_advantage, check_shaping, check_loss, check_kl, check_importance, check_selection, check_real,
    };

    if (check_required(knobs, ret_contradiction) < 0)
        return -1;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i](knobs, ret_contradiction) < 0)
            return -1;
    if (knobs->filter.rule == OBJECTIVE_FILTER_MEAN_INTERVAL && knobs->filter.lo >= knobs->filter.hi)
        return contradict(ret_contradiction, "filter.lo", "it is not below hi");
    if (knobs->loss.kind == OBJECTIVE_LOSS_GPG || knobs->loss.kind == OBJECTIVE_LOSS_ROLLOUT_IS)
        knobs->loss.anchor = OBJECTIVE_ANCHOR_OLD;
    take_full_names(knobs);
    return 0;
}

/* --- what a knob needs --- */

static const char *advantage_needs_whole(const struct objective_knobs *knobs)
{
    int estimator = knobs->advantage.estimator;
    bool scales = estimator == OBJECTIVE_ESTIMATOR_GRPO || estimator == OBJECTIVE_ESTIMATOR_NORMALIZATION ||
                  estimator == OBJECTIVE_ESTIMATOR_PROCESS;

    if (scales && knobs->advantage.scale == OBJECTIVE_SCALE_BATCH)
        return "advantage.scale";
    if (estimator == OBJECTIVE_ESTIMATOR_NORMALIZATION && knobs->advantage.mean == OBJECTIVE_SCALE_BATCH)
        return "advantage.mean";
    if (estimator == OBJECTIVE_ESTIMATOR_RLOO && knobs->advantage.normalize_batch)
        return "advantage.normalize_batch";
    switch (estimator) {
    case OBJECTIVE_ESTIMATOR_GPG:
    case OBJECTIVE_ESTIMATOR_RPP:
    case OBJECTIVE_ESTIMATOR_RPP_BASELINE:
    case OBJECTIVE_ESTIMATOR_RPP_BASELINE_SEQUENCE:
    case OBJECTIVE_ESTIMATOR_GDPO:
    case OBJECTIVE_ESTIMATOR_EMA_BASELINE:
        return "advantage.estimator";
    default:
        return NULL;
    }
}

static const char *importance_needs_whole(const struct objective_knobs *knobs)
{
    for (size_t i = 0; i < knobs->importance_count; i++) {
        if (knobs->importance[i].batch_normalise)
            return "importance.batch_normalise";
        if (knobs->importance[i].denominator == OBJECTIVE_IS_DENOMINATOR_KEPT)
            return "importance.denominator";
    }
    return NULL;
}

const char *objective_needs_whole_request(const struct objective_knobs *knobs, bool advantages_given)
{
    const char *advantage = advantages_given ? NULL : advantage_needs_whole(knobs);
    const char *importance = importance_needs_whole(knobs);
    int selection = knobs->selection.method;

    if (advantage)
        return advantage;
    if (importance)
        return importance;
    if (selection != OBJECTIVE_SELECTION_NONE && selection != OBJECTIVE_SELECTION_OFF_POLICY)
        return "selection.method";
    if (knobs->loss.positive_nll > 0)
        return "loss.positive_nll";
    return knobs->loss.kind == OBJECTIVE_LOSS_REAL ? "loss.kind" : NULL;
}

bool objective_needs_whole_batch(const struct objective_knobs *knobs)
{
    return advantage_needs_whole(knobs) != NULL;
}

bool objective_needs_whole_groups(const struct objective_knobs *knobs)
{
    int mode = knobs->aggregation.mode;
    return mode == OBJECTIVE_MODE_PROMPT_MEAN || mode == OBJECTIVE_MODE_ROLLOUT_MEAN ||
           mode == OBJECTIVE_MODE_GROUP_MEAN;
}

bool objective_terms_need_group(const struct objective_knobs *knobs)
{
    return knobs->filter.rule != OBJECTIVE_FILTER_NONE || knobs->loss.kind == OBJECTIVE_LOSS_REAL ||
           objective_needs_whole_groups(knobs);
}

bool objective_is_per_token(const struct objective_knobs *knobs)
{
    static const uint32_t per_token = 1u << OBJECTIVE_ESTIMATOR_REMAX | 1u << OBJECTIVE_ESTIMATOR_REWARD_TO_GO |
                                      1u << OBJECTIVE_ESTIMATOR_RPP | 1u << OBJECTIVE_ESTIMATOR_RPP_BASELINE |
                                      1u << OBJECTIVE_ESTIMATOR_PROCESS |
                                      1u << OBJECTIVE_ESTIMATOR_OPTIMAL_TOKEN_BASELINE;
    return per_token >> knobs->advantage.estimator & 1 || knobs->advantage.teacher_coef != 0;
}

/* --- comparing --- */

static bool same_number(double left, double right)
{
    return left == right || (isnan(left) && isnan(right));
}

static bool same_bounds(const struct objective_bounds *left, const struct objective_bounds *right)
{
    return same_number(left->number, right->number) && same_number(left->low, right->low) &&
           same_number(left->high, right->high);
}

static bool same_knob(const char *a, const char *b, enum objective_knob_type type)
{
    switch (type) {
    case KNOB_NUMBER:
        return same_number(*(const double *)a, *(const double *)b);
    case KNOB_BOOLEAN:
        return *(const bool *)a == *(const bool *)b;
    case KNOB_SEED:
        return *(const int64_t *)a == *(const int64_t *)b;
    case KNOB_PAIR:
        return same_number(((const double *)a)[0], ((const double *)b)[0]) &&
               same_number(((const double *)a)[1], ((const double *)b)[1]);
    case KNOB_BOUNDS:
        return same_bounds((const struct objective_bounds *)a, (const struct objective_bounds *)b);
    case KNOB_INTEGER:
    case KNOB_CHOICE:
        break;
    }
    return *(const int *)a == *(const int *)b;
}

static bool same_item(const struct objective_section *section, const void *left, const void *right,
                      void (*found)(void *arg, const char *path), void *arg)
{
    bool same = true;

    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, section->name) != 0 || !objective_knob_is_used(left, knob))
            continue;
        if (same_knob((const char *)left + knob->offset, (const char *)right + knob->offset, knob->type))
            continue;
        same = false;
        if (found) {
            char path[64];
            snprintf(path, sizeof path, "%s%s%s", section->name, section->name[0] ? "." : "", knob->name);
            found(arg, path);
        }
    }
    return same;
}

static bool same_list(const struct objective_section *section, const struct objective_knobs *left,
                      const struct objective_knobs *right)
{
    size_t count = *(const size_t *)((const char *)left + section->count_offset);

    if (count != *(const size_t *)((const char *)right + section->count_offset))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = section->offset + i * section->item_bytes;
        if (!same_item(section, (const char *)left + at, (const char *)right + at, NULL, NULL))
            return false;
    }
    return true;
}

static bool same_section(const char *name, const struct objective_knobs *left, const struct objective_knobs *right)
{
    const struct objective_section *section = objective_section_find(name);
    return section->is_list ? same_list(section, left, right) : same_item(section, left, right, NULL, NULL);
}

bool objective_same_advantage_rule(const struct objective_knobs *left, const struct objective_knobs *right)
{
    bool kl_left = left->kl.in == OBJECTIVE_KL_IN_REWARD && left->beta > 0;
    bool kl_right = right->kl.in == OBJECTIVE_KL_IN_REWARD && right->beta > 0;

    if (kl_left || kl_right) /* it depends on log-probabilities that no record has */
        return false;
    return same_section("advantage", left, right) && same_section("shaping", left, right);
}

void objective_overrides(const struct objective_knobs *knobs, void (*found)(void *arg, const char *path), void *arg)
{
    static const struct objective_section top_level = {.name = ""};
    struct objective_knobs preset;

    if (!objective_preset_find(knobs->preset, strlen(knobs->preset), &preset))
        return;
    for (size_t s = 0; s < objective_sections_count; s++) {
        const struct objective_section *section = &objective_sections[s];
        if (!section->is_list)
            same_item(section, knobs, &preset, found, arg);
        else if (!same_list(section, knobs, &preset))
            found(arg, section->name);
    }
    same_item(&top_level, knobs, &preset, found, arg);
}
