/* limits: the limits of one program, from the options and from the row. Pure. Any thread. */
#ifndef VERIFIERS_CODE_LIMITS_H
#define VERIFIERS_CODE_LIMITS_H

#include "verifiers/code/forms.h"

#define CODE_TOTAL_MS 60000 /* total_ms, if it is not given */

/* The options' `limits`: 0, or -1 with the problem. */
int code_limits_check(const json_t *limits, struct verifier_problem *ret_problem);

/* Each limit is the options', else the row's (time_limit, memory_limit), else the default; cpu_ms else is wall_ms. A
 * row's limit is cut to the largest value of its option. */
struct sandbox_limits code_limits_of(const json_t *limits, const struct test_set *set);
/* Of the whole verdict: the service's deadline of it is made of this, too. */
static inline int64_t code_limits_total_us(const json_t *limits)
{
    const json_t *total = json_object_get(limits, "total_ms");

    return (int64_t)((json_is_number(total) ? json_number_value(total) : CODE_TOTAL_MS) * 1000);
}

#endif
