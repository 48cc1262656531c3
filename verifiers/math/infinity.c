#include "verifiers/math/infinity.h"

#include "verifiers/math/ball.h"

#define BITS 128

bool math_has_infinity(const struct math_node *node)
{
    if (node->kind == MATH_CONSTANT)
        return node->constant == MATH_INFINITY;
    if (node->kind == MATH_OPERATOR)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (math_has_infinity(node->children[i]))
            return true;
    return false;
}

/* Of something finite that is real and certainly not 0; else MATH_NO_VALUE. */
static enum math_outcome finite_sign(struct math_decider *decider, const struct math_node *node, int *ret_sign)
{
    MATH_LOCAL_ACB(ball);
    enum math_outcome outcome = math_ball(decider, node, BITS, ball);

    if (outcome || !acb_is_real(ball) || arb_contains_zero(acb_realref(ball)))
        return MATH_NO_VALUE;
    *ret_sign = arb_is_positive(acb_realref(ball)) ? 1 : -1;
    return MATH_VALUE;
}

/* Finite terms must be real numbers; infinite ones must have one sign. */
static enum math_outcome add(struct math_decider *decider, const struct math_node *node, int *ret_sign)
{
    MATH_LOCAL_ACB(ball);
    int sign = 0;

    *ret_sign = 0;
    for (size_t i = 0; i < node->count; i++) {
        enum math_outcome outcome = math_infinity(decider, node->children[i], &sign);
        if (outcome == MATH_OTHERWISE)
            outcome = math_ball(decider, node->children[i], BITS, ball) || !acb_is_real(ball) ? MATH_NO_VALUE
                                                                                              : (sign = 0, MATH_VALUE);
        if (outcome || (*ret_sign && sign && sign != *ret_sign))
            return MATH_NO_VALUE;
        *ret_sign = sign ? sign : *ret_sign;
    }
    return MATH_VALUE;
}

static enum math_outcome multiply(struct math_decider *decider, const struct math_node *node, int *ret_sign)
{
    int sign;

    *ret_sign = 1;
    for (size_t i = 0; i < node->count; i++) {
        enum math_outcome outcome = math_infinity(decider, node->children[i], &sign);
        if (outcome == MATH_OTHERWISE)
            outcome = finite_sign(decider, node->children[i], &sign);
        if (outcome)
            return MATH_NO_VALUE;
        *ret_sign *= sign;
    }
    return MATH_VALUE;
}

static enum math_outcome divide(struct math_decider *decider, const struct math_node *node, int *ret_sign)
{
    int below;

    if (math_has_infinity(node->children[1]) || math_infinity(decider, node->children[0], ret_sign) != MATH_VALUE ||
        finite_sign(decider, node->children[1], &below) != MATH_VALUE)
        return MATH_NO_VALUE;
    *ret_sign *= below;
    return MATH_VALUE;
}

enum math_outcome math_infinity(struct math_decider *decider, const struct math_node *node, int *ret_sign)
{
    if (!math_spend(decider, 10 + (int64_t)node->count))
        return MATH_TOO_LARGE_VALUE;
    if (!math_has_infinity(node))
        return MATH_OTHERWISE;
    switch ((int)node->kind) {
    case MATH_CONSTANT:
        *ret_sign = 1;
        return MATH_VALUE;
    case MATH_NEGATE: {
        enum math_outcome outcome = math_infinity(decider, node->children[0], ret_sign);
        *ret_sign = -*ret_sign;
        return outcome;
    }
    case MATH_SUM:
        return add(decider, node, ret_sign);
    case MATH_PRODUCT:
        return multiply(decider, node, ret_sign);
    case MATH_QUOTIENT:
        return divide(decider, node, ret_sign);
    default:
        return MATH_NO_VALUE;
    }
}
