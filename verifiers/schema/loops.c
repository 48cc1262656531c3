/* How many schemas one value can be held against, and how deep: a reference that comes back is refused. */
#include "verifiers/schema/schema_private.h"

#include <stdlib.h>

enum { UNSEEN, UNDER_WAY, DONE };

struct walk {
    struct maker *maker;
    uint8_t *state;
    uint16_t *height;
    uint32_t *cost; /* saturated */
    uint32_t depth;
};

static int walk_node(struct walk *walk, uint32_t index);

static int walk_to(struct walk *walk, uint32_t from, uint32_t to)
{
    if (to == NO_NODE)
        return 0;
    if (walk_node(walk, to) < 0)
        return -1;
    if (walk->height[to] >= walk->height[from])
        walk->height[from] = (uint16_t)(walk->height[to] + 1);
    walk->cost[from] += walk->cost[to];
    if (walk->cost[from] > SCHEMA_COST_MAX)
        walk->cost[from] = SCHEMA_COST_MAX + 1;
    return 0;
}

/* The schemas that a rule holds against the same value. */
static int walk_rule(struct walk *walk, uint32_t from, const struct rule *rule)
{
    const struct schema *schema = walk->maker->schema;

    switch (rule->keyword) {
    case KEYWORD_REF:
    case KEYWORD_DYNAMIC_REF:
    case KEYWORD_NOT:
        return walk_to(walk, from, rule->node);
    case KEYWORD_IF:
        return walk_to(walk, from, rule->node) < 0 || walk_to(walk, from, rule->other) < 0 ||
                       walk_to(walk, from, rule->third) < 0
                   ? -1
                   : 0;
    case KEYWORD_ALL_OF:
    case KEYWORD_ANY_OF:
    case KEYWORD_ONE_OF:
        for (uint32_t i = 0; i < rule->count; i++)
            if (walk_to(walk, from, schema->lists[rule->first + i]) < 0)
                return -1;
        return 0;
    case KEYWORD_DEPENDENT_SCHEMAS:
        for (uint32_t i = 0; i < rule->count; i++)
            if (walk_to(walk, from, schema->properties[rule->first + i].node) < 0)
                return -1;
        return 0;
    default:
        return 0;
    }
}

static int refuse(const struct walk *walk, uint32_t index, const char *problem)
{
    return schema_refuse(walk->maker, walk->maker->schema->nodes[index].value, "%s", problem);
}

static int walk_node(struct walk *walk, uint32_t index)
{
    const struct node *node = &walk->maker->schema->nodes[index];

    if (walk->state[index] == DONE)
        return 0;
    if (walk->state[index] == UNDER_WAY)
        return refuse(walk, index, "references loop here without coming to another value");
    if (walk->depth == SCHEMA_HEIGHT_MAX)
        return refuse(walk, index, "more than 200 schemas in each other for the same value");
    walk->state[index] = UNDER_WAY;
    walk->cost[index] = 1;
    walk->depth++;
    for (uint32_t i = 0; i < node->rule_count; i++)
        if (walk_rule(walk, index, &walk->maker->schema->rules[node->first_rule + i]) < 0)
            return -1;
    walk->depth--;
    walk->state[index] = DONE;
    if (walk->height[index] > SCHEMA_HEIGHT_MAX)
        return refuse(walk, index, "more than 200 schemas in each other for the same value");
    if (walk->cost[index] > SCHEMA_COST_MAX)
        return refuse(walk, index, "one value would be held against more than 100000 schemas");
    return 0;
}

int schema_check_loops(struct maker *maker)
{
    uint32_t count = maker->schema->node_count;
    _cleanup_free_ uint8_t *state = xcalloc(count, sizeof *state);
    _cleanup_free_ uint16_t *height = xcalloc(count, sizeof *height);
    _cleanup_free_ uint32_t *cost = xcalloc(count, sizeof *cost);
    struct walk walk = {maker, state, height, cost, 0};

    for (uint32_t i = 0; i < count; i++)
        if (walk_node(&walk, i) < 0)
            return -1;
    return 0;
}
