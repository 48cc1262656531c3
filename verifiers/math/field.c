#include "verifiers/math/field.h"

#include "verifiers/math/field_value.h"
#include "verifiers/math/height.h"

/* Chosen by measuring the longest that could be constructed (sums of twelve roots, roots five deep, fields of degree
 * 40, towers of exponentials, 60th parts of a turn): below 30 ms. */
static void set_options(ca_ctx_t field)
{
    ca_ctx_set_option(field, CA_OPT_PREC_LIMIT, 512);
    ca_ctx_set_option(field, CA_OPT_QQBAR_DEG_LIMIT, 40);
    ca_ctx_set_option(field, CA_OPT_LLL_PREC, 128);
    ca_ctx_set_option(field, CA_OPT_GROEBNER_LENGTH_LIMIT, 20);
    ca_ctx_set_option(field, CA_OPT_GROEBNER_POLY_LENGTH_LIMIT, 100);
    ca_ctx_set_option(field, CA_OPT_GROEBNER_POLY_BITS_LIMIT, 2000);
}

static void begin(struct math_decider *decider)
{
    if (decider->has_field)
        return;
    ca_ctx_init(decider->field);
    set_options(decider->field);
    decider->has_field = true;
}

enum math_outcome math_field_equal(struct math_decider *decider, const struct math_node *left,
                                   const struct math_node *right, bool *ret_equal)
{
    if (!math_height_fits(decider, left) || !math_height_fits(decider, right))
        return MATH_OTHERWISE;
    begin(decider);
    MATH_LOCAL_CA(one, decider);
    MATH_LOCAL_CA(other, decider);
    enum math_outcome outcome = math_field_value(decider, left, one.value);

    outcome = math_worse(outcome, math_field_value(decider, right, other.value));
    if (outcome)
        return outcome;
    if (!math_field_spend(decider, one.value, 50000) || !math_field_spend(decider, other.value, 50000))
        return MATH_TOO_LARGE_VALUE;
    truth_t truth = ca_check_equal(one.value, other.value, decider->field);
    *ret_equal = truth == T_TRUE;
    return truth == T_UNKNOWN ? MATH_OTHERWISE : MATH_VALUE;
}

enum math_outcome math_field_is_real(struct math_decider *decider, const struct math_node *node, bool *ret_real)
{
    if (!math_height_fits(decider, node))
        return MATH_OTHERWISE;
    begin(decider);
    MATH_LOCAL_CA(one, decider);
    enum math_outcome outcome = math_field_value(decider, node, one.value);

    if (outcome)
        return outcome;
    truth_t truth = ca_check_is_real(one.value, decider->field);
    *ret_real = truth == T_TRUE;
    return truth == T_UNKNOWN ? MATH_OTHERWISE : MATH_VALUE;
}
