/* modular: rational functions at one point modulo a prime. Two values that differ prove "different", without expanding
 * anything. */
#ifndef VERIFIERS_MATH_MODULAR_H
#define VERIFIERS_MATH_MODULAR_H

#include "verifiers/math/decider.h"

/* MATH_VALUE: *ret_value. MATH_OTHERWISE: something else than + - · / and whole powers of names and numbers, or a
 * denominator that is 0 there. The point depends on the names alone. */
enum math_outcome math_modular(struct math_decider *decider, const struct math_node *node, ulong *ret_value);

#endif
