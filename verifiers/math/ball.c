#include "verifiers/math/ball.h"

#include "verifiers/math/ball_functions.h"
#include "verifiers/math/rational.h"

static int64_t cost(slong bits)
{
    return 100 + 2 * bits;
}

static enum math_outcome bounded(const acb_t value)
{
    return acb_is_finite(value) ? MATH_VALUE : MATH_OTHERWISE;
}

/* --- literals --- */

static enum math_outcome rational_ball(struct math_decider *decider, const struct math_node *node, slong bits,
                                       acb_t ret_value)
{
    MATH_LOCAL_FMPQ(value);
    enum math_outcome outcome = math_rational(decider, node, value);

    if (outcome == MATH_NO_VALUE)
        return outcome;
    acb_set_fmpq(ret_value, value, bits);
    return outcome ? MATH_OTHERWISE : MATH_VALUE;
}

static enum math_outcome number(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    (void)decider;
    acb_set_fmpq(ret_value, node->value, bits);
    return MATH_VALUE;
}

static enum math_outcome name(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    const fmpq *value = math_bound_value(decider, node->text);

    if (!value)
        return MATH_OTHERWISE;
    acb_set_fmpq(ret_value, value, bits);
    return MATH_VALUE;
}

static enum math_outcome constant(struct math_decider *decider, const struct math_node *node, slong bits,
                                  acb_t ret_value)
{
    (void)decider;
    acb_zero(ret_value);
    if (node->constant == MATH_PI)
        arb_const_pi(acb_realref(ret_value), bits);
    else if (node->constant == MATH_E)
        arb_const_e(acb_realref(ret_value), bits);
    else if (node->constant == MATH_I)
        acb_onei(ret_value);
    else
        return MATH_OTHERWISE;
    return MATH_VALUE;
}

/* --- arithmetic --- */

typedef void (*operation)(acb_t, const acb_t, const acb_t, slong);

static enum math_outcome fold(struct math_decider *decider, const struct math_node *node, operation run, slong bits,
                              acb_t ret_value)
{
    MATH_LOCAL_ACB(other);
    enum math_outcome worst = math_ball(decider, node->children[0], bits, ret_value);

    for (size_t i = 1; i < node->count && worst < MATH_NO_VALUE; i++) {
        worst = math_worse(worst, math_ball(decider, node->children[i], bits, other));
        if (!worst)
            run(ret_value, ret_value, other, bits);
    }
    return worst;
}

static enum math_outcome sum(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    return fold(decider, node, acb_add, bits, ret_value);
}

static enum math_outcome product(struct math_decider *decider, const struct math_node *node, slong bits,
                                 acb_t ret_value)
{
    return fold(decider, node, acb_mul, bits, ret_value);
}

static enum math_outcome negate(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    enum math_outcome outcome = math_ball(decider, node->children[0], bits, ret_value);

    acb_neg(ret_value, ret_value);
    return outcome;
}

enum math_outcome math_ball_is_zero(struct math_decider *decider, const struct math_node *node, const acb_t value)
{
    MATH_LOCAL_FMPQ(exact);

    if (!acb_contains_zero(value))
        return MATH_OTHERWISE;
    if (acb_is_zero(value))
        return MATH_NO_VALUE;
    return math_rational(decider, node, exact) == MATH_VALUE && fmpq_is_zero(exact) ? MATH_NO_VALUE : MATH_OTHERWISE;
}

static enum math_outcome quotient(struct math_decider *decider, const struct math_node *node, slong bits,
                                  acb_t ret_value)
{
    MATH_LOCAL_ACB(denominator);
    enum math_outcome outcome = math_ball(decider, node->children[0], bits, ret_value);
    enum math_outcome below = math_ball(decider, node->children[1], bits, denominator);

    if (!below && math_ball_is_zero(decider, node->children[1], denominator) == MATH_NO_VALUE)
        return MATH_NO_VALUE;
    outcome = math_worse(outcome, below);
    if (!outcome)
        acb_div(ret_value, ret_value, denominator, bits);
    return outcome;
}

/* --- powers --- */

/* A real base below 0: the real root. */
static enum math_outcome odd_root_power(const acb_t base, const fmpq_t exponent, slong bits, acb_t ret_value)
{
    MATH_LOCAL_ARB(positive);

    arb_neg(positive, acb_realref(base));
    arb_pow_fmpq(positive, positive, exponent, bits);
    if (fmpz_is_odd(fmpq_numref(exponent)))
        arb_neg(positive, positive);
    acb_set_arb(ret_value, positive);
    return bounded(ret_value);
}

static enum math_outcome principal_power(const acb_t base, const fmpq_t exponent, slong bits, acb_t ret_value)
{
    MATH_LOCAL_ARB(ball);

    if (fmpz_equal_ui(fmpq_denref(exponent), 2)) {
        acb_sqrt(ret_value, base, bits); /* keeps a part that is exactly 0 */
        acb_pow_fmpz(ret_value, ret_value, fmpq_numref(exponent), bits);
        return bounded(ret_value);
    }
    arb_set_fmpq(ball, exponent, bits);
    acb_pow_arb(ret_value, base, ball, bits);
    return bounded(ret_value);
}

static enum math_outcome broken_power(const acb_t base, const fmpq_t exponent, slong bits, acb_t ret_value)
{
    bool odd = fmpz_is_odd(fmpq_denref(exponent));

    if (acb_is_zero(base)) {
        acb_zero(ret_value);
        return fmpq_sgn(exponent) > 0 ? MATH_VALUE : MATH_NO_VALUE;
    }
    if (acb_is_real(base) && arb_is_positive(acb_realref(base))) {
        arb_pow_fmpq(acb_realref(ret_value), acb_realref(base), exponent, bits);
        arb_zero(acb_imagref(ret_value));
        return bounded(ret_value);
    }
    if (odd && acb_is_real(base) && arb_is_negative(acb_realref(base)))
        return odd_root_power(base, exponent, bits, ret_value);
    /* Perhaps real and negative: then the real root is meant, else the principal one. */
    if (odd && arb_contains_zero(acb_imagref(base)) && !arb_is_positive(acb_realref(base)))
        return MATH_OTHERWISE;
    return principal_power(base, exponent, bits, ret_value);
}

static enum math_outcome rational_power(const acb_t base, const fmpq_t exponent, slong bits, acb_t ret_value)
{
    if (fmpz_bits(fmpq_numref(exponent)) > 62 && fmpz_is_one(fmpq_denref(exponent)))
        return MATH_OTHERWISE;
    if (fmpz_bits(fmpq_numref(exponent)) > 1024 || fmpz_bits(fmpq_denref(exponent)) > 1024)
        return MATH_OTHERWISE;
    if (!fmpz_is_one(fmpq_denref(exponent)))
        return broken_power(base, exponent, bits, ret_value);
    if (acb_is_zero(base) && fmpq_sgn(exponent) <= 0)
        return MATH_NO_VALUE;
    if (fmpq_is_zero(exponent) && acb_contains_zero(base))
        return MATH_OTHERWISE;
    acb_pow_fmpz(ret_value, base, fmpq_numref(exponent), bits);
    return bounded(ret_value);
}

static enum math_outcome general_power(struct math_decider *decider, const struct math_node *node, slong bits,
                                       acb_t ret_value)
{
    MATH_LOCAL_ACB(exponent);
    const struct math_node *base = node->children[0];
    enum math_outcome outcome = math_ball(decider, node->children[1], bits, exponent);

    if (base->kind == MATH_CONSTANT && base->constant == MATH_E) {
        if (!outcome)
            acb_exp(ret_value, exponent, bits);
        return outcome;
    }
    outcome = math_worse(outcome, math_ball(decider, base, bits, ret_value));
    if (outcome)
        return outcome;
    if (acb_is_zero(ret_value))
        return arb_is_positive(acb_realref(exponent)) ? MATH_VALUE : MATH_OTHERWISE;
    if (acb_contains_zero(ret_value))
        return MATH_OTHERWISE;
    acb_pow(ret_value, ret_value, exponent, bits);
    return MATH_VALUE;
}

static enum math_outcome power(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    MATH_LOCAL_FMPQ(exponent);
    enum math_outcome outcome = math_rational(decider, node->children[1], exponent);

    if (outcome == MATH_NO_VALUE || !math_spend(decider, 8 * cost(bits)))
        return outcome ? outcome : MATH_TOO_LARGE_VALUE;
    if (outcome || (node->children[0]->kind == MATH_CONSTANT && node->children[0]->constant == MATH_E))
        return general_power(decider, node, bits, ret_value);
    outcome = math_ball(decider, node->children[0], bits, ret_value);
    return outcome ? outcome : rational_power(ret_value, exponent, bits, ret_value);
}

static enum math_outcome root(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    MATH_LOCAL_FMPQ(degree);
    enum math_outcome outcome = math_rational(decider, node->children[1], degree);

    if (outcome)
        return outcome;
    if (fmpq_is_zero(degree))
        return MATH_NO_VALUE;
    if (!math_spend(decider, 8 * cost(bits)))
        return MATH_TOO_LARGE_VALUE;
    fmpq_inv(degree, degree);
    outcome = math_ball(decider, node->children[0], bits, ret_value);
    return outcome ? outcome : rational_power(ret_value, degree, bits, ret_value);
}

/* --- the rest --- */

/* Beyond the bounds of exact factorials: n! as a ball. */
static enum math_outcome factorial(struct math_decider *decider, const struct math_node *node, slong bits,
                                   acb_t ret_value)
{
    MATH_LOCAL_FMPQ(exact);
    enum math_outcome outcome = rational_ball(decider, node, bits, ret_value);

    if (outcome != MATH_OTHERWISE || (node->flags & MATH_DOUBLED))
        return outcome;
    outcome = math_rational(decider, node->children[0], exact);
    if (outcome || !fmpz_is_one(fmpq_denref(exact)) || fmpq_sgn(exact) < 0 || fmpz_bits(fmpq_numref(exact)) > 40)
        return outcome ? outcome : MATH_OTHERWISE;
    if (!math_spend(decider, 100 * cost(bits)))
        return MATH_TOO_LARGE_VALUE;
    arb_fac_ui(acb_realref(ret_value), fmpz_get_ui(fmpq_numref(exact)), bits);
    arb_zero(acb_imagref(ret_value));
    return MATH_VALUE;
}

static enum math_outcome rounded(struct math_decider *decider, const struct math_node *node, slong bits,
                                 acb_t ret_value)
{
    enum math_outcome outcome = rational_ball(decider, node, bits, ret_value);

    if (outcome != MATH_OTHERWISE)
        return outcome;
    outcome = math_ball(decider, node->children[0], bits, ret_value);
    if (outcome)
        return outcome;
    if (node->kind == MATH_ABSOLUTE) {
        acb_abs(acb_realref(ret_value), ret_value, bits);
        arb_zero(acb_imagref(ret_value));
        return MATH_VALUE;
    }
    if (!acb_is_real(ret_value))
        return MATH_OTHERWISE;
    (node->kind == MATH_FLOOR ? arb_floor : arb_ceil)(acb_realref(ret_value), acb_realref(ret_value), bits);
    return MATH_VALUE;
}

static enum math_outcome scaled(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    MATH_LOCAL_ARB(pi);
    enum math_outcome outcome = math_ball(decider, node->children[0], bits, ret_value);

    if (outcome)
        return outcome;
    if (node->kind == MATH_PERCENT) {
        acb_div_ui(ret_value, ret_value, 100, bits);
    } else if (decider->degrees_are_angles) {
        arb_const_pi(pi, bits);
        acb_mul_arb(ret_value, ret_value, pi, bits);
        acb_div_ui(ret_value, ret_value, 180, bits);
    }
    return MATH_VALUE;
}

static enum math_outcome add_terms(struct math_decider *decider, const struct math_range *range, fmpq_t index,
                                   slong bits, acb_t ret_value)
{
    MATH_LOCAL_ACB(term);
    enum math_outcome outcome = MATH_VALUE;

    acb_set_si(ret_value, range->product);
    for (slong i = range->from; i <= range->to && !outcome; i++) {
        fmpq_set_si(index, i, 1);
        outcome = math_ball(decider, range->body, bits, term);
        if (!outcome)
            (range->product ? acb_mul : acb_add)(ret_value, ret_value, term, bits);
    }
    return outcome;
}

static enum math_outcome range_ball(struct math_decider *decider, const struct math_node *node, slong bits,
                                    acb_t ret_value)
{
    struct math_range range;
    MATH_LOCAL_FMPQ(index);
    enum math_outcome outcome = math_range_of(decider, node, &range);

    if (outcome)
        return outcome;
    struct math_binding binding = {range.index, index, decider->bindings};
    decider->bindings = &binding;
    outcome = add_terms(decider, &range, index, bits, ret_value);
    decider->bindings = binding.outer;
    return outcome;
}

static enum math_outcome (*const by_kind[MATH_KINDS])(struct math_decider *, const struct math_node *, slong, acb_t) = {
    [MATH_NUMBER] = number,
    [MATH_BASED] = number,
    [MATH_MIXED] = sum,
    [MATH_CONSTANT] = constant,
    [MATH_NAME] = name,
    [MATH_SUM] = sum,
    [MATH_PRODUCT] = product,
    [MATH_QUOTIENT] = quotient,
    [MATH_NEGATE] = negate,
    [MATH_POWER] = power,
    [MATH_ROOT] = root,
    [MATH_FACTORIAL] = factorial,
    [MATH_BINOMIAL] = rational_ball,
    [MATH_ABSOLUTE] = rounded,
    [MATH_FLOOR] = rounded,
    [MATH_CEILING] = rounded,
    [MATH_DEGREES] = scaled,
    [MATH_PERCENT] = scaled,
    [MATH_FUNCTION] = math_ball_function,
    [MATH_OPERATOR] = range_ball,
};

enum math_outcome math_ball(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value)
{
    if (!by_kind[node->kind])
        return MATH_OTHERWISE;
    if (!math_spend(decider, cost(bits)))
        return MATH_TOO_LARGE_VALUE;
    enum math_outcome outcome = by_kind[node->kind](decider, node, bits, ret_value);
    if (!outcome && decider->real_only && !acb_is_real(ret_value))
        return MATH_OTHERWISE;
    return outcome ? outcome : bounded(ret_value);
}
