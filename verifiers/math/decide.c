#include "verifiers/math/decide.h"

#include "verifiers/math/ball.h"
#include "verifiers/math/decider.h"
#include "verifiers/math/field.h"
#include "verifiers/math/form.h"
#include "verifiers/math/infinity.h"
#include "verifiers/math/rational.h"

const char *const math_decision_names[MATH_DECISIONS] = {
    [MATH_EQUAL] = "equal",         [MATH_DIFFERENT] = "different", [MATH_UNDEFINED] = "undefined",
    [MATH_UNDECIDED] = "undecided", [MATH_LIMIT] = "limit",
};

struct math_decider *math_decider_create(struct math_arena *arena, int64_t work)
{
    struct math_decider *decider = xcalloc(1, sizeof *decider);

    decider->arena = arena;
    decider->work = work;
    decider->method = "rational";
    decider->log_reading = MATH_LOG_10;
    return decider;
}

void math_decider_destroy(struct math_decider *decider)
{
    if (!decider)
        return;
    if (decider->has_field)
        ca_ctx_clear(decider->field);
    free(decider);
}

int64_t math_decider_work_left(const struct math_decider *decider)
{
    return decider->work;
}

bool math_decider_spend(struct math_decider *decider, int64_t work)
{
    return math_spend(decider, work);
}

const char *math_decider_method(const struct math_decider *decider)
{
    return decider->method;
}

bool math_decide_rational(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    return math_rational(decider, node, ret_value) == MATH_VALUE;
}

static enum math_decision equal_if(bool equal)
{
    return equal ? MATH_EQUAL : MATH_DIFFERENT;
}

/* --- constants --- */

/* MATH_VALUE: both have a value, *ret_apart: they are different. */
static enum math_outcome compare_balls(struct math_decider *decider, const struct math_node *left,
                                       const struct math_node *right, slong bits, bool *ret_apart)
{
    MATH_LOCAL_ACB(one);
    MATH_LOCAL_ACB(other);
    enum math_outcome outcome = math_ball(decider, left, bits, one);

    if (outcome == MATH_NO_VALUE)
        return outcome;
    outcome = math_worse(outcome, math_ball(decider, right, bits, other));
    *ret_apart = !outcome && !acb_overlaps(one, other);
    return outcome;
}

static enum math_decision decide_constants(struct math_decider *decider, const struct math_node *left,
                                           const struct math_node *right, bool too_large)
{
    static const slong precisions[] = {64, 128, 512, 2048};
    bool apart = false, equal = false, have_values = false;
    enum math_outcome outcome;

    for (size_t i = 0; i < ARRAY_LENGTH(precisions); i++) {
        decider->method = "ball";
        outcome = compare_balls(decider, left, right, precisions[i], &apart);
        if (outcome == MATH_NO_VALUE)
            return MATH_UNDEFINED;
        if (apart)
            return MATH_DIFFERENT;
        have_values = have_values || outcome == MATH_VALUE;
        if (i != 1 || too_large)
            continue;
        decider->method = "field";
        outcome = math_field_equal(decider, left, right, &equal);
        if (outcome == MATH_NO_VALUE)
            return MATH_UNDEFINED;
        if (!outcome)
            return equal_if(equal);
    }
    return too_large || decider->exhausted ? MATH_LIMIT : MATH_UNDECIDED;
}

/* --- names --- */

static enum math_decision decide_with_names(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right)
{
    struct math_form_finding finding = {0};

    decider->method = "rational function";
    enum math_outcome outcome = math_form_difference(decider, left, right, &finding);
    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (outcome == MATH_TOO_LARGE_VALUE)
        return MATH_LIMIT;
    if (!outcome && finding.free)
        return equal_if(finding.zero);
    return MATH_UNDECIDED;
}

/* --- infinities --- */

static enum math_decision decide_infinities(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right)
{
    int of_left = 0, of_right = 0;
    enum math_outcome one = math_infinity(decider, left, &of_left);
    enum math_outcome other = math_infinity(decider, right, &of_right);

    if (one > MATH_OTHERWISE || other > MATH_OTHERWISE)
        return MATH_UNDEFINED;
    return equal_if(!one && !other && of_left == of_right);
}

/* --- equations --- */

enum math_decision math_decide_proportional(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right, int *ret_sign)
{
    bool proportional = false;

    *ret_sign = 0;
    decider->method = "rational function";
    enum math_outcome outcome = math_form_proportional(decider, left, right, &proportional, ret_sign);
    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (outcome == MATH_TOO_LARGE_VALUE)
        return MATH_LIMIT;
    return outcome ? MATH_UNDECIDED : equal_if(proportional);
}

/* --- all --- */

enum math_decision math_decide_equal(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right)
{
    MATH_LOCAL_FMPQ(one);
    MATH_LOCAL_FMPQ(other);
    enum math_outcome of_left, of_right;

    decider->method = "rational";
    of_left = math_rational(decider, left, one);
    of_right = math_rational(decider, right, other);
    if (of_left == MATH_NO_VALUE || of_right == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!of_left && !of_right)
        return equal_if(fmpq_equal(one, other));
    if (math_has_infinity(left) || math_has_infinity(right))
        return decide_infinities(decider, left, right);
    if (math_has_names(left) || math_has_names(right))
        return decide_with_names(decider, left, right);
    return decide_constants(decider, left, right, of_left == MATH_TOO_LARGE_VALUE || of_right == MATH_TOO_LARGE_VALUE);
}
