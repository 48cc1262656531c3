/* Sets of real numbers: intervals, inequalities in solved form, unions of them with points between.
 *
 * A region is a union of pieces, put in order and joined where they touch, so that one set has one form. Ends with
 * names in them cannot be ordered: then the pieces must be the same as they stand. */
#include "verifiers/math/region.h"

/* MATH_EQUAL: read. MATH_DIFFERENT: no set of real numbers. */
static enum math_decision read_region(struct comparison *comparison, const struct math_node *node,
                                      struct region *region);

/* --- an interval --- */

static bool is_end(const struct math_node *node)
{
    return math_is_scalar(node) && !math_has_kind(node, MATH_PLUS_MINUS) && !math_has_kind(node, MATH_QUANTITY);
}

/* From one end to the other, which may be infinite, but only open. */
static enum math_decision add_interval(struct comparison *comparison, struct region *region, struct piece piece)
{
    int low = math_infinite_sign(piece.low);
    int high = math_infinite_sign(piece.high);
    enum math_decision decision;

    if (!is_end(piece.low) || !is_end(piece.high) || low > 0 || high < 0 || (low && piece.low_closed) ||
        (high && piece.high_closed))
        return MATH_DIFFERENT;
    piece.low = low ? NULL : piece.low;
    piece.high = high ? NULL : piece.high;
    decision = region_check_order(comparison, &piece);
    return decision == MATH_EQUAL ? region_add(region, piece) : decision;
}

static enum math_decision read_tuple(struct comparison *comparison, const struct math_node *node, struct region *region)
{
    if (node->count != 2)
        return MATH_DIFFERENT;
    return add_interval(
        comparison, region,
        (struct piece){node->children[0], node->children[1], node->opening == '[', node->closing == ']'});
}

static enum math_decision read_points(struct comparison *comparison, const struct math_node *node,
                                      struct region *region)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = 0; i < node->count && decision == MATH_EQUAL; i++) {
        const struct math_node *point = node->children[i];
        decision = math_infinite_sign(point)
                       ? MATH_DIFFERENT
                       : add_interval(comparison, region, (struct piece){point, point, true, true});
    }
    return decision;
}

/* --- inequalities --- */

static enum math_decision take_variable(struct region *region, const struct math_node *name)
{
    if (region->variable && !math_same_tree(region->variable, name))
        return MATH_DIFFERENT;
    region->variable = name;
    return MATH_EQUAL;
}

static enum math_relation turned(enum math_relation relation)
{
    switch ((int)relation) {
    case MATH_LESS:
        return MATH_GREATER;
    case MATH_LESS_EQUAL:
        return MATH_GREATER_EQUAL;
    case MATH_GREATER:
        return MATH_LESS;
    case MATH_GREATER_EQUAL:
        return MATH_LESS_EQUAL;
    default:
        return relation;
    }
}

/* An open end at infinity, as a node, is what add_interval() takes. */
static struct math_node *infinity(struct comparison *comparison, bool negative)
{
    struct math_node *node = math_node_create(comparison->rules->arena, MATH_CONSTANT, 0);

    if (!node)
        return NULL;
    node->constant = MATH_INFINITY;
    return negative ? math_node_of(comparison->rules->arena, MATH_NEGATE, 1, &node) : node;
}

/* name relation bound */
static enum math_decision add_half(struct comparison *comparison, struct region *region, enum math_relation relation,
                                   const struct math_node *bound)
{
    bool above = relation == MATH_GREATER || relation == MATH_GREATER_EQUAL;
    bool closed = relation == MATH_GREATER_EQUAL || relation == MATH_LESS_EQUAL;
    const struct math_node *end = infinity(comparison, !above);

    if (!end)
        return MATH_LIMIT;
    return add_interval(comparison, region,
                        above ? (struct piece){bound, end, closed, false} : (struct piece){end, bound, false, closed});
}

static enum math_decision add_one_sided(struct comparison *comparison, struct region *region,
                                        enum math_relation relation, const struct math_node *bound)
{
    enum math_decision decision;

    if (!is_end(bound) || math_has_names(bound))
        return MATH_DIFFERENT;
    if (relation == MATH_EQUALS)
        return add_interval(comparison, region, (struct piece){bound, bound, true, true});
    if (relation != MATH_NOT_EQUAL)
        return turned(relation) == relation ? MATH_DIFFERENT : add_half(comparison, region, relation, bound);
    decision = add_half(comparison, region, MATH_LESS, bound);
    return decision == MATH_EQUAL ? add_half(comparison, region, MATH_GREATER, bound) : decision;
}

/* low < name < high, or turned around */
static enum math_decision add_two_sided(struct comparison *comparison, struct region *region,
                                        const struct math_node *node)
{
    enum math_relation first = node->relations[0];
    enum math_relation second = node->relations[1];
    bool falling = first == MATH_GREATER || first == MATH_GREATER_EQUAL;
    const struct math_node *low = node->children[falling ? 2 : 0];
    const struct math_node *high = node->children[falling ? 0 : 2];
    const struct math_node *name = node->children[1];

    if (falling) {
        first = turned(node->relations[1]);
        second = turned(node->relations[0]);
    }
    if ((first != MATH_LESS && first != MATH_LESS_EQUAL) || (second != MATH_LESS && second != MATH_LESS_EQUAL) ||
        math_mentions(low, name) || math_mentions(high, name))
        return MATH_DIFFERENT;
    return add_interval(comparison, region,
                        (struct piece){low, high, first == MATH_LESS_EQUAL, second == MATH_LESS_EQUAL});
}

/* |x - 2| is still to be solved: it may be the question. */
static bool is_absolute_name(const struct math_node *node)
{
    return node->kind == MATH_ABSOLUTE && node->children[0]->kind == MATH_NAME;
}

/* |x| < c lies between -c and c, |x| > c beyond them. */
static enum math_decision add_absolute(struct comparison *comparison, struct region *region,
                                       enum math_relation relation, const struct math_node *bound)
{
    const struct math_node *negative = math_build(comparison, MATH_NEGATE, 1, &bound);
    bool within = relation == MATH_LESS || relation == MATH_LESS_EQUAL;
    bool closed = relation == MATH_LESS_EQUAL || relation == MATH_GREATER_EQUAL;
    struct piece between = {negative, bound, closed, closed};
    enum math_decision decision;

    if (!negative)
        return MATH_LIMIT;
    if (!is_end(bound) || math_has_names(bound) || math_infinite_sign(bound) || turned(relation) == relation)
        return MATH_DIFFERENT;
    if (within)
        return add_interval(comparison, region, between);
    decision = region_check_order(comparison, &between); /* of a negative bound it would say nothing */
    if (decision == MATH_EQUAL)
        decision = add_half(comparison, region, turned(relation), negative);
    return decision == MATH_EQUAL ? add_half(comparison, region, relation, bound) : decision;
}

static enum math_decision read_absolute(struct comparison *comparison, const struct math_node *node,
                                        struct region *region)
{
    bool turn = !is_absolute_name(node->children[0]);
    const struct math_node *absolute = node->children[turn ? 1 : 0];
    enum math_decision decision = take_variable(region, absolute->children[0]);

    if (decision != MATH_EQUAL)
        return decision;
    return add_absolute(comparison, region, turn ? turned(node->relations[0]) : node->relations[0],
                        node->children[turn ? 0 : 1]);
}

/* x in S, x not in S */
static enum math_decision read_membership(struct comparison *comparison, const struct math_node *node,
                                          struct region *region)
{
    struct region outside = {.variable = region->variable};
    enum math_decision decision;

    if (node->relations[0] == MATH_IN)
        return read_region(comparison, node->children[1], region);
    decision = read_region(comparison, node->children[1], &outside);
    if (decision == MATH_EQUAL)
        decision = region_complement(comparison, &outside);
    return decision == MATH_EQUAL ? region_add_all(region, &outside) : decision;
}

/* x, and f(x) in -2 \le f(x) \le 2, which is read as a product. */
static bool is_variable(const struct math_node *node)
{
    bool pair = node->kind == MATH_PRODUCT && node->count == 2 && (node->flags & MATH_JUXTAPOSED);
    const struct math_node *function = pair ? node->children[0] : node;
    const struct math_node *argument = pair ? node->children[1] : node;

    if (node->kind == MATH_NAME)
        return true;
    return pair && function->kind == MATH_NAME && function->text.length_bytes == 1 &&
           strchr("fghFGH", function->text.data[0]) && argument->kind == MATH_NAME &&
           (argument->flags & MATH_BRACKETED);
}

static enum math_decision read_relation(struct comparison *comparison, const struct math_node *node,
                                        struct region *region)
{
    const struct math_node *left = node->children[0];
    const struct math_node *right = node->children[1];
    bool turn = !is_variable(left);
    const struct math_node *name = turn ? right : left;
    enum math_decision decision;

    if (node->count == 2 && (is_absolute_name(left) || is_absolute_name(right)))
        return read_absolute(comparison, node, region);
    if (node->count > 3 || !is_variable(name) || (node->count == 3 && !turn))
        return MATH_DIFFERENT;
    decision = take_variable(region, name);
    if (decision != MATH_EQUAL)
        return decision;
    if (node->count == 3)
        return add_two_sided(comparison, region, node);
    if (node->relations[0] == MATH_IN || node->relations[0] == MATH_NOT_IN)
        return turn ? MATH_DIFFERENT : read_membership(comparison, node, region);
    return add_one_sided(comparison, region, turn ? turned(node->relations[0]) : node->relations[0],
                         turn ? left : right);
}

/* --- regions of regions --- */

static enum math_decision read_union(struct comparison *comparison, const struct math_node *node, struct region *region)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = 0; i < node->count && decision == MATH_EQUAL; i++)
        decision = read_region(comparison, node->children[i], region);
    return decision;
}

static enum math_decision read_intersection(struct comparison *comparison, const struct math_node *node,
                                            struct region *region)
{
    struct region all = {.count = 0};
    enum math_decision decision = read_region(comparison, node->children[0], &all);

    for (size_t i = 1; i < node->count && decision == MATH_EQUAL; i++) {
        struct region next = {.count = 0};
        decision = read_region(comparison, node->children[i], &next);
        if (decision == MATH_EQUAL)
            decision = region_intersect(comparison, &all, &next);
    }
    if (decision == MATH_EQUAL && all.variable)
        decision = take_variable(region, all.variable);
    return decision == MATH_EQUAL ? region_add_all(region, &all) : decision;
}

static enum math_decision read_difference(struct comparison *comparison, const struct math_node *node,
                                          struct region *region)
{
    struct region all = {.count = 0};
    struct region without = {.count = 0};
    enum math_decision decision = math_both(read_region(comparison, node->children[0], &all),
                                            read_region(comparison, node->children[1], &without));

    if (decision == MATH_EQUAL)
        decision = region_complement(comparison, &without);
    if (decision == MATH_EQUAL)
        decision = region_intersect(comparison, &all, &without);
    return decision == MATH_EQUAL ? region_add_all(region, &all) : decision;
}

static enum math_decision read_number_set(struct comparison *comparison, const struct math_node *node,
                                          struct region *region)
{
    const struct math_node *zero;
    enum math_relation relation;
    fmpq_t nothing;

    if (text_equals(node->text, "R"))
        return region_add(region, (struct piece){NULL, NULL, false, false});
    if (!math_is_real_half(node, &relation))
        return MATH_DIFFERENT;
    fmpq_init(nothing);
    zero = math_number_create(comparison->rules->arena, nothing);
    fmpq_clear(nothing);
    return zero ? add_half(comparison, region, relation, zero) : MATH_LIMIT;
}

/* {x : 0 <= x < 1}: the name is bound, whatever it is. */
static enum math_decision read_builder(struct comparison *comparison, const struct math_node *node,
                                       struct region *region)
{
    const struct math_node *variable = node->children[0];
    struct region inner = {.count = 0};
    enum math_decision decision;

    if (variable->kind == MATH_RELATION && variable->count == 2 && variable->relations[0] == MATH_IN &&
        variable->children[1]->kind == MATH_NUMBER_SET && text_equals(variable->children[1]->text, "R"))
        variable = variable->children[0];
    if (variable->kind != MATH_NAME)
        return MATH_DIFFERENT;
    inner.variable = variable;
    decision = read_region(comparison, node->children[1], &inner);
    return decision == MATH_EQUAL ? region_add_all(region, &inner) : decision;
}

/* (1, 3) or (2, 4) may be two points. */
static bool may_be_points(const struct math_node *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->children[i]->kind != MATH_TUPLE || list->children[i]->opening != '(' ||
            list->children[i]->closing != ')')
            return false;
    return true;
}

/* Something, and nothing that is there already. MATH_UNDECIDED: "or" joins two answers, not two pieces of one. */
static enum math_decision add_alternative(struct comparison *comparison, const struct math_node *list,
                                          const struct region *next, struct region *all)
{
    struct region common = *next;
    bool symbolic = next->symbolic || all->symbolic;
    enum math_decision decision = symbolic ? MATH_EQUAL : region_intersect(comparison, &common, all);

    if (decision != MATH_EQUAL)
        return decision;
    if (next->count == 0 || (!symbolic && common.count))
        return may_be_points(list) ? MATH_DIFFERENT : MATH_UNDECIDED;
    all->variable = next->variable;
    return region_add_all(all, next);
}

/* x < 1 or x > 2 */
static enum math_decision read_alternatives(struct comparison *comparison, const struct math_node *node,
                                            struct region *region)
{
    struct region all = {.variable = region->variable};
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = 0; i < node->count && decision == MATH_EQUAL; i++) {
        struct region next = {.variable = all.variable};
        decision = read_region(comparison, node->children[i], &next);
        if (decision == MATH_EQUAL)
            decision = add_alternative(comparison, node, &next, &all);
    }
    region->variable = all.variable;
    return decision == MATH_EQUAL ? region_add_all(region, &all) : decision;
}

static enum math_decision read_list(struct comparison *comparison, const struct math_node *node, struct region *region)
{
    if (node->flags & MATH_BY_OR)
        return read_alternatives(comparison, node, region);
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != MATH_RELATION)
            return MATH_DIFFERENT;
    return read_intersection(comparison, node, region);
}

static enum math_decision (*const readers[MATH_KINDS])(struct comparison *comparison, const struct math_node *node,
                                                       struct region *region) = {
    [MATH_TUPLE] = read_tuple,
    [MATH_SET] = read_points,
    [MATH_RELATION] = read_relation,
    [MATH_UNION] = read_union,
    [MATH_DIFFERENCE] = read_difference,
    [MATH_INTERSECTION] = read_intersection,
    [MATH_LIST] = read_list,
    [MATH_NUMBER_SET] = read_number_set,
    [MATH_SET_BUILDER] = read_builder,
};

static enum math_decision read_region(struct comparison *comparison, const struct math_node *node,
                                      struct region *region)
{
    return readers[node->kind] ? readers[node->kind](comparison, node, region) : MATH_DIFFERENT;
}

/* --- for compare.c --- */

static bool is_inequality(const struct math_node *node)
{
    return node->kind == MATH_RELATION && node->relations[0] != MATH_EQUALS &&
           node->relations[0] != MATH_APPROXIMATELY && node->relations[0] != MATH_CONGRUENT;
}

bool math_may_be_region(const struct math_node *node)
{
    if (node->kind == MATH_TUPLE)
        return node->count == 2;
    if (node->kind != MATH_LIST)
        return is_inequality(node) || (node->kind != MATH_SET && node->kind != MATH_RELATION && readers[node->kind]);
    for (size_t i = 0; i < node->count; i++)
        if (is_inequality(node->children[i]) ||
            ((node->flags & MATH_BY_OR) && node->children[i]->kind != MATH_RELATION &&
             readers[node->children[i]->kind]))
            return true;
    return false;
}

const struct math_node *math_region_variable(const struct math_node *node)
{
    if (node->kind == MATH_LIST)
        return math_region_variable(node->children[0]);
    if (node->kind != MATH_RELATION)
        return NULL;
    for (size_t i = 0; i < node->count && i < 2; i++) {
        const struct math_node *side = node->children[i];
        if (side->kind == MATH_NAME || is_absolute_name(side))
            return side->kind == MATH_NAME ? side : side->children[0];
    }
    return NULL;
}

enum math_decision math_same_regions(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer, bool *ret_read)
{
    struct region wanted = {.count = 0};
    struct region given = {.count = 0};
    enum math_decision left = read_region(comparison, reference, &wanted);
    enum math_decision right = left == MATH_DIFFERENT ? MATH_DIFFERENT : read_region(comparison, answer, &given);

    /* A reference x > 3 is not met by 2x + 4 > 10: that may be the question. */
    *ret_read = left != MATH_DIFFERENT &&
                (right != MATH_DIFFERENT || (reference->kind == MATH_RELATION && !math_is_collected(answer)));
    if (left != MATH_EQUAL || right != MATH_EQUAL)
        return math_both(left, right);
    if (wanted.variable && given.variable && !math_same_tree(wanted.variable, given.variable))
        return MATH_DIFFERENT;
    left = math_both(region_normalise(comparison, &wanted), region_normalise(comparison, &given));
    return left == MATH_EQUAL ? region_same(comparison, &wanted, &given) : left;
}
