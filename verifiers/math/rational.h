/* rational: a scalar that is a rational by arithmetic, exactly. Bounded before each power, factorial and binomial. */
#ifndef VERIFIERS_MATH_RATIONAL_H
#define VERIFIERS_MATH_RATIONAL_H

#include "verifiers/math/decider.h"

/* MATH_OTHERWISE: it has names, constants, irrational roots, … ret_value: initialised. Roots count if they are exact.
 */
enum math_outcome math_rational(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value);

/* Arithmetic within the bounds; ret may be one of the operands. */
enum math_outcome math_rational_power(struct math_decider *decider, const fmpq_t base, const fmpq_t exponent,
                                      fmpq_t ret_value);

/* value!, or value!! if doubled, of an integer */
enum math_outcome math_rational_factorial(struct math_decider *decider, const fmpq_t value, bool doubled,
                                          fmpq_t ret_value);

#endif
