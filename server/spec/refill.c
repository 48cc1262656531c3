#include "server/spec/refill.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/spec/batch.h"
#include "server/store/deciding_score.h"

#include <math.h>

#define REWARD "reward"

const char *const refill_exhausted_names[] = {
    [REFILL_SHORT] = "short", [REFILL_DELIVER] = "deliver", [REFILL_FAIL] = "fail", NULL};

/* Without `none`, which replaces nothing. */
static const char *const rule_names[] = {"nonzero_variance", "range", "mean_interval", NULL};
static const int rules[] = {OBJECTIVE_FILTER_NONZERO_VARIANCE, OBJECTIVE_FILTER_RANGE, OBJECTIVE_FILTER_MEAN_INTERVAL};

struct refill_fields {
    struct text metric;
    int64_t max_extra_groups;
    int rule;
    int exhausted;
    double tol, lo, hi;
};

#define AT(field) offsetof(struct refill_fields, field)
static const struct field table[] = {
    {"metric", FIELD_TEXT, 0, AT(metric), 0, 64, NULL},
    {"max_extra_groups", FIELD_INT, 0, AT(max_extra_groups), 0, 99999, NULL},
    {"rule", FIELD_CHOICE, 0, AT(rule), 0, 0, rule_names},
    {"exhausted", FIELD_CHOICE, 0, AT(exhausted), 0, 0, refill_exhausted_names},
    {"tol", FIELD_DOUBLE, 0, AT(tol), 0, 0, NULL},
    {"lo", FIELD_DOUBLE, 0, AT(lo), 0, 0, NULL},
    {"hi", FIELD_DOUBLE, 0, AT(hi), 0, 0, NULL},
};
#undef AT

/* A bound that the rule does not use is a mistake. */
static int check_bounds(struct call *call, const json_t *object, const struct refill_spec *refill)
{
    bool interval = refill->rule == OBJECTIVE_FILTER_MEAN_INTERVAL;
    if (json_object_get(object, "tol") && refill->rule != OBJECTIVE_FILTER_RANGE)
        return call_refuse(call, ERR_INVALID_FIELD, "refill.tol", "tol belongs to the rule range");
    if (json_object_get(object, "lo") && !interval)
        return call_refuse(call, ERR_INVALID_FIELD, "refill.lo", "lo belongs to the rule mean_interval");
    if (json_object_get(object, "hi") && !interval)
        return call_refuse(call, ERR_INVALID_FIELD, "refill.hi", "hi belongs to the rule mean_interval");
    if (refill->tol < 0)
        return call_refuse(call, ERR_INVALID_FIELD, "refill.tol", "expected a number from 0 on");
    if (refill->lo >= refill->hi)
        return call_refuse(call, ERR_INVALID_FIELD, "refill.lo", "it is not below hi");
    return 0;
}

int refill_read(struct json_input *input, const json_t *object, struct refill_spec *ret_refill)
{
    struct refill_fields fields = {
        .metric = TEXT_LITERAL(REWARD), .max_extra_groups = 64, .tol = 1e-6, .lo = 0, .hi = 1};
    if (object && json_read_object(input, object, "refill", table, ARRAY_LENGTH(table), &fields) < 0)
        return -1;
    *ret_refill = (struct refill_spec){.wanted = true,
                                       .metric = fields.metric,
                                       .verifier = text_equals(fields.metric, REWARD) ? TEXT_NONE : fields.metric,
                                       .rule = rules[fields.rule],
                                       .tol = fields.tol,
                                       .lo = fields.lo,
                                       .hi = fields.hi,
                                       .exhausted = fields.exhausted,
                                       .max_extra_groups = fields.max_extra_groups};
    return check_bounds(input->call, object, ret_refill);
}

static bool rewards(const struct verifier_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!list->specs[i].heldout)
            return true;
    return false;
}

int refill_check(const struct batch_spec *spec)
{
    const struct refill_spec *refill = &spec->refill;
    for (size_t g = 0; refill->wanted && g < spec->group_count; g++) {
        bool reserved = g >= spec->first_group_count;
        const char *list = reserved ? "reserve" : "groups";
        size_t index = reserved ? g - spec->first_group_count : g;
        if (refill->verifier.data && !verifier_list_has(spec->groups[g].verifiers, refill->verifier))
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, "refill.metric",
                               "%s[%zu] has no verifier with this id", list, index);
        if (!refill->verifier.data && !rewards(spec->groups[g].verifiers))
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, "refill.metric",
                               "no verifier of %s[%zu] rewards, so no reward can differ", list, index);
    }
    return 0;
}

size_t refill_draws_max(const struct batch_spec *spec)
{
    size_t reserve = spec->group_count - spec->first_group_count;
    size_t most = (size_t)spec->refill.max_extra_groups;
    return reserve < most ? reserve : most;
}

/* --- the rule --- */

double refill_metric(const struct refill_spec *refill, double reward, struct text rewards, struct text heldout)
{
    return refill->verifier.data ? store_deciding_score(refill->verifier, rewards, heldout, NAN) : reward;
}

/* As the objective's own filter, over values in place of rewards. */
void refill_describe(const struct refill_spec *refill, const struct objective_knobs *objective, const double *values,
                     size_t count, struct objective_group *ret_statistics)
{
    _cleanup_free_ struct objective_sequence *sequences = xcalloc(count + 1, sizeof(*sequences));
    struct objective_knobs knobs;
    struct objective_error error;

    objective_at_sampling(objective, &knobs);
    knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_GRPO;
    knobs.advantage.scale = OBJECTIVE_SCALE_GROUP;
    knobs.shaping_count = 0;
    knobs.filter.rule = refill->rule;
    knobs.filter.tol = refill->tol;
    knobs.filter.lo = refill->lo;
    knobs.filter.hi = refill->hi;
    knobs.filter.on = OBJECTIVE_FILTER_ON_RAW;
    for (size_t i = 0; i < count; i++)
        sequences[i] = (struct objective_sequence){.reward = values[i], .rewarded = !isnan(values[i])};
    *ret_statistics = (struct objective_group){.mean = NAN, .std = NAN};
    struct objective_request request = {
        .knobs = &knobs, .sequences = sequences, .sequence_count = count, .groups = ret_statistics, .group_count = 1};
    if (objective_advantages(&request, &error) < 0) /* beyond double: not flat */
        *ret_statistics = (struct objective_group){.mean = NAN, .std = NAN};
}

bool refill_is_flat(const struct refill_spec *refill, const struct objective_knobs *objective, const double *values,
                    size_t count)
{
    struct objective_group group;
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        known += !isnan(values[i]);
    if (known < 2)
        return true;
    refill_describe(refill, objective, values, count, &group);
    return group.dropped;
}

/* --- in the summary --- */

static const char *rule_name(int rule)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (rules[i] == rule)
            return rule_names[i];
    return NULL;
}

void refill_write(struct json_write *json, const struct refill_spec *refill)
{
    json_put_text(json, "metric", refill->metric);
    json_put_string(json, "rule", rule_name(refill->rule));
    json_put_double(json, "tol", refill->rule == OBJECTIVE_FILTER_RANGE ? refill->tol : (double)NAN);
    json_put_double(json, "lo", refill->rule == OBJECTIVE_FILTER_MEAN_INTERVAL ? refill->lo : (double)NAN);
    json_put_double(json, "hi", refill->rule == OBJECTIVE_FILTER_MEAN_INTERVAL ? refill->hi : (double)NAN);
    json_put_string(json, "exhausted", refill_exhausted_names[refill->exhausted]);
}

int refill_read_summary(const json_t *summary, struct refill_spec *ret_refill)
{
    const json_t *object = json_object_get(summary, "refill");
    struct text metric = json_text_of(json_object_get(object, "metric"));
    int rule = store_name_index(rule_names, json_text_of(json_object_get(object, "rule")));
    int exhausted = store_name_index(refill_exhausted_names, json_text_of(json_object_get(object, "exhausted")));

    if (!metric.data || rule < 0 || exhausted < 0)
        return -1;
    *ret_refill = (struct refill_spec){.wanted = true,
                                       .metric = metric,
                                       .verifier = text_equals(metric, REWARD) ? TEXT_NONE : metric,
                                       .rule = rules[rule],
                                       .tol = json_number_value(json_object_get(object, "tol")),
                                       .lo = json_number_value(json_object_get(object, "lo")),
                                       .hi = json_number_value(json_object_get(object, "hi")),
                                       .exhausted = exhausted};
    return 0;
}
