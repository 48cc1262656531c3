#include "verifiers/math/decide.h"

#include "verifiers/math/decider.h"
#include "verifiers/math/exact.h"
#include "verifiers/math/form.h"
#include "verifiers/math/infinity.h"
#include "verifiers/math/modular.h"
#include "verifiers/math/points.h"
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

/* --- names --- */

/* MATH_VALUE: both are rational functions in names; *ret_apart: two values modulo a prime prove "different" at once. */
static enum math_outcome compare_modulo_a_prime(struct math_decider *decider, const struct math_node *left,
                                                const struct math_node *right, bool *ret_apart)
{
    ulong one, other;
    enum math_outcome outcome = math_modular(decider, left, &one);

    if (!outcome)
        outcome = math_modular(decider, right, &other);
    *ret_apart = !outcome && one != other;
    return outcome;
}

/* An operator that is no finite sum, or f(x), has a value for nobody here. A name in a part of a complex number is
 * hardly a real one. */
static bool is_opaque(struct math_decider *decider, const struct math_node *node)
{
    struct math_range range;

    if (node->kind == MATH_OPERATOR && math_range_of(decider, node, &range) != MATH_VALUE)
        return true;
    if (node->kind == MATH_CALL)
        return true;
    if (node->kind == MATH_FUNCTION && node->function >= MATH_RE && node->function <= MATH_CONJUGATE)
        return math_has_names(node);
    for (size_t i = 0; i < node->count; i++)
        if (is_opaque(decider, node->children[i]))
            return true;
    return false;
}

/* Names but the index of the sum or product they stand in. */
static bool has_free_names(const struct math_node *node, struct text index)
{
    if (node->kind == MATH_NAME)
        return !(index.data && text_same(node->text, index));
    if (node->kind == MATH_OPERATOR && node->children[0]->kind == MATH_RELATION &&
        node->children[0]->children[0]->kind == MATH_NAME)
        index = node->children[0]->children[0]->text;
    for (size_t i = 0; i < node->count; i++)
        if (has_free_names(node->children[i], index))
            return true;
    return false;
}

static enum math_decision decide_with_names(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right)
{
    struct math_form_finding finding = {0};
    bool apart;

    decider->method = "rational function";
    bool rational = compare_modulo_a_prime(decider, left, right, &apart) == MATH_VALUE;
    if (apart)
        return MATH_DIFFERENT;
    if (rational && math_same_tree(left, right)) {
        decider->method = "notation";
        return MATH_EQUAL; /* and defined: no denominator was 0 at that point */
    }
    enum math_outcome outcome = math_form_difference(decider, left, right, &finding);
    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!outcome && finding.free)
        return equal_if(finding.zero);
    if (rational)
        return MATH_LIMIT;
    if (is_opaque(decider, left) || is_opaque(decider, right)) {
        decider->method = "notation";
        bool same = !outcome && finding.zero && (!finding.divisions || math_same_tree(left, right));
        return same ? MATH_EQUAL : MATH_UNDECIDED;
    }
    enum math_decision decision = math_decide_at_points(decider, left, right, !outcome && finding.zero);
    bool too_large = outcome == MATH_TOO_LARGE_VALUE || decider->exhausted;
    return decision == MATH_UNDECIDED && too_large ? MATH_LIMIT : decision;
}

/* --- infinities --- */

static enum math_decision decide_infinities(const struct math_node *left, const struct math_node *right)
{
    int of_left = 0;
    int of_right = 0;
    enum math_outcome one = math_infinity(left, &of_left);
    enum math_outcome other = math_infinity(right, &of_right);

    if (one > MATH_OTHERWISE || other > MATH_OTHERWISE)
        return MATH_UNDEFINED;
    return equal_if(!one && !other && of_left == of_right);
}

/* --- equations --- */

/* By the form, or not proportional by quotients at points that are apart. */
static enum math_decision decide_proportion(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right, int *ret_sign)
{
    struct math_proportion proportion;
    enum math_outcome outcome = math_form_proportional(decider, left, right, &proportion);
    bool found = !outcome && proportion.proportional;

    if (outcome == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!outcome && (proportion.free || found) && (!found || !proportion.whole || proportion.sign)) {
        *ret_sign = found && proportion.whole ? proportion.sign : 0;
        return equal_if(found);
    }
    enum math_decision decision = math_quotient_at_points(decider, left, right, ret_sign);
    if (found)
        return *ret_sign ? MATH_EQUAL
                         : MATH_UNDECIDED; /* the quotient has one sign where it was looked at: c is not 0 */
    return decision == MATH_UNDECIDED && outcome == MATH_TOO_LARGE_VALUE ? MATH_LIMIT : decision;
}

enum math_decision math_decide_proportional(struct math_decider *decider, const struct math_node *left,
                                            const struct math_node *right, int *ret_sign)
{
    *ret_sign = 0;
    decider->method = "rational function";
    decider->log_reading = MATH_LOG_10;
    enum math_decision decision = decide_proportion(decider, left, right, ret_sign);
    if (decision != MATH_EQUAL)
        *ret_sign = 0;
    return decision;
}

/* --- all --- */

static enum math_decision decide_value(struct math_decider *decider, const struct math_node *left,
                                       const struct math_node *right)
{
    if (math_has_infinity(left) || math_has_infinity(right))
        return decide_infinities(left, right);
    if (has_free_names(left, TEXT_NONE) || has_free_names(right, TEXT_NONE))
        return decide_with_names(decider, left, right);
    return math_decide_constants(decider, left, right);
}

/* Any fixed order of trees, so that a decision does not depend on which side comes first. */
static int compare_trees(const struct math_node *left, const struct math_node *right)
{
    size_t common = FLINT_MIN(left->text.length_bytes, right->text.length_bytes);
    int order = (left->kind > right->kind) - (left->kind < right->kind);

    if (!order)
        order = (left->count > right->count) - (left->count < right->count);
    if (!order)
        order =
            (left->text.length_bytes > right->text.length_bytes) - (left->text.length_bytes < right->text.length_bytes);
    if (!order && common)
        order = memcmp(left->text.data, right->text.data, common);
    if (!order && left->kind == MATH_NUMBER)
        order = fmpq_cmp(left->value, right->value);
    if (!order && left->kind == MATH_CONSTANT)
        order = (left->constant > right->constant) - (left->constant < right->constant);
    if (!order && left->kind == MATH_FUNCTION)
        order = (left->function > right->function) - (left->function < right->function);
    for (size_t i = 0; i < left->count && !order; i++)
        order = compare_trees(left->children[i], right->children[i]);
    return order;
}

static bool has_plain_logarithm(const struct math_node *node)
{
    if (node->kind == MATH_FUNCTION && node->function == MATH_LOG_PLAIN)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (has_plain_logarithm(node->children[i]))
            return true;
    return false;
}

/* \log without a base is of base 10 or e, and nobody knows. Where both sides have one, both readings must agree; where
 * one side has, it stands for what its writer worked out in base 10, as in \log 100 = 2. Equal in the other reading
 * only is not decided. */
static enum math_decision decide_plain_logarithms(struct math_decider *decider, const struct math_node *left,
                                                  const struct math_node *right, bool both)
{
    decider->log_reading = MATH_LOG_E;
    enum math_decision natural = decide_value(decider, left, right);
    decider->log_reading = MATH_LOG_10;
    enum math_decision common = decide_value(decider, left, right);

    if (natural == common || (common == MATH_EQUAL && !both))
        return common;
    return natural == MATH_EQUAL || common == MATH_EQUAL ? MATH_UNDECIDED : FLINT_MAX(natural, common);
}

enum math_decision math_decide_equal(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right)
{
    MATH_LOCAL_FMPQ(one);
    MATH_LOCAL_FMPQ(other);
    enum math_outcome of_left;
    enum math_outcome of_right;

    decider->method = "rational";
    of_left = math_rational(decider, left, one);
    of_right = math_rational(decider, right, other);
    if (of_left == MATH_NO_VALUE || of_right == MATH_NO_VALUE)
        return MATH_UNDEFINED;
    if (!of_left && !of_right)
        return equal_if(fmpq_equal(one, other));
    if (compare_trees(left, right) > 0) {
        const struct math_node *first = right;
        right = left;
        left = first;
    }
    bool in_left = has_plain_logarithm(left), in_right = has_plain_logarithm(right);
    if (in_left || in_right)
        return decide_plain_logarithms(decider, left, right, in_left && in_right);
    return decide_value(decider, left, right);
}
