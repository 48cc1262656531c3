/* Several names with a value each: x = 3, y = -2; (x, y) = (3, -2); (x = 3, y = -2); x = y = 5; x = 1, y = 2 or x = 3,
 * y = 4. */
#include "verifiers/math/comparison.h"

struct assignments {
    size_t count;
    const struct math_node *name[MATH_ELEMENTS_MAX];
    const struct math_node *value[MATH_ELEMENTS_MAX];
};

static bool is_assignment(const struct math_node *node)
{
    return math_is_equation(node) && node->children[0]->kind != MATH_TUPLE &&
           math_is_named_by(node->children[0], node->children[1]);
}

static bool has_name_before(const struct assignments *assignments, const struct math_node *name)
{
    for (size_t i = 0; i < assignments->count; i++)
        if (math_same_tree(assignments->name[i], name))
            return true;
    return false;
}

static bool add_assignment(struct assignments *assignments, const struct math_node *name, const struct math_node *value)
{
    if (assignments->count == MATH_ELEMENTS_MAX || has_name_before(assignments, name))
        return false;
    assignments->name[assignments->count] = name;
    assignments->value[assignments->count++] = value;
    return true;
}

/* (x, y) = (3, -2) */
static bool read_tuple(const struct math_node *node, struct assignments *assignments)
{
    const struct math_node *names = node->children[0];
    const struct math_node *values = node->children[1];

    if (names->kind != MATH_TUPLE || values->kind != MATH_TUPLE || names->count != values->count ||
        !math_are_names(names) || values->opening != '(' || values->closing != ')')
        return false;
    for (size_t i = 0; i < names->count; i++)
        if (!add_assignment(assignments, names->children[i], values->children[i]))
            return false;
    return true;
}

/* x = y = 5 */
static bool read_shared(const struct math_node *node, struct assignments *assignments)
{
    const struct math_node *value = node->children[node->count - 1];

    for (size_t i = 0; i + 1 < node->count; i++)
        if (node->relations[i] != MATH_EQUALS || node->children[i]->kind != MATH_NAME ||
            !math_is_named_by(node->children[i], value) || !add_assignment(assignments, node->children[i], value))
            return false;
    return true;
}

static bool read_assignments(const struct math_node *node, struct assignments *assignments)
{
    assignments->count = 0;
    if (node->kind == MATH_RELATION)
        return node->count == 2 ? math_is_equation(node) && read_tuple(node, assignments)
                                : read_shared(node, assignments);
    if ((node->kind != MATH_LIST && node->kind != MATH_TUPLE) || node->count < 2 || (node->flags & MATH_BY_OR) ||
        (node->kind == MATH_TUPLE && (node->opening != '(' || node->closing != ')')))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (!is_assignment(node->children[i]) ||
            !add_assignment(assignments, node->children[i]->children[0], node->children[i]->children[1]))
            return false;
    return true;
}

bool math_is_assignments(const struct math_node *node)
{
    struct assignments assignments;

    return (node->kind == MATH_LIST || node->kind == MATH_RELATION || node->kind == MATH_TUPLE) &&
           read_assignments(node, &assignments);
}

static int coordinate(const struct math_node *name)
{
    bool single = name->kind == MATH_NAME && name->text.length_bytes == 1;

    return single && name->text.data[0] >= 'x' && name->text.data[0] <= 'z' ? name->text.data[0] - 'x' : -1;
}

/* Coordinates have an order of their own; other names stand for themselves in the order in which they were written. */
static void sort_coordinates(struct assignments *assignments)
{
    for (size_t i = 0; i < assignments->count; i++)
        if (coordinate(assignments->name[i]) < 0)
            return;
    for (size_t i = 1; i < assignments->count; i++) {
        for (size_t k = i; k && coordinate(assignments->name[k - 1]) > coordinate(assignments->name[k]); k--) {
            const struct math_node *name = assignments->name[k];
            const struct math_node *value = assignments->value[k];
            assignments->name[k] = assignments->name[k - 1];
            assignments->value[k] = assignments->value[k - 1];
            assignments->name[k - 1] = name;
            assignments->value[k - 1] = value;
        }
    }
}

static enum math_decision same_by_name(struct comparison *comparison, const struct assignments *left,
                                       const struct assignments *right)
{
    enum math_decision decision = math_say(left->count == right->count);

    for (size_t i = 0; i < left->count && decision != MATH_DIFFERENT; i++) {
        enum math_decision one = MATH_DIFFERENT;
        for (size_t k = 0; k < right->count; k++)
            if (math_same_tree(left->name[i], right->name[k]))
                one = math_same_bodies(comparison, left->value[i], right->value[k]);
        decision = math_both(decision, one);
    }
    return decision;
}

static enum math_decision same_by_place(struct comparison *comparison, struct assignments *assignments,
                                        const struct math_node *tuple, bool reference_is_tuple)
{
    enum math_decision decision = MATH_EQUAL;

    if (tuple->count != assignments->count || tuple->opening != '(' || tuple->closing != ')')
        return MATH_DIFFERENT;
    sort_coordinates(assignments);
    for (size_t i = 0; i < tuple->count && decision != MATH_DIFFERENT; i++) {
        const struct math_node *place = tuple->children[i];
        const struct math_node *value = assignments->value[i];
        decision = math_both(decision, math_same_bodies(comparison, reference_is_tuple ? place : value,
                                                        reference_is_tuple ? value : place));
    }
    return decision;
}

/* --- x_1 = 3, x_2 = 5: the numbers say nothing, these are two values --- */

static bool is_numbered_like(const struct math_node *name, const struct math_node *first)
{
    const char *mark = memchr(first->text.data, '_', first->text.length_bytes);
    size_t base_bytes = mark ? (size_t)(mark - first->text.data) + 1 : 0;

    return mark && name->kind == MATH_NAME && name->text.length_bytes > base_bytes &&
           memcmp(name->text.data, first->text.data, base_bytes) == 0;
}

static bool is_numbered(const struct assignments *assignments)
{
    for (size_t i = 0; i < assignments->count; i++)
        if (assignments->name[0]->kind != MATH_NAME || !is_numbered_like(assignments->name[i], assignments->name[0]))
            return false;
    return true;
}

static enum math_decision same_by_value(struct comparison *comparison, const struct assignments *assignments,
                                        const struct math_node *other, bool reference_is_other)
{
    const struct math_node *list = math_build(comparison, MATH_LIST, assignments->count, assignments->value);

    if (!list)
        return MATH_LIMIT;
    return reference_is_other ? math_same_values(comparison, other, list) : math_same_values(comparison, list, other);
}

static bool are_plain_values(const struct math_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind == MATH_RELATION)
            return false;
    return math_has_several(node);
}

static bool are_equations(const struct math_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (!math_is_equation(node->children[i]))
            return false;
    return node->kind == MATH_LIST;
}

enum math_decision math_same_assignments(struct comparison *comparison, const struct math_node *reference,
                                         const struct math_node *answer)
{
    struct assignments wanted;
    struct assignments given;
    bool named = read_assignments(reference, &wanted);

    if (read_assignments(answer, &given)) {
        if (named)
            return same_by_name(comparison, &wanted, &given);
        if (reference->kind == MATH_TUPLE)
            return same_by_place(comparison, &given, reference, true);
        if (is_numbered(&given) && are_plain_values(reference))
            return same_by_value(comparison, &given, reference, true);
    } else {
        if (answer->kind == MATH_TUPLE)
            return same_by_place(comparison, &wanted, answer, false);
        if (is_numbered(&wanted) && are_plain_values(answer))
            return same_by_value(comparison, &wanted, answer, false);
    }
    /* A system of which only one side is written as y = …, z = … */
    return are_equations(reference) && are_equations(answer) ? math_same_values(comparison, reference, answer)
                                                             : MATH_DIFFERENT;
}

/* --- x = 1, y = 2 or x = 3, y = 4 --- */

/* After how many assignments the first name comes again, if all others do in their turn; else 0. */
static size_t period_of(const struct math_node *list)
{
    size_t period = 1;

    for (size_t i = 0; i < list->count; i++)
        if (!is_assignment(list->children[i]) || list->children[i]->children[0]->kind != MATH_NAME)
            return 0;
    while (period < list->count && !math_same_tree(list->children[period]->children[0], list->children[0]->children[0]))
        period++;
    if (period < 2 || period == list->count || list->count % period)
        return 0;
    for (size_t i = period; i < list->count; i++)
        if (!math_same_tree(list->children[i]->children[0], list->children[i - period]->children[0]))
            return 0;
    return period;
}

static const struct math_node *tuple_of(struct comparison *comparison, const struct math_node *list, size_t from,
                                        size_t count)
{
    struct assignments assignments = {.count = 0};
    struct math_node *tuple;

    for (size_t i = from; i < from + count; i++)
        if (!add_assignment(&assignments, list->children[i]->children[0], list->children[i]->children[1]))
            return NULL;
    sort_coordinates(&assignments);
    tuple = math_build(comparison, MATH_TUPLE, count, assignments.value);
    if (tuple) {
        tuple->opening = '(';
        tuple->closing = ')';
    }
    return tuple;
}

const struct math_node *math_solutions_of(struct comparison *comparison, const struct math_node *node)
{
    const struct math_node *tuples[MATH_ELEMENTS_MAX];
    size_t period = node->kind == MATH_LIST ? period_of(node) : 0;

    if (period == 0 || node->count / period > MATH_ELEMENTS_MAX)
        return node;
    for (size_t i = 0; i < node->count / period; i++)
        tuples[i] = tuple_of(comparison, node, i * period, period);
    return math_build(comparison, MATH_LIST, node->count / period, tuples);
}
