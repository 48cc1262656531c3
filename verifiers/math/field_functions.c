/* Functions in exact fields: sines by the table, hyperbolic functions by exponentials. */
#include "verifiers/math/angle.h"
#include "verifiers/math/field_value.h"
#include "verifiers/math/rational.h"

typedef void (*transform)(ca_t, const ca_t, ca_ctx_t);

#define TURN_PARTS_MAX 60 /* sines of k pi / n: fields of degree up to phi(2n) */

static enum math_outcome known(struct math_decider *decider, const ca_t value)
{
    return ca_is_special(value, decider->field) ? MATH_OTHERWISE : MATH_VALUE;
}

/* --- trigonometry --- */

static enum math_outcome sine_of_multiple(struct math_decider *decider, const fmpq_t multiple, ca_t ret_value)
{
    struct math_node *exact = math_exact_sine(decider, multiple);

    if (exact)
        return math_field_value(decider, exact, ret_value);
    if (fmpz_cmp_ui(fmpq_denref(multiple), TURN_PARTS_MAX) > 0 || fmpz_bits(fmpq_numref(multiple)) > 60)
        return MATH_OTHERWISE;
    if (!math_spend(decider, 30000 * fmpz_get_si(fmpq_denref(multiple))))
        return MATH_TOO_LARGE_VALUE;
    ca_pi(ret_value, decider->field);
    ca_mul_fmpq(ret_value, ret_value, multiple, decider->field);
    ca_sin(ret_value, ret_value, decider->field);
    return known(decider, ret_value);
}

static enum math_outcome sine_and_cosine(struct math_decider *decider, const struct math_node *argument, ca_t sine,
                                         ca_t cosine)
{
    MATH_LOCAL_FMPQ(multiple);
    enum math_outcome outcome = math_multiple_of_pi(decider, argument, multiple);

    if (!outcome) {
        outcome = sine_of_multiple(decider, multiple, sine);
        fmpq_mul_si(multiple, multiple, 2);
        fmpq_add_si(multiple, multiple, 1);
        fmpq_div_fmpz(multiple, multiple, (const fmpz[]){2});
        return math_worse(outcome, sine_of_multiple(decider, multiple, cosine));
    }
    if (outcome == MATH_OTHERWISE)
        outcome = math_field_value(decider, argument, sine);
    if (outcome)
        return outcome;
    if (!math_field_spend(decider, sine, 100000))
        return MATH_TOO_LARGE_VALUE;
    ca_sin_cos(sine, cosine, sine, decider->field);
    return math_worse(known(decider, sine), known(decider, cosine));
}

static enum math_outcome divide(struct math_decider *decider, ca_t value, const ca_t by)
{
    enum math_outcome outcome = math_field_is_not_zero(decider, by);

    if (!outcome)
        ca_div(value, value, by, decider->field);
    return outcome;
}

static enum math_outcome trigonometric(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_CA(sine, decider);
    MATH_LOCAL_CA(cosine, decider);
    enum math_function function = node->function;
    enum math_outcome outcome = sine_and_cosine(decider, node->children[0], sine.value, cosine.value);
    bool over_cosine = function == MATH_TAN || function == MATH_SEC;
    bool over_sine = function == MATH_COT || function == MATH_CSC;

    if (outcome)
        return outcome;
    if (function == MATH_SIN || function == MATH_TAN)
        ca_swap(ret_value, sine.value, decider->field);
    else if (function == MATH_COS || function == MATH_COT)
        ca_swap(ret_value, cosine.value, decider->field);
    else
        ca_one(ret_value, decider->field);
    if (!over_cosine && !over_sine)
        return MATH_VALUE;
    return divide(decider, ret_value, over_cosine ? cosine.value : sine.value);
}

static enum math_outcome inverse_of_reciprocal(struct math_decider *decider, enum math_function function, ca_t value)
{
    MATH_LOCAL_CA(argument, decider);

    ca_swap(argument.value, value, decider->field);
    if (function == MATH_ACOT) {
        ca_zero(value, decider->field);
        if (ca_check_gt(argument.value, value, decider->field) != T_TRUE)
            return MATH_OTHERWISE;
    }
    ca_one(value, decider->field);
    enum math_outcome outcome = divide(decider, value, argument.value);
    if (outcome)
        return outcome;
    (function == MATH_ACOT ? ca_atan : function == MATH_ASEC ? ca_acos : ca_asin)(value, value, decider->field);
    return known(decider, value);
}

/* --- exponentials --- */

static enum math_outcome hyperbolic(struct math_decider *decider, enum math_function function, ca_t value)
{
    MATH_LOCAL_CA(inverse, decider);
    MATH_LOCAL_CA(sum, decider);

    ca_exp(value, value, decider->field);
    ca_inv(inverse.value, value, decider->field);
    ca_add(sum.value, value, inverse.value, decider->field);
    ca_sub(value, value, inverse.value, decider->field);
    if (function == MATH_TANH)
        return divide(decider, value, sum.value);
    if (function == MATH_COSH)
        ca_swap(value, sum.value, decider->field);
    ca_div_ui(value, value, 2, decider->field);
    return known(decider, value);
}

static enum math_outcome logarithm(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    enum math_outcome outcome = math_field_value(decider, node, ret_value);

    if (!outcome)
        outcome = math_field_is_not_zero(decider, ret_value);
    if (outcome)
        return outcome;
    if (!math_field_spend(decider, ret_value, 20000))
        return MATH_TOO_LARGE_VALUE;
    ca_log(ret_value, ret_value, decider->field);
    return known(decider, ret_value);
}

static enum math_outcome logarithm_to_base(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_CA(base, decider);
    enum math_outcome outcome = logarithm(decider, node->children[0], ret_value);

    if (node->function == MATH_LOG_PLAIN) {
        if (outcome || decider->log_reading == MATH_LOG_E)
            return outcome;
        ca_set_ui(base.value, 10, decider->field);
        ca_log(base.value, base.value, decider->field);
    } else {
        outcome = math_worse(outcome, logarithm(decider, node->children[1], base.value));
    }
    return outcome ? outcome : divide(decider, ret_value, base.value);
}

/* --- all of them --- */

static const transform transforms[MATH_FUNCTIONS] = {
    [MATH_EXP] = ca_exp, [MATH_ASIN] = ca_asin, [MATH_ACOS] = ca_acos, [MATH_ATAN] = ca_atan,      [MATH_SIGN] = ca_sgn,
    [MATH_RE] = ca_re,   [MATH_IM] = ca_im,     [MATH_ARG] = ca_arg,   [MATH_CONJUGATE] = ca_conj,
};

static enum math_outcome with_argument(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    enum math_function function = node->function;
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    if (!outcome && function == MATH_ARG)
        outcome = math_field_is_not_zero(decider, ret_value);
    if (outcome)
        return outcome;
    if (!math_field_spend(decider, ret_value, 50000))
        return MATH_TOO_LARGE_VALUE;
    if (function >= MATH_SINH && function <= MATH_TANH)
        return hyperbolic(decider, function, ret_value);
    if (function >= MATH_ACOT && function <= MATH_ACSC)
        return inverse_of_reciprocal(decider, function, ret_value);
    if (!transforms[function])
        return MATH_OTHERWISE;
    transforms[function](ret_value, ret_value, decider->field);
    return known(decider, ret_value);
}

enum math_outcome math_field_function(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    bool outer = decider->degrees_are_angles;
    enum math_outcome outcome;

    decider->degrees_are_angles = outer || math_is_trigonometric(node->function);
    if (math_is_trigonometric(node->function))
        outcome = trigonometric(decider, node, ret_value);
    else if (node->function == MATH_LN)
        outcome = logarithm(decider, node->children[0], ret_value);
    else if (node->function == MATH_LOG || node->function == MATH_LOG_PLAIN)
        outcome = logarithm_to_base(decider, node, ret_value);
    else
        outcome = with_argument(decider, node, ret_value);
    decider->degrees_are_angles = outer;
    return outcome;
}
