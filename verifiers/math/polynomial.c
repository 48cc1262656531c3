#include "verifiers/math/polynomial.h"

#include <flint/fmpz_vec.h>

void math_fraction_init(struct math_fraction *fraction, struct math_ring *ring)
{
    fraction->ring = ring;
    fmpz_mpoly_init(fraction->above, ring->context);
    fmpz_mpoly_init(fraction->below, ring->context);
    fmpz_mpoly_one(fraction->below, ring->context);
}

void math_fraction_clear(struct math_fraction *fraction)
{
    fmpz_mpoly_clear(fraction->above, fraction->ring->context);
    fmpz_mpoly_clear(fraction->below, fraction->ring->context);
}

/* --- bounds --- */

static slong degree(const fmpz_mpoly_t value, const fmpz_mpoly_ctx_t context)
{
    slong total = fmpz_mpoly_total_degree_si(value, context);

    return total > 0 ? total : 0;
}

static slong coefficient_bits(const fmpz_mpoly_t value)
{
    return value->length ? labs(fmpz_mpoly_max_bits(value)) : 0;
}

enum math_outcome math_polynomial_check(const fmpz_mpoly_t value)
{
    bool fits = value->length <= MATH_TERMS && coefficient_bits(value) <= MATH_COEFFICIENT_BITS;

    return fits ? MATH_VALUE : MATH_TOO_LARGE_VALUE;
}

enum math_outcome math_polynomial_multiply(struct math_ring *ring, fmpz_mpoly_t product, const fmpz_mpoly_t left,
                                           const fmpz_mpoly_t right)
{
    slong bits = coefficient_bits(left) + coefficient_bits(right);

    if (degree(left, ring->context) + degree(right, ring->context) > MATH_DEGREE || bits > MATH_COEFFICIENT_BITS)
        return MATH_TOO_LARGE_VALUE;
    if (!math_spend(ring->decider, 100 + left->length * right->length * (30 + bits / 8)))
        return MATH_TOO_LARGE_VALUE;
    fmpz_mpoly_mul(product, left, right, ring->context);
    return math_polynomial_check(product);
}

/* At most C(exponent + t - 1, t - 1) terms of t, and not more than the degrees allow. */
static double count_terms(struct math_ring *ring, const fmpz_mpoly_t value, ulong exponent)
{
    double by_choice = 1;
    double by_degree = 1;
    slong degrees[64];

    for (slong i = 1; i < value->length && by_choice < 1e9; i++)
        by_choice *= (double)(exponent + (ulong)i) / (double)i;
    fmpz_mpoly_degrees_si(degrees, value, ring->context);
    for (slong i = 0; i < ring->variables; i++)
        by_degree *= 1 + (double)degrees[i] * (double)exponent;
    return by_choice < by_degree ? by_choice : by_degree;
}

static enum math_outcome polynomial_power(struct math_ring *ring, fmpz_mpoly_t value, ulong exponent)
{
    if (value->length == 0)
        return MATH_VALUE;
    double terms = count_terms(ring, value, exponent);
    double bits = (double)(coefficient_bits(value) + (slong)FLINT_BIT_COUNT(value->length)) * (double)exponent;

    if ((double)degree(value, ring->context) * (double)exponent > MATH_DEGREE || terms > MATH_TERMS ||
        bits > MATH_COEFFICIENT_BITS)
        return MATH_TOO_LARGE_VALUE;
    if (!math_spend(ring->decider, 200 + (int64_t)(terms * (double)value->length * (40 + bits / 8))))
        return MATH_TOO_LARGE_VALUE;
    return fmpz_mpoly_pow_ui(value, value, exponent, ring->context) ? MATH_VALUE : MATH_TOO_LARGE_VALUE;
}

/* --- fractions --- */

/* Integers that divide both parts are taken out; the sign goes up. */
static void take_out_content(struct math_fraction *value)
{
    MATH_LOCAL_FMPZ(content);
    fmpz_mpoly_struct *above = value->above;
    fmpz_mpoly_struct *below = value->below;

    if (below->length == 1 && fmpz_is_one(below->coeffs))
        return;
    _fmpz_vec_content(content, below->coeffs, below->length);
    for (slong i = 0; i < above->length && !fmpz_is_one(content); i++)
        fmpz_gcd(content, content, above->coeffs + i);
    if (fmpz_sgn(below->coeffs) < 0)
        fmpz_neg(content, content);
    if (fmpz_is_one(content))
        return;
    fmpz_mpoly_scalar_divexact_fmpz(below, below, content, value->ring->context);
    if (above->length)
        fmpz_mpoly_scalar_divexact_fmpz(above, above, content, value->ring->context);
    else
        fmpz_mpoly_one(below, value->ring->context);
}

void math_fraction_set(struct math_fraction *value, const struct math_fraction *other)
{
    fmpz_mpoly_set(value->above, other->above, value->ring->context);
    fmpz_mpoly_set(value->below, other->below, value->ring->context);
}

void math_fraction_set_rational(struct math_fraction *value, const fmpq_t rational)
{
    fmpz_mpoly_set_fmpz(value->above, fmpq_numref(rational), value->ring->context);
    fmpz_mpoly_set_fmpz(value->below, fmpq_denref(rational), value->ring->context);
}

void math_fraction_set_variable(struct math_fraction *value, slong variable)
{
    fmpz_mpoly_gen(value->above, variable, value->ring->context);
    fmpz_mpoly_one(value->below, value->ring->context);
}

bool math_fraction_is_rational(const struct math_fraction *value, fmpq_t ret_rational)
{
    const fmpz_mpoly_ctx_struct *context = value->ring->context;

    if (!fmpz_mpoly_is_fmpz(value->above, context) || !fmpz_mpoly_is_fmpz(value->below, context))
        return false;
    fmpz_mpoly_get_fmpz(fmpq_numref(ret_rational), value->above, context);
    fmpz_mpoly_get_fmpz(fmpq_denref(ret_rational), value->below, context);
    fmpq_canonicalise(ret_rational);
    return true;
}

static enum math_outcome add_over_different(struct math_fraction *value, const struct math_fraction *other)
{
    struct math_ring *ring = value->ring;
    MATH_LOCAL_FRACTION(product, ring);
    enum math_outcome outcome = math_polynomial_multiply(ring, value->above, value->above, other->below);

    if (!outcome)
        outcome = math_polynomial_multiply(ring, product.above, other->above, value->below);
    if (!outcome)
        outcome = math_polynomial_multiply(ring, value->below, value->below, other->below);
    if (!outcome)
        fmpz_mpoly_add(value->above, value->above, product.above, ring->context);
    return outcome;
}

enum math_outcome math_fraction_add(struct math_fraction *value, const struct math_fraction *other)
{
    struct math_ring *ring = value->ring;
    enum math_outcome outcome = MATH_VALUE;

    if (!math_spend(ring->decider, 100 + 30 * (value->above->length + other->above->length)))
        return MATH_TOO_LARGE_VALUE;
    if (fmpz_mpoly_equal(value->below, other->below, ring->context))
        fmpz_mpoly_add(value->above, value->above, other->above, ring->context);
    else
        outcome = add_over_different(value, other);
    if (outcome)
        return outcome;
    take_out_content(value);
    return math_polynomial_check(value->above);
}

enum math_outcome math_fraction_multiply(struct math_fraction *value, const struct math_fraction *other)
{
    struct math_ring *ring = value->ring;
    enum math_outcome outcome = math_polynomial_multiply(ring, value->above, value->above, other->above);

    if (!outcome)
        outcome = math_polynomial_multiply(ring, value->below, value->below, other->below);
    if (!outcome)
        take_out_content(value);
    return outcome;
}

static enum math_outcome invert(struct math_fraction *value)
{
    if (fmpz_mpoly_is_zero(value->above, value->ring->context))
        return MATH_NO_VALUE;
    fmpz_mpoly_swap(value->above, value->below, value->ring->context);
    take_out_content(value);
    return MATH_VALUE;
}

enum math_outcome math_fraction_divide(struct math_fraction *value, const struct math_fraction *other)
{
    MATH_LOCAL_FRACTION(inverse, value->ring);

    math_fraction_set(&inverse, other);
    enum math_outcome outcome = invert(&inverse);
    return outcome ? outcome : math_fraction_multiply(value, &inverse);
}

enum math_outcome math_fraction_power(struct math_fraction *value, slong exponent)
{
    enum math_outcome outcome = exponent < 0 ? invert(value) : MATH_VALUE;

    if (!outcome && exponent == 0 && fmpz_mpoly_is_zero(value->above, value->ring->context))
        outcome = MATH_NO_VALUE;
    if (!outcome)
        outcome = polynomial_power(value->ring, value->above, (ulong)labs(exponent));
    if (!outcome)
        outcome = polynomial_power(value->ring, value->below, (ulong)labs(exponent));
    return outcome;
}

void math_fraction_negate(struct math_fraction *value)
{
    fmpz_mpoly_neg(value->above, value->above, value->ring->context);
}
