/* Functions in forms: arcs by the table or as generators, the rest by exponentials and logarithms. */
#include "verifiers/math/angle.h"
#include "verifiers/math/ball.h"
#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

#include <math.h>

/* --- arcs --- */

/* The multiple of pi/120 that a real constant's arc is close to, if it is close to one at all. */
static bool nearest_step(struct math_form *form, const struct math_node *node, bool tangent, fmpq_t ret_multiple)
{
    MATH_LOCAL_ACB(ball);
    MATH_LOCAL_ARB(pi);

    if (math_ball(form->decider, node, 64, ball) || !acb_is_real(ball))
        return false;
    (tangent ? acb_atan : acb_asin)(ball, ball, 64);
    arb_const_pi(pi, 64);
    arb_div(acb_realref(ball), acb_realref(ball), pi, 64);
    double steps = 120 * arf_get_d(arb_midref(acb_realref(ball)), ARF_RND_NEAR);
    if (!(fabs(steps) < 61 && fabs(steps - round(steps)) < 1e-6))
        return false;
    fmpq_set_si(ret_multiple, (int)round(steps), 120);
    return !tangent || (steps > -59.5 && steps < 59.5);
}

/* MATH_VALUE: the argument is the sine (tangent) of multiple · pi, so that is its arc. */
static enum math_outcome confirm_arc(struct math_form *form, const struct math_fraction *argument, bool tangent,
                                     const fmpq_t multiple, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(expected, &form->ring);
    MATH_LOCAL_FRACTION(cosine, &form->ring);
    MATH_LOCAL_FMPQ(shifted);
    bool equal = false;
    struct math_node *exact = math_exact_sine(form->decider, multiple);

    if (!exact)
        return MATH_OTHERWISE;
    enum math_outcome outcome = math_form_value(form, exact, &expected);
    if (!outcome && tangent) {
        fmpq_add(shifted, multiple, (const fmpq[]){{1, 2}});
        exact = math_exact_sine(form->decider, shifted);
        outcome = exact ? math_form_value(form, exact, &cosine) : MATH_OTHERWISE;
        if (!outcome)
            outcome = math_form_divide(form, &expected, &cosine);
    }
    if (!outcome)
        outcome = math_form_equal(form, argument, &expected, &equal);
    if (outcome || !equal)
        return outcome ? outcome : MATH_OTHERWISE;
    outcome = math_form_pi(form, ret_value);
    return outcome ? outcome : math_form_scale(form, ret_value, multiple);
}

static enum math_outcome arc_generator(struct math_form *form, enum math_function function,
                                       struct math_fraction *argument, struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_FUNCTION,
                               .function = function,
                               .has_fractions = true,
                               .real = function == MATH_ATAN && math_form_is_real(form, argument)};
    MATH_LOCAL_FRACTION(zero, &form->ring);
    bool negative = fmpz_sgn(argument->above->coeffs) < 0;

    if (negative)
        math_fraction_negate(argument);
    wanted.argument = *argument;
    wanted.exponent = zero;
    enum math_outcome outcome = math_form_generator(form, &wanted, ret_value);
    if (!outcome && negative)
        math_fraction_negate(ret_value);
    return outcome;
}

/* asin or atan of the node's value or, inverted, of its reciprocal. */
static enum math_outcome arc(struct math_form *form, const struct math_node *node, bool tangent, bool inverted,
                             struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(argument, &form->ring);
    MATH_LOCAL_FRACTION(one, &form->ring);
    MATH_LOCAL_FMPQ(multiple);
    enum math_outcome outcome = math_form_value(form, node, &argument);

    if (!outcome && inverted) {
        fmpz_mpoly_one(one.above, form->ring.context);
        outcome = math_form_divide(form, &one, &argument);
        math_fraction_set(&argument, &one);
    }
    if (outcome)
        return outcome;
    if (fmpz_mpoly_is_zero(argument.above, form->ring.context)) {
        math_fraction_set(ret_value, &argument);
        return MATH_VALUE;
    }
    if (!inverted && nearest_step(form, node, tangent, multiple)) {
        outcome = confirm_arc(form, &argument, tangent, multiple, ret_value);
        if (outcome != MATH_OTHERWISE)
            return outcome;
    }
    return arc_generator(form, tangent ? MATH_ATAN : MATH_ASIN, &argument, ret_value);
}

/* acos = pi/2 - asin; acot of what is positive, of the reciprocal. */
static enum math_outcome inverse_trigonometric(struct math_form *form, const struct math_node *node,
                                               struct math_fraction *ret_value)
{
    const struct math_node *argument = node->children[0];
    enum math_function function = node->function;
    bool tangent = function == MATH_ATAN || function == MATH_ACOT;
    bool inverted = function == MATH_ASEC || function == MATH_ACSC || function == MATH_ACOT;
    bool complement = function == MATH_ACOS || function == MATH_ASEC;
    MATH_LOCAL_FRACTION(right, &form->ring);
    MATH_LOCAL_ACB(ball);

    if (function == MATH_ACOT) {
        if (math_ball(form->decider, argument, 64, ball) || !acb_is_real(ball) || !arb_is_positive(acb_realref(ball)))
            return MATH_OTHERWISE;
        complement = true; /* acot x = pi/2 - atan x, for x above 0 by everybody's convention */
        inverted = false;
    }
    enum math_outcome outcome = arc(form, argument, tangent, inverted, ret_value);
    if (outcome || !complement)
        return outcome;
    outcome = math_form_pi(form, &right);
    if (!outcome)
        outcome = math_form_scale_si(form, &right, 1, 2);
    math_fraction_negate(ret_value);
    return outcome ? outcome : math_fraction_add(ret_value, &right);
}

/* --- hyperbolic functions --- */

static enum math_outcome hyperbolic(struct math_form *form, const struct math_node *node,
                                    struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(minus, &form->ring);
    MATH_LOCAL_FRACTION(sum, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    math_fraction_set(&minus, ret_value);
    math_fraction_negate(&minus);
    if (!outcome)
        outcome = math_form_exponential(form, ret_value);
    if (!outcome)
        outcome = math_form_exponential(form, &minus);
    math_fraction_set(&sum, ret_value);
    if (!outcome)
        outcome = math_fraction_add(&sum, &minus);
    math_fraction_negate(&minus);
    if (!outcome)
        outcome = math_fraction_add(ret_value, &minus);
    if (outcome)
        return outcome;
    if (node->function == MATH_TANH)
        return math_form_divide(form, ret_value, &sum);
    if (node->function == MATH_COSH)
        math_fraction_set(ret_value, &sum);
    return math_form_scale_si(form, ret_value, 1, 2);
}

/* asinh x = ln(x + sqrt(x^2 + 1)), acosh x = ln(x + sqrt(x - 1) sqrt(x + 1)) */
static enum math_outcome area(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(root, &form->ring);
    MATH_LOCAL_FRACTION(other, &form->ring);
    bool cosine = node->function == MATH_ACOSH;
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    math_fraction_set(&root, ret_value);
    math_fraction_set(&other, ret_value);
    if (!outcome && !cosine)
        outcome = math_form_multiply(form, &root, ret_value);
    if (!outcome)
        outcome = math_form_add_si(form, &root, 1);
    if (!outcome)
        outcome = math_form_square_root(form, &root);
    if (!outcome && cosine)
        outcome = math_form_add_si(form, &other, -1);
    if (!outcome && cosine)
        outcome = math_form_square_root(form, &other);
    if (!outcome && cosine)
        outcome = math_form_multiply(form, &root, &other);
    if (!outcome)
        outcome = math_fraction_add(ret_value, &root);
    if (!outcome)
        outcome = math_form_reduce(form, ret_value);
    return outcome ? outcome : math_form_logarithm(form, ret_value);
}

/* (ln(1 + x) - ln(1 - x)) / 2 */
static enum math_outcome area_tangent(struct math_form *form, const struct math_node *node,
                                      struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(other, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    math_fraction_set(&other, ret_value);
    math_fraction_negate(&other);
    if (!outcome)
        outcome = math_form_add_si(form, ret_value, 1);
    if (!outcome)
        outcome = math_form_add_si(form, &other, 1);
    if (!outcome)
        outcome = math_form_logarithm(form, ret_value);
    if (!outcome)
        outcome = math_form_logarithm(form, &other);
    math_fraction_negate(&other);
    if (!outcome)
        outcome = math_fraction_add(ret_value, &other);
    return outcome ? outcome : math_form_scale_si(form, ret_value, 1, 2);
}

/* --- logarithms --- */

static enum math_outcome logarithm(struct math_form *form, const struct math_node *node,
                                   struct math_fraction *ret_value)
{
    enum math_outcome outcome = math_form_value(form, node, ret_value);

    return outcome ? outcome : math_form_logarithm(form, ret_value);
}

/* The divisor of \log without a base. */
static enum math_outcome plain_base(struct math_form *form, struct math_fraction *ret_value)
{
    fmpz_mpoly_set_ui(ret_value->above, form->decider->log_reading == MATH_LOG_E ? 1 : 10, form->ring.context);
    return form->decider->log_reading == MATH_LOG_E ? MATH_VALUE : math_form_logarithm(form, ret_value);
}

static enum math_outcome logarithm_to_base(struct math_form *form, const struct math_node *node,
                                           struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(base, &form->ring);
    enum math_outcome outcome = logarithm(form, node->children[0], ret_value);

    if (!outcome)
        outcome = node->function == MATH_LOG ? logarithm(form, node->children[1], &base) : plain_base(form, &base);
    return outcome ? outcome : math_form_divide(form, ret_value, &base);
}

/* --- all of them --- */

static enum math_outcome exponential(struct math_form *form, const struct math_node *node,
                                     struct math_fraction *ret_value)
{
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    return outcome ? outcome : math_form_exponential(form, ret_value);
}

static enum math_outcome natural(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    return logarithm(form, node->children[0], ret_value);
}

/* Choices and signs of constants; a rational one is a number already. */
static enum math_outcome choice(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    if (node->function == MATH_SIGN)
        return math_form_rounded_node(form, node, ret_value);
    return math_form_opaque_node(form, node, ret_value);
}

typedef enum math_outcome (*function_form)(struct math_form *, const struct math_node *, struct math_fraction *);

static const function_form by_function[MATH_FUNCTIONS] = {
    [MATH_LN] = natural,
    [MATH_LOG] = logarithm_to_base,
    [MATH_LOG_PLAIN] = logarithm_to_base,
    [MATH_EXP] = exponential,
    [MATH_SIN] = math_form_trigonometric_node,
    [MATH_COS] = math_form_trigonometric_node,
    [MATH_TAN] = math_form_trigonometric_node,
    [MATH_COT] = math_form_trigonometric_node,
    [MATH_SEC] = math_form_trigonometric_node,
    [MATH_CSC] = math_form_trigonometric_node,
    [MATH_ASIN] = inverse_trigonometric,
    [MATH_ACOS] = inverse_trigonometric,
    [MATH_ATAN] = inverse_trigonometric,
    [MATH_ACOT] = inverse_trigonometric,
    [MATH_ASEC] = inverse_trigonometric,
    [MATH_ACSC] = inverse_trigonometric,
    [MATH_SINH] = hyperbolic,
    [MATH_COSH] = hyperbolic,
    [MATH_TANH] = hyperbolic,
    [MATH_ASINH] = area,
    [MATH_ACOSH] = area,
    [MATH_ATANH] = area_tangent,
    [MATH_GCD] = choice,
    [MATH_LCM] = choice,
    [MATH_MIN] = choice,
    [MATH_MAX] = choice,
    [MATH_MOD] = choice,
    [MATH_SIGN] = choice,
    [MATH_RE] = math_form_part_node,
    [MATH_IM] = math_form_part_node,
    [MATH_CONJUGATE] = math_form_part_node,
    [MATH_ARG] = choice,
};

enum math_outcome math_form_function_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value)
{
    struct math_decider *decider = form->decider;
    bool outer = decider->degrees_are_angles;

    decider->degrees_are_angles = outer || math_is_trigonometric(node->function);
    enum math_outcome outcome = by_function[node->function](form, node, ret_value);
    decider->degrees_are_angles = outer;
    return outcome;
}
