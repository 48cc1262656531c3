/* ball: a scalar as a complex ball (Arb) that surely contains it. Two disjoint balls prove "different".
 *
 * Real numbers keep an imaginary part that is exactly 0, as long as it is known. Roots of odd degree of negative real
 * numbers are real, also as a power with an odd denominator that is a rational by arithmetic: \sqrt[3]{-8} and
 * (-8)^{1/3} are -2. Everything else is the principal value. */
#ifndef VERIFIERS_MATH_BALL_H
#define VERIFIERS_MATH_BALL_H

#include "verifiers/math/decider.h"

/* MATH_VALUE: the ball is finite and the scalar has a value. MATH_OTHERWISE: nothing can be said at this precision, or
 * there are unbound names. ret_value: initialised. */
enum math_outcome math_ball(struct math_decider *decider, const struct math_node *node, slong bits, acb_t ret_value);

#endif
