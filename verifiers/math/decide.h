/* decide: are two scalars equal? Exactly, or not at all.
 *
 * In turn, each only where the one before it could not say: rationals (FLINT); rational functions in names and in
 * opaque parts (fmpz_mpoly): is the difference 0?; constants by balls of rising precision (Arb: proves "different") and
 * by exact fields (Calcium: proves both); anything with names by both at drawn points. Balls that still overlap at the
 * highest precision are `undecided`, never equal.
 *
 * Work is counted, not timed: every power, factorial, expansion, field operation takes from one allowance before it is
 * begun, so the same input has the same verdict on every machine. A value that does not fit is MATH_LIMIT.
 * Scalars only (math_is_scalar); PLUS_MINUS and QUANTITY must be gone: compare.h splits them off. PERCENT is a
 * hundredth, DEGREES outside of a trigonometric function count for their number.
 * 0^0 has no value, nor has arithmetic with infinity. Odd roots of negative numbers are real, (-8)^{1/3} too, other
 * powers and roots principal. \log without a base: both readings must agree, or base 10 if one side alone has it.
 * Names stand for real numbers. Pure; the points drawn depend on the trees alone. One thread. */
#ifndef VERIFIERS_MATH_DECIDE_H
#define VERIFIERS_MATH_DECIDE_H

#include "verifiers/math/tree.h"

enum math_decision {
    MATH_EQUAL,
    MATH_DIFFERENT,
    MATH_UNDEFINED, /* the left or the right has no value: 1/0, 0/0, \ln 0. Never equal to anything */
    MATH_UNDECIDED,
    MATH_LIMIT,
    MATH_DECISIONS
};

extern const char *const math_decision_names[MATH_DECISIONS];

struct math_decider; /* of one verdict: the allowance of work, Calcium's context */

/* work: in word operations, near a nanosecond each; an ordinary verdict takes less than a hundredth of this. */
#define MATH_DECIDER_WORK 20000000
struct math_decider *math_decider_create(struct math_arena *arena, int64_t work);
void math_decider_destroy(struct math_decider *decider); /* NULL is fine */
/* Takes work of the caller's own from the allowance. False if it is not there: do not begin. */
bool math_decider_spend(struct math_decider *decider, int64_t work);
/* Static words: how the last decision was made: "rational", "rational function", "ball", "field", "points", "notation"
 */
const char *math_decider_method(const struct math_decider *decider);

enum math_decision math_decide_equal(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right);

/* left = c · right with a constant c that is not 0, both not 0 (for equations; rational functions: denominators are
 * cleared first). *ret_sign: of c, for inequalities; 0 if it is not known, or only the numerators are proportional. */
enum math_decision math_decide_proportional(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right, int *ret_sign);

/* The sign of left - right for real constants (also with infinity): *ret_sign -1, 0, 1 if the answer is MATH_EQUAL (0)
 * or MATH_DIFFERENT (±1). MATH_UNDEFINED: not real. */
enum math_decision math_decide_order(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right, int *ret_sign);

/* |left - right| <= max(absolute, relative · |left|), left being the reference: exact for rationals, else by balls. */
enum math_decision math_decide_within(struct math_decider *decider, const struct math_node *left,
                                      const struct math_node *right, const fmpq_t relative, const fmpq_t absolute);

/* An exact rational, if the scalar is one by arithmetic and within the bounds. */
bool math_decide_rational(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value);

#endif
