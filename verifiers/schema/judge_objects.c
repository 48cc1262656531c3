/* Rules for objects. */
#include "verifiers/schema/schema_private.h"

#define MEMBER_UNITS 8
#define FEW_PROPERTIES 8 /* as many are looked through one by one */

static const struct property *find_property(const struct schema *schema, const struct rule *rule, struct text name)
{
    const struct property *properties = rule->count ? &schema->properties[rule->first] : NULL;
    uint32_t low = 0;
    uint32_t high = rule->count;

    if (high <= FEW_PROPERTIES) {
        for (; low < high; low++)
            if (text_same(properties[low].name, name))
                return &properties[low];
        return NULL;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = text_order(name, properties[middle].name);
        if (order == 0)
            return &properties[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Of one member: *ret_known: a property or a pattern is for it. */
static bool judge_patterned(struct judgement *judgement, const struct rule *rule, uint32_t key, bool *ret_known)
{
    for (uint32_t i = 0; i < rule->third; i++) {
        const struct patterned *patterned = &judgement->schema->patterned[rule->other + i];
        int matches = judge_matches(judgement, patterned->pattern, value_text(judgement->instance, key));
        if (matches < 0)
            return false;
        if (matches == 0)
            continue;
        *ret_known = true;
        if (!judge_within(judgement, patterned->node, key + 1, KEYWORD_PATTERN_PROPERTIES))
            return false;
    }
    return true;
}

static bool judge_member(struct judgement *judgement, const struct rule *rule, uint32_t key, bool *ret_known)
{
    const struct property *property = find_property(judgement->schema, rule, value_text(judgement->instance, key));

    *ret_known = property != NULL;
    if (!judge_spend(judgement, MEMBER_UNITS))
        return false;
    if (property && !judge_within(judgement, property->node, key + 1, KEYWORD_PROPERTIES))
        return false;
    if (!judge_patterned(judgement, rule, key, ret_known))
        return false;
    if (*ret_known || rule->node == NO_NODE)
        return true;
    *ret_known = true;
    return judge_within(judgement, rule->node, key + 1, KEYWORD_ADDITIONAL_PROPERTIES);
}

bool judge_members(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t key = value + 1; key < end; key = value_at(judgement->instance, key + 1)->next, index++) {
        bool known;
        if (!judge_member(judgement, rule, key, &known))
            return false;
        if (known)
            seen_mark(seen, index);
    }
    return true;
}

bool judge_property_names(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;

    (void)seen;
    for (uint32_t key = value + 1; key < end; key = value_at(judgement->instance, key + 1)->next) {
        bool valid;
        judgement->silent++;
        valid =
            judge_spend(judgement, MEMBER_UNITS) && judge_within(judgement, rule->node, key, KEYWORD_PROPERTY_NAMES);
        judgement->silent--;
        if (!valid)
            return judge_violated(judgement, KEYWORD_PROPERTY_NAMES, key);
    }
    return true;
}

static bool has_names(struct judgement *judgement, uint32_t first, uint32_t count, uint32_t value)
{
    uint64_t looks = value_at(judgement->instance, value)->is_ordered ? 20 : 8;

    if (count > value_at(judgement->instance, value)->count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!judge_spend(judgement, MEMBER_UNITS + looks) ||
            value_member(judgement->instance, value, judgement->schema->properties[first + i].name) == NO_VALUE)
            return false;
    return true;
}

bool judge_required(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return has_names(judgement, rule->first, rule->count, value) || judge_violated(judgement, KEYWORD_REQUIRED, value);
}

bool judge_dependent_required(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct property *property = &judgement->schema->properties[rule->first + i];
        if (!judge_spend(judgement, 2 * MEMBER_UNITS))
            return false;
        if (value_member(judgement->instance, value, property->name) != NO_VALUE &&
            !has_names(judgement, property->first, property->count, value))
            return judge_violated(judgement, KEYWORD_DEPENDENT_REQUIRED, value);
    }
    return true;
}

bool judge_dependent_schemas(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct property *property = &judgement->schema->properties[rule->first + i];
        if (!judge_spend(judgement, 2 * MEMBER_UNITS))
            return false;
        if (value_member(judgement->instance, value, property->name) != NO_VALUE &&
            !judge_in_place(judgement, property->node, value, seen, KEYWORD_DEPENDENT_SCHEMAS))
            return false;
    }
    return true;
}

bool judge_unevaluated_properties(struct judgement *judgement, const struct rule *rule, uint32_t value,
                                  struct seen *seen)
{
    uint32_t end = value_at(judgement->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t key = value + 1; key < end; key = value_at(judgement->instance, key + 1)->next, index++) {
        if (seen->bits[index / 64] >> index % 64 & 1)
            continue;
        seen_mark(seen, index);
        if (!judge_spend(judgement, MEMBER_UNITS) ||
            !judge_within(judgement, rule->node, key + 1, KEYWORD_UNEVALUATED_PROPERTIES))
            return false;
    }
    return true;
}
