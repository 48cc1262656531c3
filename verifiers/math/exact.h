/* exact: two constants, all names bound. Shared by decide.c and points.c. */
#ifndef VERIFIERS_MATH_EXACT_H
#define VERIFIERS_MATH_EXACT_H

#include "verifiers/math/decider.h"

/* Balls, forms and fields in turn, the cheap ones first. */
enum math_decision math_decide_constants(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right);

/* The same where balls of 64 bits overlap. */
enum math_decision math_decide_overlapping(struct math_decider *decider, const struct math_node *left,
                                           const struct math_node *right);

/* MATH_VALUE: both have a value; *ret_apart: not the same. MATH_NO_VALUE: one of them surely has none. */
enum math_outcome math_compare_balls(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right, slong bits, bool *ret_apart);

#endif
