/* Sets, lists and both values of \pm: elements without an order, of which repeats say nothing. */
#include "verifiers/math/comparison.h"

struct elements {
    size_t count;
    const struct math_node *node[MATH_ELEMENTS_MAX];
};

/* --- \pm --- */

static const struct math_node *signed_copy(struct comparison *comparison, const struct math_node *node, bool upper);

static const struct math_node *copy_children(struct comparison *comparison, const struct math_node *node, bool upper)
{
    const struct math_node **children =
        math_allocate(comparison->rules->arena, node->count * sizeof(struct math_node *));

    if (!children)
        return NULL;
    for (size_t i = 0; i < node->count; i++) {
        children[i] = signed_copy(comparison, node->children[i], upper);
        if (!children[i])
            return NULL;
    }
    return math_with_children(comparison, node, children);
}

/* All upper signs, or all lower ones. */
static const struct math_node *signed_copy(struct comparison *comparison, const struct math_node *node, bool upper)
{
    const struct math_node *child;

    if (!math_has_kind(node, MATH_PLUS_MINUS))
        return node;
    if (node->kind != MATH_PLUS_MINUS)
        return copy_children(comparison, node, upper);
    child = signed_copy(comparison, node->children[0], upper);
    if (!child || upper != !!(node->flags & MATH_FLIPPED))
        return child;
    return math_build(comparison, MATH_NEGATE, 1, &child);
}

/* --- gathering --- */

static bool is_several_by_kind(const struct math_node *node)
{
    return node->kind == MATH_LIST || node->kind == MATH_SET || node->kind == MATH_UNION;
}

bool math_has_several(const struct math_node *node)
{
    if (node->kind == MATH_UNION) {
        for (size_t i = 0; i < node->count; i++)
            if (node->children[i]->kind != MATH_SET)
                return false;
        return true;
    }
    return is_several_by_kind(node) || math_has_kind(node, MATH_PLUS_MINUS);
}

static bool add(struct elements *elements, const struct math_node *node)
{
    if (!node || elements->count == MATH_ELEMENTS_MAX)
        return false;
    elements->node[elements->count++] = node;
    return true;
}

/* A set within a set is an element; a list, or two values of \pm, are several elements. */
static bool gather(struct comparison *comparison, const struct math_node *node, bool top, struct elements *elements)
{
    bool open = node->kind == MATH_LIST || (top && is_several_by_kind(node));

    if (open) {
        for (size_t i = 0; i < node->count; i++)
            if (!gather(comparison, node->children[i], node->kind == MATH_UNION, elements))
                return false;
        return true;
    }
    if (math_has_kind(node, MATH_PLUS_MINUS))
        return add(elements, signed_copy(comparison, node, true)) &&
               add(elements, signed_copy(comparison, node, false));
    return add(elements, node);
}

/* --- hedges --- */

/* {1, 2}, x in {1, 2}, S = {1, 2} */
static const struct math_node *value_of(const struct math_node *node)
{
    bool named = node->kind == MATH_RELATION && node->count == 2 &&
                 (node->relations[0] == MATH_IN || node->relations[0] == MATH_EQUALS);

    return named ? node->children[1] : node;
}

/* {1, 2} or {3}, {1} or 2. With an interval beside it a set is one of its pieces: x < 0 or x in {2, 3}. */
static bool is_choice_of_sets(const struct math_node *list)
{
    bool set = false;

    for (size_t i = 0; i < list->count; i++) {
        const struct math_node *value = value_of(list->children[i]);
        if (value->kind != MATH_SET && !math_is_scalar(value))
            return false;
        set = set || value->kind == MATH_SET;
    }
    return set;
}

/* 1, 2, 3 or 1, 2 is the choice between two lists, \pm 3 or 3 between two values and one. x = 1 or x = 2 or x = 2 says
 * so of each root. */
static bool repeats_itself(struct comparison *comparison, const struct math_node *list)
{
    struct elements all = {.count = 0};
    bool signs = math_has_kind(list, MATH_PLUS_MINUS);

    if (!gather(comparison, list, true, &all))
        return false;
    for (size_t i = 1; all.count > 2 && i < all.count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct math_node *left = signs ? value_of(all.node[k]) : all.node[k];
            const struct math_node *right = signs ? value_of(all.node[i]) : all.node[i];
            if (left->kind != MATH_RELATION && right->kind != MATH_RELATION &&
                math_same(comparison, left, right) == MATH_EQUAL)
                return true;
        }
    }
    return false;
}

bool math_is_hedge(struct comparison *comparison, const struct math_node *node)
{
    return node->kind == MATH_LIST && (node->flags & MATH_BY_OR) &&
           (is_choice_of_sets(node) || repeats_itself(comparison, node));
}

/* --- comparing --- */

static enum math_decision has_element(struct comparison *comparison, const struct math_node *wanted, size_t count,
                                      const struct math_node *const *elements, bool reference_has_it)
{
    enum math_decision decision = MATH_DIFFERENT;

    for (size_t i = 0; i < count && decision != MATH_EQUAL; i++)
        decision = math_either(decision, reference_has_it ? math_same(comparison, elements[i], wanted)
                                                          : math_same(comparison, wanted, elements[i]));
    return decision;
}

enum math_decision math_same_elements(struct comparison *comparison, size_t left_count,
                                      const struct math_node *const *left, size_t right_count,
                                      const struct math_node *const *right)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = 0; i < left_count && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, has_element(comparison, left[i], right_count, right, false));
    for (size_t i = 0; i < right_count && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, has_element(comparison, right[i], left_count, left, true));
    return decision;
}

static bool has_equation(const struct math_node *node)
{
    for (size_t i = 0; node->kind == MATH_LIST && i < node->count; i++)
        if (node->children[i]->kind == MATH_RELATION)
            return true;
    return false;
}

/* Names that are still there stand before different values: 1, 2 is not x = 1, y = 2, and x = 5 or y = 3 is not both.
 */
static bool are_other_lists(const struct math_node *reference, const struct math_node *answer)
{
    bool wanted = has_equation(reference);

    return wanted != has_equation(answer) || (wanted && ((reference->flags ^ answer->flags) & MATH_BY_OR));
}

enum math_decision math_same_values(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer)
{
    struct elements wanted = {.count = 0};
    struct elements given = {.count = 0};

    if (are_other_lists(reference, answer))
        return MATH_DIFFERENT;
    if (!gather(comparison, reference, true, &wanted) || !gather(comparison, answer, true, &given))
        return MATH_LIMIT;
    return math_same_elements(comparison, wanted.count, wanted.node, given.count, given.node);
}
