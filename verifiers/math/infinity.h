/* infinity: scalars with an infinity in them: ends of intervals. */
#ifndef VERIFIERS_MATH_INFINITY_H
#define VERIFIERS_MATH_INFINITY_H

#include "verifiers/math/decider.h"

bool math_has_infinity(const struct math_node *node); /* but not inside of an operator: \sum^\infty is notation */

/* MATH_VALUE: the scalar is plus or minus infinity, *ret_sign. MATH_NO_VALUE: \infty - \infty, 0 · \infty, …
 * MATH_OTHERWISE: it is finite, or has no such simple form. */
enum math_outcome math_infinity(struct math_decider *decider, const struct math_node *node, int *ret_sign);

#endif
