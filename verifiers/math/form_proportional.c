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

static enum math_outcome compare(struct math_form *form, struct math_fraction *left, struct math_fraction *right,
                                 bool *ret_proportional, int *ret_sign)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    enum math_outcome outcome = cancel(left);

    outcome = math_worse(outcome, cancel(right));
    *ret_proportional = false;
    if (outcome || fmpz_mpoly_is_zero(left->above, context) || fmpz_mpoly_is_zero(right->above, context))
        return outcome;
    bool constant = fmpz_mpoly_is_fmpz(left->below, context) && fmpz_mpoly_is_fmpz(right->below, context);
    int sign = normalise(left->above, context) * normalise(right->above, context);
    if (constant)
        sign *= fmpz_sgn(left->below->coeffs) * fmpz_sgn(right->below->coeffs);
    *ret_proportional = fmpz_mpoly_equal(left->above, right->above, context);
    *ret_sign = *ret_proportional && constant ? sign : 0;
    return MATH_VALUE;
}

enum math_outcome math_form_proportional(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right, bool *ret_proportional, int *ret_sign)
{
    _cleanup_(math_form_clear) struct math_form form;

    math_form_init(&form, decider);
    math_form_choose_parts(&form, left, right);
    MATH_LOCAL_FRACTION(one, &form.ring);
    MATH_LOCAL_FRACTION(other, &form.ring);
    enum math_outcome outcome = math_form_value(&form, left, &one);
    outcome = math_worse(outcome, math_form_value(&form, right, &other));
    if (!outcome)
        outcome = compare(&form, &one, &other, ret_proportional, ret_sign);
    for (slong i = 0; i < form.count && !outcome; i++)
        if (form.generators[i].kind != GENERATOR_NAME && !*ret_proportional)
            return MATH_OTHERWISE;
    return outcome;
}
