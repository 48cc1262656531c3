/* Finite sums and products: \sum_{k=1}^{10} k^2. */
#include "verifiers/math/rational.h"

static bool is_range(const struct math_node *node)
{
    return node->kind == MATH_OPERATOR && (text_equals(node->text, "sum") || text_equals(node->text, "prod")) &&
           node->count == 3 && node->children[0]->kind == MATH_RELATION && node->children[0]->count == 2 &&
           node->children[0]->relations[0] == MATH_EQUALS && node->children[0]->children[0]->kind == MATH_NAME &&
           node->children[1]->kind != MATH_NOTHING && node->children[2]->kind != MATH_NOTHING;
}

static enum math_outcome integer_end(struct math_decider *decider, const struct math_node *node, slong *ret_value)
{
    MATH_LOCAL_FMPQ(value);

    enum math_outcome outcome = math_rational(decider, node, value);
    if (outcome)
        return outcome;
    if (!fmpz_is_one(fmpq_denref(value)))
        return MATH_OTHERWISE;
    if (fmpz_bits(fmpq_numref(value)) > 40)
        return MATH_TOO_LARGE_VALUE;
    *ret_value = fmpz_get_si(fmpq_numref(value));
    return MATH_VALUE;
}

enum math_outcome math_range_of(struct math_decider *decider, const struct math_node *node,
                                struct math_range *ret_range)
{
    if (!is_range(node))
        return MATH_OTHERWISE;
    enum math_outcome outcome = integer_end(decider, node->children[0]->children[1], &ret_range->from);
    if (!outcome)
        outcome = integer_end(decider, node->children[1], &ret_range->to);
    if (outcome)
        return outcome;
    ret_range->index = node->children[0]->children[0]->text;
    ret_range->product = text_equals(node->text, "prod");
    ret_range->body = node->children[2];
    return ret_range->to - ret_range->from >= MATH_RANGE_TERMS ? MATH_TOO_LARGE_VALUE : MATH_VALUE;
}
