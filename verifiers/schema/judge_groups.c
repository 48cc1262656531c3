/* Rules that hold other schemas against the same value. */
#include "verifiers/schema/schema_private.h"

#include "server/base/cleanup.h"

bool judge_ref(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    return judge_in_place(judgement, rule->node, value, seen, KEYWORD_REF);
}

/* The outermost resource that was entered and has a dynamic anchor of the name. */
bool judge_dynamic_ref(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t node = rule->node;

    for (const struct scope *scope = judgement->scope; rule->count && scope; scope = scope->outer) {
        const struct anchor *anchor =
            schema_find_anchor(judgement->schema, scope->resource, judgement->schema->properties[rule->first].name);
        if (!judge_spend(judgement, 20))
            return false;
        if (anchor && anchor->dynamic)
            node = anchor->node;
    }
    return judge_in_place(judgement, node, value, seen, KEYWORD_DYNAMIC_REF);
}

bool judge_all_of(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    for (uint32_t i = 0; i < rule->count; i++)
        if (!judge_in_place(judgement, judgement->schema->lists[rule->first + i], value, seen, KEYWORD_ALL_OF))
            return false;
    return true;
}

/* A schema that may fail without harm: what it has seen counts only if it does not. */
static bool try(struct judgement *judgement, uint32_t node, uint32_t value, struct seen *seen, enum keyword keyword)
{
    _cleanup_(seen_finish) struct seen own = {.bits = NULL};
    bool valid;

    if (seen && !seen_init(judgement, value, &own))
        return false;
    judgement->silent++;
    valid = judge_in_place(judgement, node, value, seen ? &own : NULL, keyword);
    judgement->silent--;
    if (valid)
        seen_add(judgement, seen, &own);
    return valid;
}

static bool is_given_up(const struct judgement *judgement)
{
    return judgement->result != SCHEMA_VALID;
}

bool judge_any_of(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    bool any = false;

    for (uint32_t i = 0; i < rule->count && (!any || seen) && !is_given_up(judgement); i++)
        any |= try(judgement, judgement->schema->lists[rule->first + i], value, seen, KEYWORD_ANY_OF);
    return any || judge_violated(judgement, KEYWORD_ANY_OF, value);
}

bool judge_one_of(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rule->count && count < 2 && !is_given_up(judgement); i++)
        count += try(judgement, judgement->schema->lists[rule->first + i], value, seen, KEYWORD_ONE_OF);
    return count == 1 || judge_violated(judgement, KEYWORD_ONE_OF, value);
}

/* What is seen in it is never told. */
bool judge_not(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    (void)seen;
    if (try(judgement, rule->node, value, NULL, KEYWORD_NOT))
        return judge_violated(judgement, KEYWORD_NOT, value);
    return !is_given_up(judgement);
}

bool judge_if(struct judgement *judgement, const struct rule *rule, uint32_t value, struct seen *seen)
{
    bool holds = try(judgement, rule->node, value, seen, KEYWORD_IF);
    uint32_t node = holds ? rule->other : rule->third;

    if (is_given_up(judgement))
        return false;
    return node == NO_NODE || judge_in_place(judgement, node, value, seen, holds ? KEYWORD_THEN : KEYWORD_ELSE);
}
