/* infinity: the ends of intervals. \infty and -\infty have a value only alone; arithmetic with them has none. */
#ifndef VERIFIERS_MATH_INFINITY_H
#define VERIFIERS_MATH_INFINITY_H

#include "verifiers/math/decider.h"

bool math_has_infinity(const struct math_node *node); /* but not inside of an operator: \sum^\infty is notation */

/* MATH_VALUE: the scalar is plus or minus infinity, *ret_sign. MATH_NO_VALUE: \infty - \infty, \infty + 1, …
 * MATH_OTHERWISE: there is none in it. */
enum math_outcome math_infinity(const struct math_node *node, int *ret_sign);

#endif
