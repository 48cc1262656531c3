/* field: a scalar as an element of an exact field (Calcium): equal and different are both proven.
 *
 * No call into Calcium can be interrupted, so what goes in is bounded: sizes of integers, degrees, the number of
 * extensions. Same conventions as ball.h. */
#ifndef VERIFIERS_MATH_FIELD_H
#define VERIFIERS_MATH_FIELD_H

#include "verifiers/math/decider.h"

/* MATH_VALUE: *ret_equal. MATH_OTHERWISE: not decided. */
enum math_outcome math_field_equal(struct math_decider *decider, const struct math_node *left,
                                   const struct math_node *right, bool *ret_equal);

/* MATH_VALUE: *ret_real: whether the constant is a real number. */
enum math_outcome math_field_is_real(struct math_decider *decider, const struct math_node *node, bool *ret_real);

#endif
