#include "verifiers/math/ball_functions.h"

#include "verifiers/math/angle.h"
#include "verifiers/math/rational.h"

typedef void (*transform)(acb_t, const acb_t, slong);

static int64_t cost(slong bits)
{
    return 1500 + 10 * bits + bits * bits / 50;
}

/* --- trigonometry --- */

static enum math_outcome inverse(acb_t value, slong bits)
{
    if (acb_is_zero(value))
        return MATH_NO_VALUE;
    acb_inv(value, value, bits);
    return MATH_VALUE;
}

/* From the sine and the cosine. */
static enum math_outcome assemble(enum math_function function, acb_t sine, acb_t cosine, slong bits, acb_t ret_value)
{
    bool by_cosine = function == MATH_TAN || function == MATH_SEC;
    bool by_sine = function == MATH_COT || function == MATH_CSC;
    enum math_outcome outcome = MATH_VALUE;

    if (by_cosine)
        outcome = inverse(cosine, bits);
    if (by_sine)
        outcome = inverse(sine, bits);
    if (outcome)
        return outcome;
    if (function == MATH_TAN || function == MATH_COT)
        acb_mul(ret_value, sine, cosine, bits);
    else
        acb_set(ret_value, function == MATH_SIN || function == MATH_CSC ? sine : cosine);
    return MATH_VALUE;
}

static enum math_outcome trigonometric(struct math_decider *decider, const struct math_node *node, slong bits,
                                       acb_t ret_value)
{
    MATH_LOCAL_FMPQ(multiple);
    MATH_LOCAL_ACB(sine);
    MATH_LOCAL_ACB(cosine);
    enum math_outcome outcome = math_multiple_of_pi(decider, node->children[0], multiple);

    if (!outcome && fmpz_bits(fmpq_numref(multiple)) < 4096 && fmpz_bits(fmpq_denref(multiple)) < 4096) {
        arb_sin_cos_pi_fmpq(acb_realref(sine), acb_realref(cosine), multiple, bits);
        return assemble(node->function, sine, cosine, bits, ret_value);
    }
    outcome = math_ball(decider, node->children[0], bits, ret_value);
    if (outcome)
        return outcome;
    if (arf_cmpabs_2exp_si(arb_midref(acb_realref(ret_value)), 4096) > 0)
        return MATH_OTHERWISE; /* would need as many bits of pi */
    acb_sin_cos(sine, cosine, ret_value, bits);
    return assemble(node->function, sine, cosine, bits, ret_value);
}

/* acot: everybody agrees for positive numbers only. */
static enum math_outcome inverse_of_reciprocal(enum math_function function, slong bits, acb_t value)
{
    if (function == MATH_ACOT && !(acb_is_real(value) && arb_is_positive(acb_realref(value))))
        return MATH_OTHERWISE;
    enum math_outcome outcome = inverse(value, bits);
    if (outcome)
        return outcome;
    (function == MATH_ACOT ? acb_atan : function == MATH_ASEC ? acb_acos : acb_asin)(value, value, bits);
    return MATH_VALUE;
}

/* --- logarithms --- */

static enum math_outcome logarithm(struct math_decider *decider, const struct math_node *argument, slong bits,
                                   acb_t ret_value)
{
    enum math_outcome outcome = math_ball(decider, argument, bits, ret_value);

    if (outcome)
        return outcome;
    if (acb_contains_zero(ret_value))
        return math_ball_is_zero(decider, argument, ret_value);
    acb_log(ret_value, ret_value, bits);
    return MATH_VALUE;
}

static enum math_outcome logarithm_to_base(struct math_decider *decider, const struct math_node *node, slong bits,
                                           acb_t ret_value)
{
    MATH_LOCAL_ACB(base);
    enum math_outcome outcome = logarithm(decider, node->children[0], bits, ret_value);

    outcome = math_worse(outcome, logarithm(decider, node->children[1], bits, base));
    if (outcome)
        return outcome;
    if (acb_is_zero(base))
        return MATH_NO_VALUE;
    acb_div(ret_value, ret_value, base, bits);
    return MATH_VALUE;
}

static enum math_outcome plain_logarithm(struct math_decider *decider, const struct math_node *node, slong bits,
                                         acb_t ret_value)
{
    MATH_LOCAL_ARB(base);
    enum math_outcome outcome = logarithm(decider, node->children[0], bits, ret_value);

    if (outcome)
        return outcome;
    if (decider->log_reading == MATH_LOG_10) {
        arb_const_log10(base, bits);
        acb_div_arb(ret_value, ret_value, base, bits);
    }
    return MATH_VALUE;
}

/* --- parts and choices --- */

static enum math_outcome extreme(struct math_decider *decider, const struct math_node *node, slong bits,
                                 acb_t ret_value)
{
    MATH_LOCAL_ACB(other);
    enum math_outcome outcome = math_ball(decider, node->children[0], bits, ret_value);

    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_ball(decider, node->children[i], bits, other);
        if (!outcome && !(acb_is_real(ret_value) && acb_is_real(other)))
            outcome = MATH_OTHERWISE;
        if (!outcome)
            (node->function == MATH_MIN ? arb_min : arb_max)(acb_realref(ret_value), acb_realref(ret_value),
                                                             acb_realref(other), bits);
    }
    return outcome;
}

static enum math_outcome sign(acb_t value)
{
    if (!acb_is_real(value) || (arb_contains_zero(acb_realref(value)) && !acb_is_zero(value)))
        return MATH_OTHERWISE;
    acb_set_si(value, arb_is_zero(acb_realref(value)) ? 0 : arb_is_positive(acb_realref(value)) ? 1 : -1);
    return MATH_VALUE;
}

static enum math_outcome part(enum math_function function, slong bits, acb_t value)
{
    if (function == MATH_SIGN)
        return sign(value);
    if (function == MATH_ARG && acb_contains_zero(value))
        return acb_is_zero(value) ? MATH_NO_VALUE : MATH_OTHERWISE;
    if (function == MATH_CONJUGATE) {
        acb_conj(value, value);
        return MATH_VALUE;
    }
    if (function == MATH_ARG)
        acb_arg(acb_realref(value), value, bits);
    if (function == MATH_IM)
        arb_swap(acb_realref(value), acb_imagref(value));
    arb_zero(acb_imagref(value));
    return MATH_VALUE;
}

/* --- all of them --- */

static const transform transforms[MATH_FUNCTIONS] = {
    [MATH_EXP] = acb_exp,     [MATH_ASIN] = acb_asin,   [MATH_ACOS] = acb_acos, [MATH_ATAN] = acb_atan,
    [MATH_SINH] = acb_sinh,   [MATH_COSH] = acb_cosh,   [MATH_TANH] = acb_tanh, [MATH_ASINH] = acb_asinh,
    [MATH_ACOSH] = acb_acosh, [MATH_ATANH] = acb_atanh,
};

static enum math_outcome with_argument(struct math_decider *decider, const struct math_node *node, slong bits,
                                       acb_t ret_value)
{
    enum math_function function = node->function;
    enum math_outcome outcome = math_ball(decider, node->children[0], bits, ret_value);

    if (outcome)
        return outcome;
    if (transforms[function]) {
        transforms[function](ret_value, ret_value, bits);
        return MATH_VALUE;
    }
    if (function >= MATH_ACOT && function <= MATH_ACSC)
        return inverse_of_reciprocal(function, bits, ret_value);
    return function >= MATH_SIGN && function <= MATH_CONJUGATE ? part(function, bits, ret_value) : MATH_OTHERWISE;
}

static enum math_outcome evaluate(struct math_decider *decider, const struct math_node *node, slong bits,
                                  acb_t ret_value)
{
    MATH_LOCAL_FMPQ(exact);
    enum math_outcome outcome;

    switch ((int)node->function) {
    case MATH_LN:
        return logarithm(decider, node->children[0], bits, ret_value);
    case MATH_LOG:
        return logarithm_to_base(decider, node, bits, ret_value);
    case MATH_LOG_PLAIN:
        return plain_logarithm(decider, node, bits, ret_value);
    case MATH_MIN:
    case MATH_MAX:
        return extreme(decider, node, bits, ret_value);
    case MATH_GCD:
    case MATH_LCM:
    case MATH_MOD:
        outcome = math_rational(decider, node, exact);
        acb_set_fmpq(ret_value, exact, bits);
        return outcome;
    default:
        return with_argument(decider, node, bits, ret_value);
    }
}

enum math_outcome math_ball_function(struct math_decider *decider, const struct math_node *node, slong bits,
                                     acb_t ret_value)
{
    bool outer = decider->degrees_are_angles;
    enum math_outcome outcome;

    if (!math_spend(decider, cost(bits)))
        return MATH_TOO_LARGE_VALUE;
    decider->degrees_are_angles = outer || math_is_trigonometric(node->function);
    outcome = math_is_trigonometric(node->function) ? trigonometric(decider, node, bits, ret_value)
                                                    : evaluate(decider, node, bits, ret_value);
    decider->degrees_are_angles = outer;
    return outcome;
}
