/* decider: shared by the files behind decide.h. Private to them.
 *
 * Each way of working out a scalar (rational.h, ball.h, form.h, field.h) takes a tree and answers with an outcome, so
 * that the caller can try the next way. All of them look names up in the decider's bindings, and all of them take
 * their work from the one allowance before it is begun. */
#ifndef VERIFIERS_MATH_DECIDER_H
#define VERIFIERS_MATH_DECIDER_H

#include "server/base/cleanup.h"
#include "verifiers/math/decide.h"

#include <acb.h>
#include <calcium/ca.h>

/* Not this way | proven to have no value | beyond a bound. Ordered by what the whole is if parts differ: the largest.
 */
enum math_outcome { MATH_VALUE, MATH_OTHERWISE, MATH_TOO_LARGE_VALUE, MATH_NO_VALUE };

/* The meaning of \log without a base, at the moment. */
enum math_log_reading { MATH_LOG_10, MATH_LOG_E };

/* name stands for value: a point, or the index of a finite sum. The innermost comes first. */
struct math_binding {
    struct text name;
    const fmpq *value;
    const struct math_binding *outer;
};

#define MATH_EXACT_SINES 13

struct math_decider {
    struct math_arena *arena;
    int64_t work;
    bool exhausted; /* something did not fit the allowance; stays */
    const char *method;
    const struct math_binding *bindings;
    enum math_log_reading log_reading;
    bool degrees_are_angles; /* inside the argument of a trigonometric function */
    bool real_only;          /* balls: a part that is not real has no value, as in sqrt(x) sqrt(y) at negative points */
    struct math_node *sines[MATH_EXACT_SINES][2]; /* written once (angle.h): the positive ones, the negative ones */
    bool has_field;
    ca_ctx_t field;
};

/* Bounds of a number, in bits, whatever the allowance. */
#define MATH_VALUE_BITS 262144

/* Takes units from the allowance; false if they are not there: do not begin. */
static inline bool math_spend(struct math_decider *decider, int64_t units)
{
    if (units < 0 || units > decider->work) {
        decider->exhausted = true;
        return false;
    }
    decider->work -= units;
    return true;
}

static inline const fmpq *math_bound_value(const struct math_decider *decider, struct text name)
{
    for (const struct math_binding *binding = decider->bindings; binding; binding = binding->outer)
        if (text_same(binding->name, name))
            return binding->value;
    return NULL;
}

static inline bool math_is_trigonometric(enum math_function function)
{
    return function >= MATH_SIN && function <= MATH_CSC;
}

static inline enum math_outcome math_worse(enum math_outcome one, enum math_outcome other)
{
    return one > other ? one : other;
}

/* Locals of FLINT's types: initialised, and cleared at the end of their block. */
static inline void math_clear_fmpq(fmpq_t *value)
{
    fmpq_clear(*value);
}

static inline void math_clear_fmpz(fmpz_t *value)
{
    fmpz_clear(*value);
}

static inline void math_clear_acb(acb_t *value)
{
    acb_clear(*value);
}

static inline void math_clear_arb(arb_t *value)
{
    arb_clear(*value);
}

#define MATH_LOCAL_FMPQ(name) _cleanup_(math_clear_fmpq) fmpq_t name = {{0, 1}}
#define MATH_LOCAL_FMPZ(name) _cleanup_(math_clear_fmpz) fmpz_t name = {0}
#define MATH_LOCAL_ACB(name)                                                                                           \
    _cleanup_(math_clear_acb) acb_t name;                                                                              \
    acb_init(name)
#define MATH_LOCAL_ARB(name)                                                                                           \
    _cleanup_(math_clear_arb) arb_t name;                                                                              \
    arb_init(name)

/* --- finite sums and products --- */

/* \sum_{k=a}^{b} body with integers a, b: the index, its ends, the body. */
struct math_range {
    struct text index;
    slong from, to;
    bool product;
    const struct math_node *body;
};

/* MATH_VALUE: *ret_range is filled; at most MATH_RANGE_TERMS terms. An empty range is fine. */
enum math_outcome math_range_of(struct math_decider *decider, const struct math_node *node,
                                struct math_range *ret_range);
#define MATH_RANGE_TERMS 10000

#endif
