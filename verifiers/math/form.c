#include "verifiers/math/form.h"

#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

/* --- arithmetic --- */

enum math_outcome math_form_multiply(struct math_form *form, struct math_fraction *value,
                                     const struct math_fraction *other)
{
    enum math_outcome outcome = math_fraction_multiply(value, other);

    if (!outcome)
        outcome = math_form_reduce(form, value);
    return outcome ? outcome : math_form_rationalise(form, value);
}

/* A denominator that is not a polynomial in names alone may be 0 without looking so. */
enum math_outcome math_form_divide(struct math_form *form, struct math_fraction *value,
                                   const struct math_fraction *other)
{
    if (!math_form_is_free(form, other->above))
        form->divisions = true;
    enum math_outcome outcome = math_fraction_divide(value, other);
    if (!outcome)
        outcome = math_form_reduce(form, value);
    return outcome ? outcome : math_form_rationalise(form, value);
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

enum math_outcome math_form_scale(struct math_form *form, struct math_fraction *value, const fmpq_t factor)
{
    MATH_LOCAL_FRACTION(other, &form->ring);

    math_fraction_set_rational(&other, factor);
    return math_fraction_multiply(value, &other);
}

enum math_outcome math_form_scale_si(struct math_form *form, struct math_fraction *value, slong above, ulong below)
{
    MATH_LOCAL_FMPQ(factor);

    fmpq_set_si(factor, above, below);
    return math_form_scale(form, value, factor);
}

enum math_outcome math_form_add_si(struct math_form *form, struct math_fraction *value, slong term)
{
    MATH_LOCAL_FRACTION(other, &form->ring);

    fmpz_mpoly_set_si(other.above, term, form->ring.context);
    return math_fraction_add(value, &other);
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
    return outcome ? outcome : math_form_reduce(form, ret_value);
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

    return math_form_generator(form, &wanted, ret_value);
}

static enum math_outcome constant(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    if (node->constant == MATH_PI)
        return math_form_pi(form, ret_value);
    if (node->constant == MATH_I)
        return math_form_i(form, ret_value);
    if (node->constant != MATH_E)
        return MATH_OTHERWISE;
    fmpz_mpoly_one(ret_value->above, form->ring.context);
    return math_form_exponential(form, ret_value);
}

/* Percents, and degrees: angles inside of a trigonometric function. */
static enum math_outcome scaled(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(pi, &form->ring);
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    if (outcome || (node->kind == MATH_DEGREES && !form->decider->degrees_are_angles))
        return outcome;
    if (node->kind == MATH_PERCENT)
        return math_form_scale_si(form, ret_value, 1, 100);
    outcome = math_form_pi(form, &pi);
    if (!outcome)
        outcome = math_form_scale_si(form, &pi, 1, 180);
    return outcome ? outcome : math_form_multiply(form, ret_value, &pi);
}

static enum math_outcome number(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(value);
    enum math_outcome outcome = math_rational(form->decider, node, value);

    if (outcome)
        return outcome;
    if (fmpz_bits(fmpq_numref(value)) > MATH_COEFFICIENT_BITS || fmpz_bits(fmpq_denref(value)) > MATH_COEFFICIENT_BITS)
        return MATH_TOO_LARGE_VALUE;
    math_fraction_set_rational(ret_value, value);
    return MATH_VALUE;
}

static const struct {
    enum math_outcome (*form)(struct math_form *, const struct math_node *, struct math_fraction *);
    bool number_first; /* may be a rational by arithmetic that the form does not do */
} by_kind[MATH_KINDS] = {
    [MATH_NUMBER] = {number, false},
    [MATH_BASED] = {number, false},
    [MATH_MIXED] = {sum, false},
    [MATH_CONSTANT] = {constant, false},
    [MATH_NAME] = {name, true},
    [MATH_SUM] = {sum, false},
    [MATH_PRODUCT] = {product, false},
    [MATH_QUOTIENT] = {quotient, false},
    [MATH_NEGATE] = {negate, false},
    [MATH_POWER] = {math_form_power_node, false},
    [MATH_ROOT] = {math_form_root_node, false},
    [MATH_FACTORIAL] = {math_form_factorial_node, true},
    [MATH_BINOMIAL] = {math_form_binomial_node, true},
    [MATH_ABSOLUTE] = {math_form_absolute_node, true},
    [MATH_FLOOR] = {math_form_rounded_node, true},
    [MATH_CEILING] = {math_form_rounded_node, true},
    [MATH_FUNCTION] = {math_form_function_node, true},
    [MATH_DEGREES] = {scaled, false},
    [MATH_PERCENT] = {scaled, false},
    [MATH_OPERATOR] = {math_form_operator_node, true},
    [MATH_CALL] = {math_form_notation_node, false},
};

enum math_outcome math_form_value(struct math_form *form, const struct math_node *node, struct math_fraction *ret_value)
{
    enum math_outcome outcome = MATH_OTHERWISE;

    if (!math_spend(form->decider, 100))
        return MATH_TOO_LARGE_VALUE;
    if (by_kind[node->kind].number_first)
        outcome = number(form, node, ret_value);
    if (outcome != MATH_OTHERWISE || !by_kind[node->kind].form)
        return outcome;
    fmpz_mpoly_zero(ret_value->above, form->ring.context);
    fmpz_mpoly_one(ret_value->below, form->ring.context);
    return by_kind[node->kind].form(form, node, ret_value);
}

/* --- the difference --- */

static void describe(const struct math_form *form, struct math_form_finding *finding)
{
    bool notations = false, others = false;

    for (slong i = 0; i < form->count; i++) {
        enum generator_kind kind = form->generators[i].kind;
        notations = notations || kind == GENERATOR_NOTATION;
        others = others || (kind != GENERATOR_NAME && kind != GENERATOR_NOTATION);
    }
    finding->free = !notations && !others;
    finding->notation = notations;
    finding->divisions = form->divisions;
}

enum math_outcome math_form_difference(struct math_decider *decider, const struct math_node *left,
                                       const struct math_node *right, struct math_form_finding *ret_finding)
{
    _cleanup_(math_form_clear) struct math_form form;

    math_form_init(&form, decider);
    math_form_choose_parts(&form, left, right);
    MATH_LOCAL_FRACTION(one, &form.ring);
    MATH_LOCAL_FRACTION(other, &form.ring);
    enum math_outcome outcome = math_form_value(&form, left, &one);
    if (outcome == MATH_NO_VALUE)
        return outcome;
    outcome = math_worse(outcome, math_form_value(&form, right, &other));
    if (outcome)
        return outcome;
    outcome = math_form_equal(&form, &one, &other, &ret_finding->zero);
    describe(&form, ret_finding);
    return outcome;
}
