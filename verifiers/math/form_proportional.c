/* Equations: are two sides minus sides the same up to a constant factor? */
#include "verifiers/math/form_value.h"

#define DIVISOR_DEGREE 200
#define DIVISOR_TERMS 200

static bool is_small(const fmpz_mpoly_t value, const fmpz_mpoly_ctx_t context)
{
    return value->length <= DIVISOR_TERMS && fmpz_mpoly_total_degree_si(value, context) <= DIVISOR_DEGREE &&
           labs(fmpz_mpoly_max_bits(value)) <= 4096;
}

/* To lowest terms. */
static enum math_outcome cancel(struct math_fraction *value)
{
    struct math_ring *ring = value->ring;
    MATH_LOCAL_FRACTION(common, ring);

    if (fmpz_mpoly_is_fmpz(value->below, ring->context))
        return MATH_VALUE;
    if (!is_small(value->above, ring->context) || !is_small(value->below, ring->context))
        return MATH_TOO_LARGE_VALUE;
    if (!math_spend(ring->decider, 2000 * (value->above->length + value->below->length)))
        return MATH_TOO_LARGE_VALUE;
    if (!fmpz_mpoly_gcd(common.above, value->above, value->below, ring->context))
        return MATH_TOO_LARGE_VALUE;
    fmpz_mpoly_div(value->above, value->above, common.above, ring->context);
    fmpz_mpoly_div(value->below, value->below, common.above, ring->context);
    return MATH_VALUE;
}

/* Primitive, and the first coefficient above 0. The sign that was taken out. */
static int normalise(fmpz_mpoly_t value, const fmpz_mpoly_ctx_t context)
{
    int sign = fmpz_sgn(value->coeffs);

    fmpz_mpoly_primitive_part(value, value, context);
    return sign;
}

/* --- factors that are constants, but not rational --- */

static bool is_constant(const struct math_form *form, slong variable);

static bool has_constants_only(const struct math_form *form, const fmpz_mpoly_t value)
{
    int used[MATH_GENERATORS];

    fmpz_mpoly_used_vars(used, value, form->ring.context);
    for (slong i = 0; i < form->count; i++)
        if (used[i] && !is_constant(form, i))
            return false;
    return true;
}

/* A generator's argument has earlier generators only. */
static bool is_constant(const struct math_form *form, slong variable)
{
    const struct generator *generator = &form->generators[variable];

    if (generator->kind == GENERATOR_NAME || generator->kind == GENERATOR_NOTATION)
        return false;
    return !generator->has_fractions ||
           (has_constants_only(form, generator->argument.above) &&
            has_constants_only(form, generator->argument.below) &&
            has_constants_only(form, generator->exponent.above) && has_constants_only(form, generator->exponent.below));
}

/* The terms of value that have the same names, to the same powers, as its first: what stands before these names. */
static void coefficient_of(struct math_form *form, const fmpz_mpoly_t value, const ulong *names,
                           fmpz_mpoly_t ret_coefficient)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong exponents[MATH_GENERATORS];
    MATH_LOCAL_FMPZ(coefficient);

    fmpz_mpoly_zero(ret_coefficient, context);
    for (slong i = 0; i < value->length; i++) {
        bool same = true;
        fmpz_mpoly_get_term_exp_ui(exponents, value, i, context);
        for (slong n = 0; n < form->count; n++) {
            same = same && (is_constant(form, n) || exponents[n] == names[n]);
            exponents[n] = is_constant(form, n) ? exponents[n] : 0;
        }
        fmpz_mpoly_get_term_coeff_fmpz(coefficient, value, i, context);
        if (same)
            fmpz_mpoly_push_term_fmpz_ui(ret_coefficient, coefficient, exponents, context);
    }
    fmpz_mpoly_sort_terms(ret_coefficient, context);
}

/* left · (coefficient in right) = right · (coefficient in left), neither coefficient being 0 by its form. */
static enum math_outcome compare_coefficients(struct math_form *form, const struct math_fraction *left,
                                              const struct math_fraction *right, bool *ret_proportional)
{
    MATH_LOCAL_FRACTION(one, &form->ring);
    MATH_LOCAL_FRACTION(other, &form->ring);
    ulong names[MATH_GENERATORS];

    fmpz_mpoly_get_term_exp_ui(names, left->above, 0, form->ring.context);
    coefficient_of(form, right->above, names, one.above);
    coefficient_of(form, left->above, names, other.above);
    if (fmpz_mpoly_is_zero(one.above, form->ring.context))
        return MATH_VALUE;
    enum math_outcome outcome = math_polynomial_multiply(&form->ring, one.above, one.above, left->above);
    if (!outcome)
        outcome = math_polynomial_multiply(&form->ring, other.above, other.above, right->above);
    return outcome ? outcome : math_form_equal(form, &one, &other, ret_proportional);
}

static enum math_outcome compare(struct math_form *form, struct math_fraction *left, struct math_fraction *right,
                                 struct math_proportion *ret_proportion)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    enum math_outcome outcome = cancel(left);

    outcome = math_worse(outcome, cancel(right));
    if (outcome || fmpz_mpoly_is_zero(left->above, context) || fmpz_mpoly_is_zero(right->above, context))
        return outcome;
    bool rational = fmpz_mpoly_is_fmpz(left->below, context) && fmpz_mpoly_is_fmpz(right->below, context);
    int sign = normalise(left->above, context) * normalise(right->above, context);
    if (rational)
        ret_proportion->sign = sign * fmpz_sgn(left->below->coeffs) * fmpz_sgn(right->below->coeffs);
    ret_proportion->whole = has_constants_only(form, left->below) && has_constants_only(form, right->below);
    ret_proportion->proportional = fmpz_mpoly_equal(left->above, right->above, context);
    if (ret_proportion->proportional)
        return MATH_VALUE;
    ret_proportion->sign = 0;
    if (ret_proportion->free)
        return MATH_VALUE;
    if (!ret_proportion->whole)
        return MATH_OTHERWISE;
    return compare_coefficients(form, left, right, &ret_proportion->proportional);
}

enum math_outcome math_form_proportional(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right, struct math_proportion *ret_proportion)
{
    _cleanup_(math_form_clear) struct math_form form;

    *ret_proportion = (struct math_proportion){.free = true};
    math_form_init(&form, decider);
    math_form_choose_parts(&form, left, right);
    MATH_LOCAL_FRACTION(one, &form.ring);
    MATH_LOCAL_FRACTION(other, &form.ring);
    enum math_outcome outcome = math_form_value(&form, left, &one);
    outcome = math_worse(outcome, math_form_value(&form, right, &other));
    if (!outcome)
        outcome = math_form_reduce(&form, &one);
    if (!outcome)
        outcome = math_form_reduce(&form, &other);
    for (slong i = 0; i < form.count; i++)
        ret_proportion->free = ret_proportion->free && form.generators[i].kind == GENERATOR_NAME;
    return outcome ? outcome : compare(&form, &one, &other, ret_proportion);
}
