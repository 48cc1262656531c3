/* Rules that hold other schemas against the same value. */
#include "verifiers/schema/schema_private.h"

#include "server/base/cleanup.h"

bool validate_ref(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    return validate_in_place(validation, rule->node, value, seen, KEYWORD_REF);
}

/* The outermost resource that was entered and has a dynamic anchor of the name. */
bool validate_dynamic_ref(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t node = rule->node;

    for (const struct scope *scope = validation->scope; rule->count && scope; scope = scope->outer) {
        const struct anchor *anchor =
            schema_find_anchor(validation->schema, scope->resource, validation->schema->properties[rule->first].name);
        if (!validation_spend(validation, 20))
            return false;
        if (anchor && anchor->dynamic)
            node = anchor->node;
    }
    return validate_in_place(validation, node, value, seen, KEYWORD_DYNAMIC_REF);
}

bool validate_all_of(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    for (uint32_t i = 0; i < rule->count; i++)
        if (!validate_in_place(validation, validation->schema->lists[rule->first + i], value, seen, KEYWORD_ALL_OF))
            return false;
    return true;
}

/* A schema that may fail without harm: what it has seen counts only if it does not. */
static bool try(struct validation *validation, uint32_t node, uint32_t value, struct seen *seen, enum keyword keyword)
{
    _cleanup_(seen_finish) struct seen own = {.bits = NULL};
    bool valid;

    if (seen && !seen_init(validation, value, &own))
        return false;
    validation->silent++;
    valid = validate_in_place(validation, node, value, seen ? &own : NULL, keyword);
    validation->silent--;
    if (valid)
        seen_add(validation, seen, &own);
    return valid;
}

static bool is_given_up(const struct validation *validation)
{
    return validation->result != SCHEMA_VALID;
}

bool validate_any_of(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    bool any = false;

    for (uint32_t i = 0; i < rule->count && (!any || seen) && !is_given_up(validation); i++)
        any |= try(validation, validation->schema->lists[rule->first + i], value, seen, KEYWORD_ANY_OF);
    return any || validation_violated(validation, KEYWORD_ANY_OF, value);
}

bool validate_one_of(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rule->count && count < 2 && !is_given_up(validation); i++)
        count += try(validation, validation->schema->lists[rule->first + i], value, seen, KEYWORD_ONE_OF);
    return count == 1 || validation_violated(validation, KEYWORD_ONE_OF, value);
}

/* Values that are evaluated inside `not` are not passed outwards. */
bool validate_not(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    if (try(validation, rule->node, value, NULL, KEYWORD_NOT))
        return validation_violated(validation, KEYWORD_NOT, value);
    return !is_given_up(validation);
}

bool validate_if(struct validation *validation, const struct rule *rule, uint32_t value, struct seen *seen)
{
    bool holds = try(validation, rule->node, value, seen, KEYWORD_IF);
    uint32_t node = holds ? rule->other : rule->third;

    if (is_given_up(validation))
        return false;
    return node == NO_NODE || validate_in_place(validation, node, value, seen, holds ? KEYWORD_THEN : KEYWORD_ELSE);
}
