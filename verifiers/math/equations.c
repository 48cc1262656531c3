/* Names before = and before a point, chains of equalities, equations and inequalities that are not solved. */
#include "verifiers/math/comparison.h"

#include <string.h>

/* --- names --- */

bool math_is_capitals(const struct math_node *node)
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

bool math_are_names(const struct math_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != MATH_NAME)
            return false;
    return node->count > 0;
}

/* Left sides that can be given a value: x, f(x), P(A), the segment AB, (x, y), a word. Not an expression:
 * x + y = 5 names nothing. */
static bool may_be_named(const struct math_node *node)
{
    return node->kind == MATH_NAME || node->kind == MATH_CALL ||
           (node->kind == MATH_TEXT && !math_denies(node->text)) || math_is_capitals(node) ||
           (node->kind == MATH_TUPLE && math_are_names(node));
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

bool math_is_named_by(const struct math_node *name, const struct math_node *value)
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

static bool is_number(const struct math_node *node)
{
    return node->kind == MATH_NUMBER || node->kind == MATH_BASED;
}

/* 1010_2 = 10_{10}: in a chain another base is no other value. */
static enum math_decision same_value(struct comparison *comparison, const struct math_node *left,
                                     const struct math_node *right)
{
    if (is_number(left) && is_number(right))
        return math_say(fmpq_equal(left->value, right->value));
    return math_same_bodies(comparison, left, right);
}

/* All of parts[from..to) must be one value. */
static enum math_decision is_consistent(struct comparison *comparison, const struct math_node *relation, size_t from,
                                        size_t exact)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = from + 1; i < exact && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, same_value(comparison, relation->children[from], relation->children[i]));
    if (decision == MATH_EQUAL && exact < relation->count && exact > from)
        decision = is_rounded(comparison, relation->children[exact - 1], relation->children[exact]);
    return decision == MATH_DIFFERENT ? MATH_UNDEFINED : decision;
}

static bool may_begin_chain(const struct math_node *node)
{
    return math_is_scalar(node) || node->kind == MATH_BASED || node->kind == MATH_RATIO;
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
    if (node->count > 1 && math_is_named_by(first, node->children[1])) {
        subject->name = first;
        from = 1;
    } else if (node->count == 2 && exact == 2 && last->kind == MATH_NAME && math_is_named_by(last, first)) {
        *subject = (struct math_subject){last, first};
        return MATH_EQUAL;
    } else if (node->count == 2 && (math_has_names(node) || !may_begin_chain(first))) {
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

/* P(3, -2) is what P = (3, -2) says. With names it is a product or a function; C(5, 2) is a number, N(0, 1) and
 * U(0, 1) are distributions. */
static bool is_point(const struct math_node *node)
{
    const struct math_node *name;
    const struct math_node *place;

    if (node->kind != MATH_PRODUCT || node->count != 2 || !(node->flags & MATH_JUXTAPOSED))
        return false;
    name = node->children[0];
    place = node->children[1];
    return name->kind == MATH_NAME && name->text.data[0] >= 'A' && name->text.data[0] <= 'Z' &&
           !strchr("CNU", name->text.data[0]) && place->kind == MATH_TUPLE && place->opening == '(' &&
           place->closing == ')' && !math_has_names(place);
}

enum math_decision math_subject_of(struct comparison *comparison, const struct math_node *node,
                                   struct math_subject *ret_subject)
{
    *ret_subject = (struct math_subject){NULL, node};
    if (node->kind == MATH_LIST)
        return subject_of_list(comparison, node, ret_subject);
    if (is_point(node))
        *ret_subject = (struct math_subject){node->children[0], node->children[1]};
    if (node->kind != MATH_RELATION)
        return MATH_EQUAL;
    if (node->count == 2 && node->relations[0] == MATH_IN && may_be_named(node->children[0])) {
        *ret_subject = (struct math_subject){node->children[0], node->children[1]};
        return MATH_EQUAL;
    }
    return subject_of_chain(comparison, node, ret_subject);
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

    if (math_is_equation(reference) && math_is_equation(answer) && math_has_kind(reference, MATH_PLUS_MINUS) &&
        math_has_kind(answer, MATH_PLUS_MINUS))
        return math_same_values(comparison, reference, answer);
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
