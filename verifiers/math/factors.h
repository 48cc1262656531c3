/* factors: an integer as a product of powers of primes, as far as that is cheap. A cofactor that is not factored counts
 * as one base: equal roots and logarithms may then not be found equal, but nothing false is said. */
#ifndef VERIFIERS_MATH_FACTORS_H
#define VERIFIERS_MATH_FACTORS_H

#include "verifiers/math/decider.h"

#define MATH_FACTORS 64

struct math_factors {
    size_t count;
    fmpz bases[MATH_FACTORS]; /* above 1, different */
    slong exponents[MATH_FACTORS];
};

void math_factors_clear(struct math_factors *factors);

/* Of |value|, not 0: numerator and denominator, the latter with exponents below 0. ret_factors: {0}. */
enum math_outcome math_factors_of(struct math_decider *decider, const fmpq_t value, struct math_factors *ret_factors);

#endif
