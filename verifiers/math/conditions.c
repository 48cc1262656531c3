/* Conditions behind a value: x = 2k + 1, k \in Z.
 *
 * Only what says of which numbers a name in the value is: a set of numbers, or n \ge 0, n \ge 1. One side may leave it
 * out; where both have it, both must say the same. The name of a number that runs through a set may be another. */
#include "verifiers/math/comparison.h"

#include <string.h>

/* The name on the left of a condition that can be one; NULL: it is something else. */
static const struct math_node *name_of(const struct math_node *node)
{
    return node->kind == MATH_RELATION && node->count == 2 && node->children[0]->kind == MATH_NAME ? node->children[0]
                                                                                                   : NULL;
}

/* R, and \mathbf{Z}, which is read as a name. */
static struct text set_of(const struct math_node *node)
{
    bool letter = node->kind == MATH_NAME && node->text.length_bytes == 1 && strchr("RNZQC", node->text.data[0]);

    return node->kind == MATH_NUMBER_SET || letter ? node->text : TEXT_LITERAL("");
}

static bool is_from(const struct math_node *condition)
{
    const struct math_node *bound = condition->children[1];
    bool above = condition->relations[0] == MATH_GREATER || condition->relations[0] == MATH_GREATER_EQUAL;

    return above && bound->kind == MATH_NUMBER && (fmpq_is_zero(bound->value) || fmpq_is_one(bound->value));
}

/* Of the value, or of the argument of the function that it is a value of. */
static bool is_of(const struct math_node *value, const struct math_node *name)
{
    const struct math_node *left;

    if (value->kind != MATH_RELATION)
        return math_is_scalar(value) && math_mentions(value, name);
    left = value->children[0];
    return math_is_equation(value) && !(left->kind == MATH_NAME && text_same(left->text, name->text)) &&
           (math_mentions(value->children[1], name) || (left->kind == MATH_CALL && math_mentions(left, name)));
}

static bool is_condition(const struct math_node *node, const struct math_node *value)
{
    const struct math_node *name = name_of(node);
    bool set = name && node->relations[0] == MATH_IN && set_of(node->children[1]).length_bytes;

    return name && (set || is_from(node)) && is_of(value, name);
}

struct conditional {
    const struct math_node *value;
    size_t count;
    const struct math_node *condition[MATH_ELEMENTS_MAX];
};

/* The conditions at the end of a list; all elements in front of them are values. NULL as value beyond the limit. */
static struct conditional split(struct comparison *comparison, const struct math_node *node)
{
    struct conditional found;
    size_t values = node->count;

    found.value = node;
    found.count = 0;
    if (node->kind != MATH_LIST || node->count > MATH_ELEMENTS_MAX)
        return found;
    while (values > 1 && is_condition(node->children[values - 1], node->children[0]))
        values--;
    for (size_t i = values; i < node->count; i++)
        found.condition[found.count++] = node->children[i];
    if (found.count == 0)
        return found;
    found.value = node->children[0];
    if (values > 1)
        found.value = math_build(comparison, MATH_LIST, values, (const struct math_node *const *)node->children);
    if (found.value && values > 1)
        math_mutable(found.value)->flags = node->flags;
    return found;
}

/* --- the same conditions --- */

static bool is_same_condition(const struct math_node *left, const struct math_node *right)
{
    struct text wanted = set_of(left->children[1]);
    struct text given = set_of(right->children[1]);

    if (left->relations[0] != right->relations[0] || !math_same_tree(left->children[0], right->children[0]))
        return false;
    if (wanted.length_bytes == 0 || given.length_bytes == 0)
        return math_same_tree(left->children[1], right->children[1]);
    return text_same(wanted, given) || math_same_number_sets(left->children[1], right->children[1]);
}

/* Names stand for real numbers anyway. */
static bool says_nothing(const struct math_node *condition)
{
    return text_equals(set_of(condition->children[1]), "R");
}

static bool has_all(const struct conditional *those, const struct conditional *of)
{
    for (size_t i = 0; i < of->count; i++) {
        bool found = says_nothing(of->condition[i]);
        for (size_t k = 0; k < those->count && !found; k++)
            found = is_same_condition(of->condition[i], those->condition[k]);
        if (!found)
            return false;
    }
    return true;
}

/* --- other names --- */

static const struct math_node *renamed(struct comparison *comparison, const struct math_node *node,
                                       const struct math_node *from, const struct math_node *to)
{
    const struct math_node **children;

    if (node->kind == MATH_NAME)
        return text_same(node->text, from->text) ? to : node;
    if (!math_mentions(node, from))
        return node;
    children = math_allocate(comparison->rules->arena, node->count * sizeof(struct math_node *));
    for (size_t i = 0; children && i < node->count; i++)
        children[i] = renamed(comparison, node->children[i], from, to);
    return children ? math_with_children(comparison, node, children) : NULL;
}

/* 2n + 1, n \in Z for 2k + 1, k \in Z. NULL in it beyond the limit. */
static void take_names(struct comparison *comparison, const struct conditional *reference, struct conditional *answer)
{
    const struct math_node *to;
    const struct math_node *from;

    if (reference->count != 1 || answer->count != 1)
        return;
    to = reference->condition[0]->children[0];
    from = answer->condition[0]->children[0];
    if (math_same_tree(to, from) || math_mentions(answer->value, to) || math_mentions(reference->value, from))
        return;
    answer->value = renamed(comparison, answer->value, from, to);
    answer->condition[0] = renamed(comparison, answer->condition[0], from, to);
}

bool math_take_conditions(struct comparison *comparison, const struct math_node **reference,
                          const struct math_node **answer)
{
    struct conditional wanted = split(comparison, *reference);
    struct conditional given = split(comparison, *answer);

    if (!wanted.value || !given.value)
        return false;
    if (wanted.count && given.count)
        take_names(comparison, &wanted, &given);
    if (!given.value || (given.count && !given.condition[0]))
        return false;
    if (wanted.count && given.count && !(has_all(&wanted, &given) && has_all(&given, &wanted)))
        return true;
    *reference = wanted.value;
    *answer = given.value;
    return true;
}
