/* polynomial: fractions of integer polynomials in many variables (FLINT), within bounds of degree, terms and size.
 *
 * Fractions are not reduced by common divisors of polynomials, only by integers: whether a difference is 0 shows
 * without. Each operation is counted before it is begun. */
#ifndef VERIFIERS_MATH_POLYNOMIAL_H
#define VERIFIERS_MATH_POLYNOMIAL_H

#include "verifiers/math/decider.h"

#include <flint/fmpz_mpoly.h>

struct math_ring {
    struct math_decider *decider;
    fmpz_mpoly_ctx_t context;
    slong variables;
};

struct math_fraction {
    struct math_ring *ring;
    fmpz_mpoly_t above, below; /* below is never the zero polynomial */
};

void math_fraction_init(struct math_fraction *fraction, struct math_ring *ring); /* 0/1 */
void math_fraction_clear(struct math_fraction *fraction);
#define MATH_LOCAL_FRACTION(name, of)                                                                                  \
    _cleanup_(math_fraction_clear) struct math_fraction name;                                                          \
    math_fraction_init(&name, of)

#define MATH_TERMS 4096
#define MATH_DEGREE 100000
#define MATH_COEFFICIENT_BITS 65536

/* MATH_VALUE or MATH_TOO_LARGE_VALUE */
enum math_outcome math_polynomial_multiply(struct math_ring *ring, fmpz_mpoly_t product, const fmpz_mpoly_t left,
                                           const fmpz_mpoly_t right);
enum math_outcome math_polynomial_check(const fmpz_mpoly_t value);

void math_fraction_set(struct math_fraction *value, const struct math_fraction *other);
void math_fraction_set_rational(struct math_fraction *value, const fmpq_t rational);
void math_fraction_set_variable(struct math_fraction *value, slong variable);
/* True: *ret_rational is it. */
bool math_fraction_is_rational(const struct math_fraction *value, fmpq_t ret_rational);

/* value is changed; on another outcome than MATH_VALUE it is anything. Division by the zero polynomial: MATH_NO_VALUE.
 */
enum math_outcome math_fraction_add(struct math_fraction *value, const struct math_fraction *other);
enum math_outcome math_fraction_multiply(struct math_fraction *value, const struct math_fraction *other);
enum math_outcome math_fraction_divide(struct math_fraction *value, const struct math_fraction *other);
enum math_outcome math_fraction_power(struct math_fraction *value, slong exponent);
void math_fraction_negate(struct math_fraction *value);

#endif
