/* breaks: where an expression with names passes from one formula to another, as |x - 3| does at 3. Points on one side
 * say nothing about the other. */
#ifndef VERIFIERS_MATH_BREAKS_H
#define VERIFIERS_MATH_BREAKS_H

#include "verifiers/math/decider.h"

#define MATH_BREAKS 16

/* Of one name each, about where they are; 0 is not among them. */
struct math_breaks {
    size_t count;
    struct text name[MATH_BREAKS];
    fmpq at[MATH_BREAKS]; /* in any order */
};

void math_breaks_clear(struct math_breaks *breaks);

/* Adds those of absolute values, signs, choices, even roots of squares and arcs of quotients. False: not all of them
 * can be found (rounding, nested ones, curves); equality at points is no evidence then. Changes of sign at 0, and
 * between names (|x - y|), need no entry: points lie on both sides of them anyway. */
bool math_find_breaks(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks);

#endif
