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
static bool validate_patterned(struct validation *validation, const struct rule *rule, uint32_t key, bool *ret_known)
{
    for (uint32_t i = 0; i < rule->third; i++) {
        const struct patterned *patterned = &validation->schema->patterned[rule->other + i];
        int matches = validate_matches(validation, patterned->pattern, value_text(validation->instance, key));
        if (matches < 0)
            return false;
        if (matches == 0)
            continue;
        *ret_known = true;
        if (!validate_within(validation, patterned->node, key + 1, KEYWORD_PATTERN_PROPERTIES))
            return false;
    }
    return true;
}

static bool validate_member(struct validation *validation, const struct rule *rule, uint32_t key, bool *ret_known)
{
    const struct property *property = find_property(validation->schema, rule, value_text(validation->instance, key));

    *ret_known = property != NULL;
    if (!validation_spend(validation, MEMBER_UNITS))
        return false;
    if (property && !validate_within(validation, property->node, key + 1, KEYWORD_PROPERTIES))
        return false;
    if (!validate_patterned(validation, rule, key, ret_known))
        return false;
    if (*ret_known || rule->node == NO_NODE)
        return true;
    *ret_known = true;
    return validate_within(validation, rule->node, key + 1, KEYWORD_ADDITIONAL_PROPERTIES);
}

bool validate_members(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t key = value + 1; key < end; key = value_at(validation->instance, key + 1)->next, index++) {
        bool known;
        if (!validate_member(validation, rule, key, &known))
            return false;
        if (known)
            seen_mark(seen, index);
    }
    return true;
}

bool validate_property_names(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;

    (void)seen;
    for (uint32_t key = value + 1; key < end; key = value_at(validation->instance, key + 1)->next) {
        bool valid;
        validation->silent++;
        valid = validation_spend(validation, MEMBER_UNITS) &&
                validate_within(validation, rule->node, key, KEYWORD_PROPERTY_NAMES);
        validation->silent--;
        if (!valid)
            return validation_violated(validation, KEYWORD_PROPERTY_NAMES, key);
    }
    return true;
}

static bool has_names(struct validation *validation, uint32_t first, uint32_t count, uint32_t value)
{
    uint64_t looks = value_at(validation->instance, value)->is_ordered ? 20 : 8;

    if (count > value_at(validation->instance, value)->count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!validation_spend(validation, MEMBER_UNITS + looks) ||
            value_member(validation->instance, value, validation->schema->properties[first + i].name) == NO_VALUE)
            return false;
    return true;
}

bool validate_required(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    return has_names(validation, rule->first, rule->count, value) ||
           validation_violated(validation, KEYWORD_REQUIRED, value);
}

bool validate_dependent_required(struct validation *validation, const struct rule *rule, uint32_t value,
                                 struct seen *seen)
{
    (void)seen;
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct property *property = &validation->schema->properties[rule->first + i];
        if (!validation_spend(validation, 2 * MEMBER_UNITS))
            return false;
        if (value_member(validation->instance, value, property->name) != NO_VALUE &&
            !has_names(validation, property->first, property->count, value))
            return validation_violated(validation, KEYWORD_DEPENDENT_REQUIRED, value);
    }
    return true;
}

bool validate_dependent_schemas(struct validation *validation, const struct rule *rule, uint32_t value,
                                struct seen *seen)
{
    for (uint32_t i = 0; i < rule->count; i++) {
        const struct property *property = &validation->schema->properties[rule->first + i];
        if (!validation_spend(validation, 2 * MEMBER_UNITS))
            return false;
        if (value_member(validation->instance, value, property->name) != NO_VALUE &&
            !validate_in_place(validation, property->node, value, seen, KEYWORD_DEPENDENT_SCHEMAS))
            return false;
    }
    return true;
}

bool validate_unevaluated_properties(struct validation *validation, const struct rule *rule, uint32_t value,
                                     struct seen *seen)
{
    uint32_t end = value_at(validation->instance, value)->next;
    uint32_t index = 0;

    for (uint32_t key = value + 1; key < end; key = value_at(validation->instance, key + 1)->next, index++) {
        if (seen->bits[index / 64] >> index % 64 & 1)
            continue;
        seen_mark(seen, index);
        if (!validation_spend(validation, MEMBER_UNITS) ||
            !validate_within(validation, rule->node, key + 1, KEYWORD_UNEVALUATED_PROPERTIES))
            return false;
    }
    return true;
}
