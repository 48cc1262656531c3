/* angle: rational multiples of pi, and the sines and arcs that are known in radicals. */
#ifndef VERIFIERS_MATH_ANGLE_H
#define VERIFIERS_MATH_ANGLE_H

#include "verifiers/math/decider.h"

/* MATH_VALUE: the scalar is *ret_turn · pi by the look of it. Degrees count as angles. */
enum math_outcome math_multiple_of_pi(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple);

/* The sine of multiple · pi as a tree of integers and square roots, for multiples of pi/12, pi/10, pi/8; else NULL. */
struct math_node *math_exact_sine(struct math_decider *decider, const fmpq_t multiple);

#endif
