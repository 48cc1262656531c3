/* points: two scalars with names, at drawn points. */
#ifndef VERIFIERS_MATH_POINTS_H
#define VERIFIERS_MATH_POINTS_H

#include "verifiers/math/decider.h"

/* proven: their difference is 0 by its form, so that one point where both are defined is enough.
 *
 * Else both are evaluated by balls at up to 32 points that depend on the trees alone: rationals of both signs, small
 * and large, between 0 and 1 and above, some with large denominators, also beyond every number in the trees and between
 * all breaks (breaks.h); positive integers where factorials, binomials or powers of negative numbers want them. A point
 * counts where both are defined and real (or complex, where i occurs) and known to some digits; one apart is
 * "different". Where at least 4 counted, none was apart and all breaks are known, 3 of the small ones are decided
 * exactly: equal at all of them is "equal", by the method "points". */
enum math_decision math_decide_at_points(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right, bool proven);

/* left / right at such points: MATH_DIFFERENT if two quotients are apart, else MATH_UNDECIDED. *ret_sign: of the
 * quotient at all of them, 0 if it changes or none counted. */
enum math_decision math_quotient_at_points(struct math_decider *decider, const struct math_node *left,
                                           const struct math_node *right, int *ret_sign);

#endif
