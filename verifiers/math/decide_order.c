/* Order and tolerance of real constants. */
#include "verifiers/math/ball.h"
#include "verifiers/math/field.h"
#include "verifiers/math/infinity.h"
#include "verifiers/math/rational.h"

static const slong precisions[] = {64, 256, 1024, 3072};

/* --- order --- */

/* An infinity on one side or both. MATH_OTHERWISE: on none. */
static enum math_outcome order_infinities(const struct math_node *left, const struct math_node *right, int *ret_sign)
{
    int of_left = 0;
    int of_right = 0;
    enum math_outcome one = math_infinity(left, &of_left);
    enum math_outcome other = math_infinity(right, &of_right);

    if (one == MATH_OTHERWISE && other == MATH_OTHERWISE)
        return MATH_OTHERWISE;
    if (one > MATH_OTHERWISE || other > MATH_OTHERWISE)
        return MATH_NO_VALUE;
    of_left = one ? 0 : of_left;
    of_right = other ? 0 : of_right;
    *ret_sign = (of_left > of_right) - (of_left < of_right);
    return MATH_VALUE;
}

/* MATH_NO_VALUE: surely not real. */
static enum math_outcome real_part(struct math_decider *decider, const struct math_node *node, slong bits, acb_t value)
{
    bool real = false;
    enum math_outcome outcome = math_ball(decider, node, bits, value);

    if (outcome || acb_is_real(value))
        return outcome;
    if (!arb_contains_zero(acb_imagref(value)))
        return MATH_NO_VALUE;
    outcome = math_field_is_real(decider, node, &real);
    if (outcome)
        return outcome;
    arb_zero(acb_imagref(value));
    return real ? MATH_VALUE : MATH_NO_VALUE;
}

static enum math_outcome order_balls(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right, slong bits, int *ret_sign)
{
    MATH_LOCAL_ACB(one);
    MATH_LOCAL_ACB(other);
    enum math_outcome outcome = real_part(decider, left, bits, one);

    outcome = math_worse(outcome, real_part(decider, right, bits, other));
    if (outcome)
        return outcome;
    acb_sub(one, one, other, bits);
    if (arb_contains_zero(acb_realref(one)))
        return MATH_OTHERWISE;
    *ret_sign = arb_is_positive(acb_realref(one)) ? 1 : -1;
    return MATH_VALUE;
}

static enum math_decision order_by_precision(struct math_decider *decider, const struct math_node *left,
                                             const struct math_node *right, int *ret_sign)
{
    for (size_t i = 0; i < ARRAY_LENGTH(precisions); i++) {
        enum math_outcome outcome = order_balls(decider, left, right, precisions[i], ret_sign);
        if (outcome == MATH_NO_VALUE)
            return MATH_UNDEFINED;
        if (!outcome)
            return MATH_DIFFERENT;
        enum math_decision equal = i == 0 ? math_decide_equal(decider, left, right) : MATH_UNDECIDED;
        if (equal == MATH_EQUAL || equal == MATH_UNDEFINED)
            return equal;
    }
    return decider->exhausted ? MATH_LIMIT : MATH_UNDECIDED;
}

/* The other side may have names, but it must have a value. */
static enum math_decision order_beside_infinity(struct math_decider *decider, const struct math_node *left,
                                                const struct math_node *right, int sign)
{
    MATH_LOCAL_ACB(ball);

    if (!sign)
        return MATH_EQUAL;
    if (real_part(decider, math_has_infinity(left) ? right : left, precisions[0], ball) == MATH_NO_VALUE &&
        !(math_has_infinity(left) && math_has_infinity(right)))
        return MATH_UNDEFINED;
    return MATH_DIFFERENT;
}

enum math_decision math_decide_order(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right, int *ret_sign)
{
    MATH_LOCAL_FMPQ(one);
    MATH_LOCAL_FMPQ(other);

    *ret_sign = 0;
    enum math_outcome infinite = order_infinities(left, right, ret_sign);
    if (infinite == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!infinite)
        return order_beside_infinity(decider, left, right, *ret_sign);
    enum math_outcome outcome = math_rational(decider, left, one);
    outcome = math_worse(outcome, math_rational(decider, right, other));
    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (outcome)
        return order_by_precision(decider, left, right, ret_sign);
    *ret_sign = fmpq_cmp(one, other);
    *ret_sign = (*ret_sign > 0) - (*ret_sign < 0);
    return *ret_sign ? MATH_DIFFERENT : MATH_EQUAL;
}

/* --- tolerance --- */

static bool within_exactly(const fmpq_t reference, const fmpq_t answer, const fmpq_t relative, const fmpq_t absolute)
{
    MATH_LOCAL_FMPQ(distance);
    MATH_LOCAL_FMPQ(allowed);

    fmpq_sub(distance, reference, answer);
    fmpq_abs(distance, distance);
    fmpq_mul(allowed, reference, relative);
    fmpq_abs(allowed, allowed);
    return fmpq_cmp(distance, fmpq_cmp(allowed, absolute) < 0 ? absolute : allowed) <= 0;
}

/* MATH_VALUE: *ret_within. Complex numbers too: by the distance. */
static enum math_outcome within_balls(const acb_t reference, const acb_t answer, const fmpq_t relative,
                                      const fmpq_t absolute, slong bits, bool *ret_within)
{
    MATH_LOCAL_ACB(difference);
    MATH_LOCAL_ARB(distance);
    MATH_LOCAL_ARB(allowed);
    MATH_LOCAL_ARB(fixed);

    acb_sub(difference, reference, answer, bits);
    acb_abs(distance, difference, bits);
    acb_abs(allowed, reference, bits);
    arb_set_fmpq(fixed, relative, bits);
    arb_mul(allowed, allowed, fixed, bits);
    arb_set_fmpq(fixed, absolute, bits);
    arb_max(allowed, allowed, fixed, bits);
    *ret_within = arb_le(distance, allowed);
    return *ret_within || arb_gt(distance, allowed) ? MATH_VALUE : MATH_OTHERWISE;
}

static enum math_outcome within_at(struct math_decider *decider, const struct math_node *const sides[2],
                                   const fmpq *const tolerances[2], slong bits, bool *ret_within)
{
    MATH_LOCAL_ACB(one);
    MATH_LOCAL_ACB(other);
    enum math_outcome outcome = math_ball(decider, sides[0], bits, one);

    outcome = math_worse(outcome, math_ball(decider, sides[1], bits, other));
    return outcome ? outcome : within_balls(one, other, tolerances[0], tolerances[1], bits, ret_within);
}

enum math_decision math_decide_within(struct math_decider *decider, const struct math_node *left,
                                      const struct math_node *right, const fmpq_t relative, const fmpq_t absolute)
{
    MATH_LOCAL_FMPQ(one);
    MATH_LOCAL_FMPQ(other);
    bool within = false;
    enum math_outcome outcome = math_rational(decider, left, one);

    outcome = math_worse(outcome, math_rational(decider, right, other));
    decider->method = "rational";
    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!outcome)
        return within_exactly(one, other, relative, absolute) ? MATH_EQUAL : MATH_DIFFERENT;
    decider->method = "ball";
    for (size_t i = 0; i < ARRAY_LENGTH(precisions); i++) {
        outcome = within_at(decider, (const struct math_node *[]){left, right}, (const fmpq *[]){relative, absolute},
                            precisions[i], &within);
        if (outcome == MATH_NO_VALUE)
            return MATH_UNDEFINED;
        if (!outcome)
            return within ? MATH_EQUAL : MATH_DIFFERENT;
    }
    /* Values with names, or on the boundary: equal is within, whatever the tolerance. */
    enum math_decision equal = math_decide_equal(decider, left, right);
    return equal == MATH_DIFFERENT && !math_has_names(left) && !math_has_names(right) ? MATH_UNDECIDED : equal;
}
