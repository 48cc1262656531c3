/* Names before =, chains of equalities, equations and inequalities that are not solved. */
#include "verifiers/math/comparison.h"

/* --- names --- */

static bool is_capitals(const struct math_node *node)
{
    if (node->kind != MATH_PRODUCT || !(node->flags & MATH_JUXTAPOSED))
        return false;
    for (size_t i = 0; i < node->count; i++) {
        const struct math_node *factor = node->children[i];
        if (factor->kind != MATH_NAME || factor->text.data[0] < 'A' || factor->text.data[0] > 'Z')
            return false;
    }
    return true;
}

static bool are_names(const struct math_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != MATH_NAME)
            return false;
    return node->count > 0;
}

/* What may be given a value: x, f(x), P(A), the segment AB, (x, y), a word. Not an expression: x + y = 5 names nothing.
 */
static bool may_be_named(const struct math_node *node)
{
    return node->kind == MATH_NAME || node->kind == MATH_CALL || node->kind == MATH_TEXT || is_capitals(node) ||
           (node->kind == MATH_TUPLE && are_names(node));
}

static bool mentions_any(const struct math_node *node, const struct math_node *names)
{
    if (names->kind == MATH_NAME)
        return math_mentions(node, names);
    for (size_t i = 0; names->kind != MATH_CALL && i < names->count; i++)
        if (mentions_any(node, names->children[i]))
            return true;
    return false;
}

static bool is_named_by(const struct math_node *name, const struct math_node *value)
{
    return may_be_named(name) && !mentions_any(value, name);
}

/* a = b = c as far as it says what something is; a last \approx only adds a rounded value. */
static size_t exact_parts(const struct math_node *relation)
{
    size_t parts = 1;

    while (parts < relation->count && relation->relations[parts - 1] == MATH_EQUALS)
        parts++;
    if (parts == relation->count)
        return parts;
    return parts + 1 == relation->count && relation->relations[parts - 1] == MATH_APPROXIMATELY ? parts : 0;
}

/* The rounded value must be one: within a hundredth, so that 2 \approx 7 is no way to give two answers. */
static enum math_decision is_rounded(struct comparison *comparison, const struct math_node *exact,
                                     const struct math_node *rounded)
{
    enum math_decision decision;
    fmpq_t hundredth;
    fmpq_t zero;

    if (!math_is_scalar(exact) || !math_is_scalar(rounded) || math_has_names(exact) || math_has_names(rounded))
        return MATH_UNDEFINED;
    fmpq_init(zero);
    fmpq_init(hundredth);
    fmpq_set_si(hundredth, 1, 100);
    decision = math_decide_within(comparison->decider, exact, rounded, hundredth, zero);
    fmpq_clear(hundredth);
    fmpq_clear(zero);
    return decision;
}

/* All of parts[from..to) must be one value. */
static enum math_decision is_consistent(struct comparison *comparison, const struct math_node *relation, size_t from,
                                        size_t exact)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = from + 1; i < exact && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, math_same_bodies(comparison, relation->children[from], relation->children[i]));
    if (decision == MATH_EQUAL && exact < relation->count && exact > from)
        decision = is_rounded(comparison, relation->children[exact - 1], relation->children[exact]);
    return decision == MATH_DIFFERENT ? MATH_UNDEFINED : decision;
}

static enum math_decision subject_of_chain(struct comparison *comparison, const struct math_node *node,
                                           struct math_subject *subject)
{
    size_t exact = exact_parts(node);
    const struct math_node *first = node->children[0];
    const struct math_node *last = node->children[node->count - 1];
    size_t from = 0;

    if (exact == 0)
        return MATH_EQUAL;
    if (node->count > 1 && is_named_by(first, node->children[1])) {
        subject->name = first;
        from = 1;
    } else if (node->count == 2 && exact == 2 && last->kind == MATH_NAME && is_named_by(last, first)) {
        *subject = (struct math_subject){last, first};
        return MATH_EQUAL;
    } else if (node->count == 2 && (math_has_names(node) || !math_is_scalar(first))) {
        return MATH_EQUAL;
    }
    /* x \approx 3.14 has nothing exact but that. */
    subject->body = node->children[exact > from ? exact - 1 : node->count - 1];
    return is_consistent(comparison, node, from, exact);
}

/* n = 1, 2, 3: the name stands before all of them. x = 1 or x = 2 says it again. */
static enum math_decision subject_of_list(struct comparison *comparison, const struct math_node *node,
                                          struct math_subject *subject)
{
    const struct math_node *bodies[MATH_ELEMENTS_MAX];
    struct math_subject first = {NULL, NULL};
    enum math_decision decision = MATH_EQUAL;

    if (node->count > MATH_ELEMENTS_MAX || node->children[0]->kind != MATH_RELATION)
        return MATH_EQUAL;
    decision = math_subject_of(comparison, node->children[0], &first);
    bodies[0] = first.body;
    for (size_t i = 1; i < node->count && first.name && decision == MATH_EQUAL; i++) {
        struct math_subject next;
        decision = math_subject_of(comparison, node->children[i], &next);
        bodies[i] = next.body;
        if ((next.name && !math_same_tree(next.name, first.name)) || (!next.name && next.body->kind == MATH_RELATION))
            return decision;
    }
    if (decision != MATH_EQUAL || !first.name)
        return decision;
    subject->name = first.name;
    subject->body = math_with_children(comparison, node, bodies);
    return subject->body ? MATH_EQUAL : MATH_LIMIT;
}

enum math_decision math_subject_of(struct comparison *comparison, const struct math_node *node,
                                   struct math_subject *ret_subject)
{
    *ret_subject = (struct math_subject){NULL, node};
    if (node->kind == MATH_LIST)
        return subject_of_list(comparison, node, ret_subject);
    if (node->kind != MATH_RELATION)
        return MATH_EQUAL;
    if (node->count == 2 && node->relations[0] == MATH_IN && may_be_named(node->children[0])) {
        *ret_subject = (struct math_subject){node->children[0], node->children[1]};
        return MATH_EQUAL;
    }
    return subject_of_chain(comparison, node, ret_subject);
}

/* --- x = 3, y = -2 --- */

struct assignments {
    size_t count;
    const struct math_node *name[MATH_ELEMENTS_MAX];
    const struct math_node *value[MATH_ELEMENTS_MAX];
};

static bool is_assignment(const struct math_node *node)
{
    return math_is_equation(node) && node->children[0]->kind != MATH_TUPLE &&
           is_named_by(node->children[0], node->children[1]);
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

    if (names->kind != MATH_TUPLE || values->kind != MATH_TUPLE || names->count != values->count || !are_names(names) ||
        values->opening != '(' || values->closing != ')')
        return false;
    for (size_t i = 0; i < names->count; i++)
        if (!add_assignment(assignments, names->children[i], values->children[i]))
            return false;
    return true;
}

static bool read_assignments(const struct math_node *node, struct assignments *assignments)
{
    assignments->count = 0;
    if (math_is_equation(node))
        return read_tuple(node, assignments);
    if (node->kind != MATH_LIST || node->count < 2)
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

    return (node->kind == MATH_LIST || node->kind == MATH_RELATION) && read_assignments(node, &assignments);
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
    } else if (answer->kind == MATH_TUPLE) {
        return same_by_place(comparison, &wanted, answer, false);
    }
    /* A system of which only one side is written as y = …, z = … */
    return are_equations(reference) && are_equations(answer) ? math_same_values(comparison, reference, answer)
                                                             : MATH_DIFFERENT;
}

/* --- equations and inequalities --- */

static size_t terms_of(const struct math_node *side)
{
    if (side->kind == MATH_NUMBER && fmpq_is_zero(side->value))
        return 0;
    return side->kind == MATH_SUM ? side->count : 1;
}

bool math_is_collected(const struct math_node *relation)
{
    return relation->kind == MATH_RELATION && relation->count == 2 &&
           terms_of(relation->children[0]) + terms_of(relation->children[1]) <= 2;
}

struct link {
    enum math_relation relation;
    const struct math_node *left;
    const struct math_node *right;
};

/* Turned around where that makes > of <. */
static struct link link_at(const struct math_node *relation, size_t i)
{
    struct link link = {relation->relations[i], relation->children[i], relation->children[i + 1]};

    if (link.relation != MATH_GREATER && link.relation != MATH_GREATER_EQUAL)
        return link;
    return (struct link){link.relation == MATH_GREATER ? MATH_LESS : MATH_LESS_EQUAL, link.right, link.left};
}

static bool is_order(enum math_relation relation)
{
    return relation == MATH_LESS || relation == MATH_LESS_EQUAL;
}

static enum math_decision same_sides(struct comparison *comparison, const struct link *left, const struct link *right)
{
    bool symmetric = left->relation == MATH_EQUALS || left->relation == MATH_NOT_EQUAL ||
                     left->relation == MATH_CONGRUENT || left->relation == MATH_APPROXIMATELY;
    enum math_decision decision = math_both(math_same_bodies(comparison, left->left, right->left),
                                            math_same_bodies(comparison, left->right, right->right));

    if (!symmetric || decision == MATH_EQUAL)
        return decision;
    return math_either(decision, math_both(math_same_bodies(comparison, left->left, right->right),
                                           math_same_bodies(comparison, left->right, right->left)));
}

static bool is_arithmetic(const struct link *link)
{
    bool comparable = link->relation == MATH_EQUALS || link->relation == MATH_NOT_EQUAL || is_order(link->relation);

    return comparable && math_is_scalar(link->left) && math_is_scalar(link->right);
}

/* One side minus the other is the same up to a factor; for an inequality, a positive one. */
static enum math_decision same_link(struct comparison *comparison, const struct link *left, const struct link *right)
{
    struct math_node *wanted;
    struct math_node *given;
    enum math_decision decision;
    int sign = 1;

    if (left->relation != right->relation)
        return MATH_DIFFERENT;
    if (!is_arithmetic(left) || !is_arithmetic(right))
        return same_sides(comparison, left, right);
    wanted = math_minus(comparison, left->left, left->right);
    given = math_minus(comparison, right->left, right->right);
    if (!wanted || !given)
        return MATH_LIMIT;
    decision = math_decide_proportional(comparison->decider, wanted, given, &sign);
    if (decision == MATH_EQUAL && is_order(left->relation) && sign <= 0)
        decision = MATH_DIFFERENT;
    /* x = x has no factor: 0 = 0. */
    if (decision == MATH_DIFFERENT && math_same_tree(left->left, right->left) &&
        math_same_tree(left->right, right->right))
        return MATH_EQUAL;
    if (decision == MATH_UNDECIDED || decision == MATH_LIMIT)
        decision = math_either(decision, same_sides(comparison, left, right));
    return decision;
}

static enum math_decision has_link(struct comparison *comparison, const struct math_node *relation,
                                   const struct link *link)
{
    enum math_decision decision = MATH_DIFFERENT;

    for (size_t i = 0; i + 1 < relation->count && decision != MATH_EQUAL; i++) {
        struct link other = link_at(relation, i);
        decision = math_either(decision, same_link(comparison, link, &other));
    }
    return decision;
}

/* a < b < c says a < b and b < c, in whatever order. */
enum math_decision math_same_relations(struct comparison *comparison, const struct math_node *reference,
                                       const struct math_node *answer)
{
    enum math_decision decision = math_say(reference->count == answer->count);

    for (size_t i = 0; i + 1 < reference->count && decision != MATH_DIFFERENT; i++) {
        struct link link = link_at(reference, i);
        decision = math_both(decision, has_link(comparison, answer, &link));
    }
    for (size_t i = 0; i + 1 < answer->count && answer->count > 2 && decision != MATH_DIFFERENT; i++) {
        struct link link = link_at(answer, i);
        decision = math_both(decision, has_link(comparison, reference, &link));
    }
    return decision;
}
