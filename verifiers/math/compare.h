/* compare: is this answer the reference? Structures; the scalars in them go to decide.h. */
#ifndef VERIFIERS_MATH_COMPARE_H
#define VERIFIERS_MATH_COMPARE_H

#include "verifiers/math/decide.h"

struct math_rules {
    bool percent_is_unit;
    const fmpq *relative; /* tolerance; NULL: exact */
    const fmpq *absolute;
};

/* MATH_DIFFERENT also for another shape. */
enum math_decision math_compare(struct math_decider *decider, const struct math_node *reference,
                                const struct math_node *answer, const struct math_rules *rules);

enum math_form { MATH_FORM_ANY, MATH_FORM_EVALUATED, MATH_FORM_REDUCED, MATH_FORM_FACTORED };

/* Is the answer written in the form that was asked for? The values are already known to be equal. */
bool math_has_form(const struct math_node *reference, const struct math_node *answer, enum math_form form);

#endif
