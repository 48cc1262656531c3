/* compare: is this answer the reference? Structures; the scalars in them go to decide.h.
 *
 * One value is not a list of it, a set has no order, brackets and order of a tuple count, a row is no column. A name
 * before = says what the value is of: one side may leave it out, another name is another answer. A unit may stand on
 * one side; two different ones differ. A side without a value (1/0, 42 = 43) equals nothing, itself included.
 * docs/verifiers/math.md has the rules with examples. */
#ifndef VERIFIERS_MATH_COMPARE_H
#define VERIFIERS_MATH_COMPARE_H

#include "verifiers/math/decide.h"

struct math_rules {
    struct math_arena *arena;    /* for what comparing builds: differences, both values of \pm */
    bool percent_is_unit;        /* 25\% where the reference has no such sign: 25, not 1/4 */
    bool percent_may_be_missing; /* 25 for a reference 25\%, too */
    struct text prompt;          /* of the task: what stands in it as a formula was asked for; TEXT_NONE: unknown */
    const fmpq *relative;        /* tolerance for numbers; NULL: exact */
    const fmpq *absolute;
};

/* MATH_DIFFERENT also for another shape. MATH_UNDEFINED if one side has no value. */
enum math_decision math_compare(struct math_decider *decider, const struct math_node *reference,
                                const struct math_node *answer, const struct math_rules *rules);

enum math_form { MATH_FORM_ANY, MATH_FORM_EVALUATED, MATH_FORM_REDUCED, MATH_FORM_FACTORED, MATH_FORMS };

/* Is the answer written in the form that was asked for? The values are already known to be equal.
 *
 *   evaluated  no arithmetic on numbers is left to do, no terms to collect, nothing to cancel: 391, not 17 · 23; 1/2,
 * not 2/4; 2\pi, not \pi + \pi; the reference's notation is fine reduced    evaluated, and no square factor stands
 * under a root factored   the reference's factors, in any order, each up to its sign */
bool math_has_form(struct math_decider *decider, const struct math_node *reference, const struct math_node *answer,
                   enum math_form form, const struct math_rules *rules);

#endif
