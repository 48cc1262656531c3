#include "verifiers/math/field_value.h"

#include "verifiers/math/rational.h"

#define EXPONENT_MAX 200
#define ROOT_MAX 12
#define TERMS_MAX 65536

/* Of a value in a field with several generators; 1 in others. */
static int64_t count_terms(struct math_decider *decider, const ca_t value)
{
    (void)decider; /* Calcium's macros pass over it in this version */
    if (CA_IS_SPECIAL(value) || CA_FIELD_IS_QQ(CA_FIELD(value, decider->field)) ||
        CA_FIELD_IS_NF(CA_FIELD(value, decider->field)))
        return 1;
    return fmpz_mpoly_q_numref(CA_MPOLY_Q(value))->length + fmpz_mpoly_q_denref(CA_MPOLY_Q(value))->length;
}

/* Elements of number fields by their degree, others by their generators, and by their terms where those are more: a
 * product of n sums with different roots has 2^n. */
bool math_field_spend(struct math_decider *decider, const ca_t value, int64_t factor)
{
    ca_field_srcptr field;
    int64_t size = 1;

    if (CA_IS_SPECIAL(value))
        return math_spend(decider, factor);
    field = CA_FIELD(value, decider->field);
    if (CA_FIELD_IS_NF(field))
        size = qqbar_degree(CA_FIELD_NF_QQBAR(field));
    else if (!CA_FIELD_IS_QQ(field))
        size = 2 + 2 * CA_FIELD_LENGTH(field);
    return math_spend(decider, factor * FLINT_MAX(size * size, count_terms(decider, value)));
}

static enum math_outcome known(struct math_decider *decider, const ca_t value)
{
    return ca_is_special(value, decider->field) ? MATH_OTHERWISE : MATH_VALUE;
}

enum math_outcome math_field_is_not_zero(struct math_decider *decider, const ca_t value)
{
    if (!math_field_spend(decider, value, 2000))
        return MATH_TOO_LARGE_VALUE;
    truth_t zero = ca_check_is_zero(value, decider->field);
    return zero == T_TRUE ? MATH_NO_VALUE : zero == T_FALSE ? MATH_VALUE : MATH_OTHERWISE;
}

/* --- arithmetic --- */

/* (1 + \sqrt 2)(1 + \sqrt 3)… has twice as many terms with each factor. */
static bool spend_on_terms(struct math_decider *decider, const ca_t left, const ca_t right)
{
    int64_t terms = count_terms(decider, left);
    int64_t others = count_terms(decider, right);

    return math_field_spend(decider, left, 1000) && terms < TERMS_MAX && others < TERMS_MAX &&
           math_field_spend(decider, left, terms * others * 2);
}

typedef void (*operation)(ca_t, const ca_t, const ca_t, ca_ctx_t);

static enum math_outcome fold(struct math_decider *decider, const struct math_node *node, operation run, ca_t ret_value)
{
    MATH_LOCAL_CA(other, decider);
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_field_value(decider, node->children[i], other.value);
        if (!outcome && !spend_on_terms(decider, ret_value, other.value))
            return MATH_TOO_LARGE_VALUE;
        if (!outcome)
            run(ret_value, ret_value, other.value, decider->field);
    }
    return outcome;
}

static enum math_outcome sum(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    return fold(decider, node, ca_add, ret_value);
}

static enum math_outcome product(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    return fold(decider, node, ca_mul, ret_value);
}

static enum math_outcome negate(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    if (!outcome)
        ca_neg(ret_value, ret_value, decider->field);
    return outcome;
}

static enum math_outcome quotient(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_CA(denominator, decider);
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    outcome = math_worse(outcome, math_field_value(decider, node->children[1], denominator.value));
    if (!outcome)
        outcome = math_field_is_not_zero(decider, denominator.value);
    if (!outcome)
        ca_div(ret_value, ret_value, denominator.value, decider->field);
    return outcome;
}

static enum math_outcome rational(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_FMPQ(value);
    enum math_outcome outcome = math_rational(decider, node, value);

    if (!outcome)
        ca_set_fmpq(ret_value, value, decider->field);
    return outcome;
}

static enum math_outcome constant(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    if (node->constant == MATH_PI)
        ca_pi(ret_value, decider->field);
    else if (node->constant == MATH_I)
        ca_i(ret_value, decider->field);
    else if (node->constant != MATH_E)
        return MATH_OTHERWISE;
    if (node->constant == MATH_E) {
        ca_one(ret_value, decider->field);
        ca_exp(ret_value, ret_value, decider->field);
    }
    return MATH_VALUE;
}

/* --- powers --- */

/* The root that is meant: real for odd degrees of negative numbers. */
static enum math_outcome broken_power(struct math_decider *decider, ca_t base, const fmpq_t exponent)
{
    bool negated = false;

    if (fmpz_cmp_ui(fmpq_denref(exponent), ROOT_MAX) > 0)
        return MATH_OTHERWISE;
    if (!math_field_spend(decider, base, 50000))
        return MATH_TOO_LARGE_VALUE;
    if (fmpz_is_odd(fmpq_denref(exponent))) {
        truth_t negative = ca_check_is_negative_real(base, decider->field);
        if (negative == T_UNKNOWN)
            return MATH_OTHERWISE;
        negated = negative == T_TRUE;
    }
    if (negated)
        ca_neg(base, base, decider->field);
    ca_pow_fmpq(base, base, exponent, decider->field);
    if (negated && fmpz_is_odd(fmpq_numref(exponent)))
        ca_neg(base, base, decider->field);
    return known(decider, base);
}

static enum math_outcome rational_power(struct math_decider *decider, ca_t base, const fmpq_t exponent)
{
    if (fmpz_cmpabs(fmpq_numref(exponent), (const fmpz[]){EXPONENT_MAX}) > 0)
        return MATH_OTHERWISE;
    if (!math_field_spend(decider, base, 2000 * (2 + labs(fmpz_get_si(fmpq_numref(exponent))))))
        return MATH_TOO_LARGE_VALUE;
    if (fmpq_sgn(exponent) <= 0) {
        enum math_outcome outcome = math_field_is_not_zero(decider, base);
        if (outcome)
            return outcome;
    }
    if (!fmpz_is_one(fmpq_denref(exponent)))
        return broken_power(decider, base, exponent);
    ca_pow_fmpz(base, base, fmpq_numref(exponent), decider->field);
    return known(decider, base);
}

static enum math_outcome general_power(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_CA(exponent, decider);
    const struct math_node *base = node->children[0];
    enum math_outcome outcome = math_field_value(decider, node->children[1], exponent.value);

    if (base->kind != MATH_CONSTANT || base->constant != MATH_E)
        outcome = math_worse(outcome, math_field_value(decider, base, ret_value));
    if (outcome)
        return outcome;
    if (!math_field_spend(decider, exponent.value, 20000))
        return MATH_TOO_LARGE_VALUE;
    if (base->kind == MATH_CONSTANT && base->constant == MATH_E) {
        ca_exp(ret_value, exponent.value, decider->field);
        return known(decider, ret_value);
    }
    outcome = math_field_is_not_zero(decider, ret_value);
    if (outcome)
        return MATH_OTHERWISE;
    ca_pow(ret_value, ret_value, exponent.value, decider->field);
    return known(decider, ret_value);
}

static enum math_outcome power(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_FMPQ(exponent);
    enum math_outcome outcome = math_rational(decider, node->children[1], exponent);

    if (outcome == MATH_OTHERWISE)
        return general_power(decider, node, ret_value);
    if (!outcome)
        outcome = math_field_value(decider, node->children[0], ret_value);
    return outcome ? outcome : rational_power(decider, ret_value, exponent);
}

static enum math_outcome root(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_FMPQ(degree);
    enum math_outcome outcome = math_rational(decider, node->children[1], degree);

    if (outcome)
        return outcome;
    if (fmpq_is_zero(degree))
        return MATH_NO_VALUE;
    fmpq_inv(degree, degree);
    outcome = math_field_value(decider, node->children[0], ret_value);
    return outcome ? outcome : rational_power(decider, ret_value, degree);
}

/* --- the rest --- */

static enum math_outcome rounded(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    if (outcome)
        return outcome;
    if (!math_field_spend(decider, ret_value, 5000))
        return MATH_TOO_LARGE_VALUE;
    if (node->kind != MATH_ABSOLUTE && ca_check_is_real(ret_value, decider->field) != T_TRUE)
        return MATH_OTHERWISE;
    (node->kind == MATH_ABSOLUTE ? ca_abs
     : node->kind == MATH_FLOOR  ? ca_floor
                                 : ca_ceil)(ret_value, ret_value, decider->field);
    return known(decider, ret_value);
}

static enum math_outcome scaled(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    MATH_LOCAL_CA(pi, decider);
    enum math_outcome outcome = math_field_value(decider, node->children[0], ret_value);

    if (outcome)
        return outcome;
    if (node->kind == MATH_PERCENT) {
        ca_div_ui(ret_value, ret_value, 100, decider->field);
    } else if (decider->degrees_are_angles) {
        ca_pi(pi.value, decider->field);
        ca_mul(ret_value, ret_value, pi.value, decider->field);
        ca_div_ui(ret_value, ret_value, 180, decider->field);
    }
    return MATH_VALUE;
}

static enum math_outcome (*const by_kind[MATH_KINDS])(struct math_decider *, const struct math_node *, ca_t) = {
    [MATH_MIXED] = sum,         [MATH_CONSTANT] = constant,
    [MATH_SUM] = sum,           [MATH_PRODUCT] = product,
    [MATH_QUOTIENT] = quotient, [MATH_NEGATE] = negate,
    [MATH_POWER] = power,       [MATH_ROOT] = root,
    [MATH_ABSOLUTE] = rounded,  [MATH_FLOOR] = rounded,
    [MATH_CEILING] = rounded,   [MATH_DEGREES] = scaled,
    [MATH_PERCENT] = scaled,    [MATH_FUNCTION] = math_field_function,
};

enum math_outcome math_field_value(struct math_decider *decider, const struct math_node *node, ca_t ret_value)
{
    if (!math_spend(decider, 2000))
        return MATH_TOO_LARGE_VALUE;
    enum math_outcome outcome = rational(decider, node, ret_value);
    if (outcome != MATH_OTHERWISE || !by_kind[node->kind])
        return outcome;
    return by_kind[node->kind](decider, node, ret_value);
}
