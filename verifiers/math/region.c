#include "verifiers/math/region.h"

enum math_decision region_add(struct region *region, struct piece piece)
{
    if (region->count == PIECES_MAX)
        return MATH_LIMIT;
    region->symbolic |= (piece.low && math_has_names(piece.low)) || (piece.high && math_has_names(piece.high));
    region->piece[region->count++] = piece;
    return MATH_EQUAL;
}

enum math_decision region_add_all(struct region *region, const struct region *other)
{
    enum math_decision decision = MATH_EQUAL;

    for (size_t i = 0; i < other->count && decision == MATH_EQUAL; i++)
        decision = region_add(region, other->piece[i]);
    return decision;
}

enum math_decision region_check_order(struct comparison *comparison, const struct piece *piece)
{
    enum math_decision decision;
    int sign = 0;

    if (!piece->low || !piece->high || math_has_names(piece->low) || math_has_names(piece->high))
        return MATH_EQUAL;
    decision = math_decide_order(comparison->decider, piece->low, piece->high, &sign);
    if (decision != MATH_EQUAL && decision != MATH_DIFFERENT)
        return decision;
    return math_say(sign < 0 || (sign == 0 && piece->low_closed && piece->high_closed));
}

/* --- one form --- */

/* -1, 0, 1 for the place of two ends; NULL is infinite in the direction of `outward`. */
static enum math_decision order_ends(struct comparison *comparison, const struct math_node *left,
                                     const struct math_node *right, int outward, int *ret_sign)
{
    enum math_decision decision;

    *ret_sign = (left ? 0 : outward) - (right ? 0 : outward);
    if (!left || !right)
        return MATH_EQUAL;
    decision = math_decide_order(comparison->decider, left, right, ret_sign);
    return decision == MATH_DIFFERENT ? MATH_EQUAL : decision;
}

/* Does the left piece begin before the right one? sign < 0 */
static enum math_decision order_pieces(struct comparison *comparison, const struct piece *left,
                                       const struct piece *right, int *ret_sign)
{
    enum math_decision decision = order_ends(comparison, left->low, right->low, -1, ret_sign);

    if (decision == MATH_EQUAL && *ret_sign == 0)
        *ret_sign = right->low_closed - left->low_closed;
    return decision;
}

static enum math_decision sort_pieces(struct comparison *comparison, struct region *region)
{
    for (size_t i = 1; i < region->count; i++) {
        for (size_t k = i; k; k--) {
            struct piece moved = region->piece[k];
            int sign = 0;
            enum math_decision decision = order_pieces(comparison, &region->piece[k - 1], &moved, &sign);
            if (decision != MATH_EQUAL)
                return decision;
            if (sign <= 0)
                break;
            region->piece[k] = region->piece[k - 1];
            region->piece[k - 1] = moved;
        }
    }
    return MATH_EQUAL;
}

/* Joins `next` to the last piece of the result, if nothing lies between them. */
static enum math_decision join_piece(struct comparison *comparison, struct region *joined, const struct piece *next)
{
    struct piece *last = &joined->piece[joined->count - 1];
    enum math_decision decision;
    int sign = 0;

    if (!last->high)
        return MATH_EQUAL;
    decision = next->low ? math_decide_order(comparison->decider, next->low, last->high, &sign) : MATH_EQUAL;
    if (decision != MATH_EQUAL && decision != MATH_DIFFERENT)
        return decision;
    if (next->low && (sign > 0 || (sign == 0 && !next->low_closed && !last->high_closed))) {
        joined->piece[joined->count++] = *next;
        return MATH_EQUAL;
    }
    decision = order_ends(comparison, next->high, last->high, 1, &sign);
    if (decision != MATH_EQUAL)
        return decision;
    if (sign > 0) {
        last->high = next->high;
        last->high_closed = next->high_closed;
    } else if (sign == 0) {
        last->high_closed |= next->high_closed;
    }
    return MATH_EQUAL;
}

enum math_decision region_normalise(struct comparison *comparison, struct region *region)
{
    enum math_decision decision = MATH_EQUAL;
    size_t count = region->count;

    if (region->symbolic || count < 2)
        return MATH_EQUAL;
    decision = sort_pieces(comparison, region);
    region->count = 1;
    for (size_t i = 1; i < count && decision == MATH_EQUAL; i++) {
        struct piece next = region->piece[i];
        decision = join_piece(comparison, region, &next);
    }
    return decision;
}

/* --- what two regions have, what one has not --- */

/* Intersection of two pieces, if there is one. */
static enum math_decision cut_pieces(struct comparison *comparison, const struct piece *left, const struct piece *right,
                                     struct region *region)
{
    struct piece cut = *left;
    enum math_decision decision;
    int low = 0;
    int high = 0;

    decision = math_both(order_ends(comparison, left->low, right->low, -1, &low),
                         order_ends(comparison, left->high, right->high, 1, &high));
    if (decision != MATH_EQUAL)
        return decision;
    if (low < 0)
        cut.low = right->low;
    cut.low_closed = low < 0 ? right->low_closed : low > 0 ? left->low_closed : left->low_closed && right->low_closed;
    if (high > 0)
        cut.high = right->high;
    cut.high_closed = high > 0   ? right->high_closed
                      : high < 0 ? left->high_closed
                                 : left->high_closed && right->high_closed;
    decision = region_check_order(comparison, &cut);
    if (decision == MATH_EQUAL)
        return region_add(region, cut);
    return decision == MATH_DIFFERENT ? MATH_EQUAL : decision;
}

enum math_decision region_intersect(struct comparison *comparison, struct region *region, const struct region *other)
{
    struct region result = {.variable = region->variable ? region->variable : other->variable};
    enum math_decision decision = MATH_EQUAL;

    if (region->symbolic || other->symbolic ||
        (region->variable && other->variable && !math_same_tree(region->variable, other->variable)))
        return MATH_DIFFERENT;
    for (size_t i = 0; i < region->count; i++)
        for (size_t k = 0; k < other->count && decision == MATH_EQUAL; k++)
            decision = cut_pieces(comparison, &region->piece[i], &other->piece[k], &result);
    *region = result;
    return decision;
}

/* The gaps between pieces in order. */
enum math_decision region_complement(struct comparison *comparison, struct region *region)
{
    struct region gaps = {.variable = region->variable};
    struct piece gap = {NULL, NULL, false, false};
    enum math_decision decision = region->symbolic ? MATH_DIFFERENT : region_normalise(comparison, region);
    bool open = true;

    for (size_t i = 0; i < region->count && decision == MATH_EQUAL; i++) {
        gap.high = region->piece[i].low;
        gap.high_closed = gap.high && !region->piece[i].low_closed;
        if (gap.high)
            decision = region_add(&gaps, gap);
        gap.low = region->piece[i].high;
        gap.low_closed = gap.low && !region->piece[i].high_closed;
        open = gap.low != NULL;
    }
    gap.high = NULL;
    gap.high_closed = false;
    if (open && decision == MATH_EQUAL)
        decision = region_add(&gaps, gap);
    *region = gaps;
    return decision;
}

/* --- comparing --- */

static enum math_decision same_end(struct comparison *comparison, const struct math_node *reference,
                                   const struct math_node *answer)
{
    if (!reference || !answer)
        return math_say(reference == answer);
    return math_same_scalars(comparison, reference, answer);
}

static enum math_decision same_piece(struct comparison *comparison, const struct piece *reference,
                                     const struct piece *answer)
{
    if (reference->low_closed != answer->low_closed || reference->high_closed != answer->high_closed)
        return MATH_DIFFERENT;
    return math_both(same_end(comparison, reference->low, answer->low),
                     same_end(comparison, reference->high, answer->high));
}

enum math_decision region_same(struct comparison *comparison, const struct region *reference,
                               const struct region *answer)
{
    bool anywhere = reference->symbolic || answer->symbolic;
    enum math_decision decision = math_say(reference->count == answer->count);

    for (size_t i = 0; i < reference->count && decision != MATH_DIFFERENT; i++) {
        enum math_decision one = MATH_DIFFERENT;
        for (size_t k = anywhere ? 0 : i; k < (anywhere ? answer->count : i + 1) && one != MATH_EQUAL; k++)
            one = math_either(one, same_piece(comparison, &reference->piece[i], &answer->piece[k]));
        decision = math_both(decision, one);
    }
    return decision;
}
