/* form: a scalar as a fraction of polynomials in generators: names, constants, roots of primes, and parts that are not
 * looked into (\sqrt{x^2+1}, \ln x, 2^n, …), which are the same generator wherever their arguments are equal.
 *
 * A difference that reduces to 0 by the generators' relations ((\sqrt 2)^2 = 2, i^2 = -1, \sin^2 + \cos^2 = 1) proves
 * "equal", where both sides have a value at all. Another difference proves "different" only if all generators are
 * names. */
#ifndef VERIFIERS_MATH_FORM_H
#define VERIFIERS_MATH_FORM_H

#include "verifiers/math/decider.h"

struct math_form_finding {
    bool zero;      /* the difference is 0 */
    bool free;      /* the only generators are names: zero is the whole truth */
    bool notation;  /* operators or calls are among them */
    bool divisions; /* by something that may be 0 without looking so */
};

/* MATH_NO_VALUE: a denominator is 0. MATH_OTHERWISE: a part has no form. */
enum math_outcome math_form_difference(struct math_decider *decider, const struct math_node *left,
                                       const struct math_node *right, struct math_form_finding *ret_finding);

struct math_proportion {
    bool proportional; /* the numerators, in lowest terms, by a constant */
    bool whole;        /* the denominators are constant: left = c · right as they stand */
    bool free;         /* the only generators are names: not proportional is the whole truth */
    int sign;          /* of a rational c, else 0 */
};

/* left = c · right after both are in lowest terms and their denominators are dropped, with a constant c; neither is 0.
 */
enum math_outcome math_form_proportional(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right, struct math_proportion *ret_proportion);

#endif
