#include "verifiers/math/form.h"

#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

/* --- arithmetic --- */

enum math_outcome math_form_multiply(struct math_form *form, struct math_fraction *value,
                                     const struct math_fraction *other)
{
    enum math_outcome outcome = math_fraction_multiply(value, other);

    return outcome ? outcome : math_form_reduce(form, value);
}

/* A denominator that is not a polynomial in names alone may be 0 without looking so. */
enum math_outcome math_form_divide(struct math_form *form, struct math_fraction *value,
                                   const struct math_fraction *other)
{
    if (!math_form_is_free(form, other->above))
        form->divisions = true;
    enum math_outcome outcome = math_fraction_divide(value, other);
    return outcome ? outcome : math_form_reduce(form, value);
}

static bool has_relations(const struct math_form *form, const struct math_fraction *value)
{
    return !math_form_is_free(form, value->above) || !math_form_is_free(form, value->below);
}

/* Squaring keeps the degrees of roots low. */
static enum math_outcome power_by_squares(struct math_form *form, struct math_fraction *value, ulong exponent)
{
    MATH_LOCAL_FRACTION(base, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    math_fraction_set(&base, value);
    fmpz_mpoly_one(value->above, form->ring.context);
    fmpz_mpoly_one(value->below, form->ring.context);
    for (; exponent && !outcome; exponent >>= 1) {
        if (exponent & 1)
            outcome = math_form_multiply(form, value, &base);
        if (!outcome && exponent > 1)
            outcome = math_form_multiply(form, &base, &base);
    }
    return outcome;
}

enum math_outcome math_form_integer_power(struct math_form *form, struct math_fraction *value, slong exponent)
{
    MATH_LOCAL_FRACTION(base, &form->ring);

    if (labs(exponent) > MATH_DEGREE)
        return MATH_TOO_LARGE_VALUE;
    if (!has_relations(form, value))
        return math_fraction_power(value, exponent);
    if (exponent > 0)
        return power_by_squares(form, value, (ulong)exponent);
    math_fraction_set(&base, value);
    fmpz_mpoly_one(value->above, form->ring.context);
    fmpz_mpoly_one(value->below, form->ring.context);
    enum math_outcome outcome = math_form_divide(form, value, &base);
    return outcome ? outcome : power_by_squares(form, value, (ulong)-exponent);
}

/* --- nodes --- */

static enum math_outcome sum(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(term, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_form_value(form, node->children[i], &term);
        if (!outcome)
            outcome = math_fraction_add(ret_value, &term);
    }
    return outcome;
}

static enum math_outcome product(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_form_value(form, node->children[i], &factor);
        if (!outcome)
            outcome = math_form_multiply(form, ret_value, &factor);
    }
    return outcome;
}

static enum math_outcome quotient(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(denominator, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    if (!outcome)
        outcome = math_form_value(form, node->children[1], &denominator);
    return outcome ? outcome : math_form_divide(form, ret_value, &denominator);
}

static enum math_outcome negate(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    math_fraction_negate(ret_value);
    return outcome;
}

static enum math_outcome name(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_NAME, .name = node->text, .real = true};
    slong variable;
    enum math_outcome outcome = math_form_generator(form, &wanted, &variable);

    if (!outcome)
        math_fraction_set_variable(ret_value, variable);
    return outcome;
}

static enum math_outcome power(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(exponent);
    enum math_outcome outcome = math_rational(form->decider, node->children[1], exponent);

    if (outcome || !fmpz_is_one(fmpq_denref(exponent)))
        return outcome ? outcome : MATH_OTHERWISE;
    if (fmpz_bits(fmpq_numref(exponent)) > 30)
        return MATH_TOO_LARGE_VALUE;
    outcome = math_form_value(form, node->children[0], ret_value);
    return outcome ? outcome : math_form_integer_power(form, ret_value, fmpz_get_si(fmpq_numref(exponent)));
}

static enum math_outcome percent(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(hundredth, &form->ring);
    MATH_LOCAL_FMPQ(value);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    fmpq_set_si(value, 1, 100);
    math_fraction_set_rational(&hundredth, value);
    return outcome ? outcome : math_fraction_multiply(ret_value, &hundredth);
}

static enum math_outcome (*const by_kind[MATH_KINDS])(struct math_form *, const struct math_node *,
                                                      struct math_fraction *) = {
    [MATH_MIXED] = sum,         [MATH_NAME] = name,     [MATH_SUM] = sum,     [MATH_PRODUCT] = product,
    [MATH_QUOTIENT] = quotient, [MATH_NEGATE] = negate, [MATH_POWER] = power, [MATH_PERCENT] = percent,
};

static enum math_outcome leaf(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(value);
    enum math_outcome outcome = math_rational(form->decider, node, value);

    if (!outcome && (fmpz_bits(fmpq_numref(value)) > MATH_COEFFICIENT_BITS ||
                     fmpz_bits(fmpq_denref(value)) > MATH_COEFFICIENT_BITS))
        return MATH_TOO_LARGE_VALUE;
    if (!outcome)
        math_fraction_set_rational(ret_value, value);
    return outcome;
}

enum math_outcome math_form_value(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    if (!math_spend(form->decider, 100))
        return MATH_TOO_LARGE_VALUE;
    enum math_outcome outcome = leaf(form, node, ret_value);
    if (outcome != MATH_OTHERWISE || !by_kind[node->kind])
        return outcome;
    return by_kind[node->kind](form, node, ret_value);
}

/* --- the difference --- */

enum math_outcome math_form_difference(struct math_decider *decider, const struct math_node *left,
                                       const struct math_node *right, struct math_form_finding *ret_finding)
{
    _cleanup_(math_form_clear) struct math_form form;

    math_form_init(&form, decider);
    MATH_LOCAL_FRACTION(one, &form.ring);
    MATH_LOCAL_FRACTION(other, &form.ring);
    enum math_outcome outcome = math_form_value(&form, left, &one);
    if (outcome == MATH_NO_VALUE)
        return outcome;
    outcome = math_worse(outcome, math_form_value(&form, right, &other));
    if (outcome)
        return outcome;
    outcome = math_form_equal(&form, &one, &other, &ret_finding->zero);
    ret_finding->free = true;
    for (slong i = 0; i < form.count; i++)
        ret_finding->free = ret_finding->free && form.generators[i].kind == GENERATOR_NAME;
    ret_finding->divisions = form.divisions;
    return outcome;
}
