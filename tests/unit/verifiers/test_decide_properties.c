/* decide: what must hold for generated scalars. A true rewriting is never "different" and seldom undecided; a changed
 * value is never "equal"; the order of the two says nothing. The generator is seeded: every run is the same. */
#include "expression.h"
#include "server/base/buffer.h"
#include "verifiers/math/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define ARENA_BYTES 4000000
#define ROUNDS 1500
#define UNDECIDED_PERMILLE 60 /* of the true rewritings */

static uint64_t state;

static size_t pick(size_t count)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(state >> 33) % count;
}

static const char *const constants[] = {
    "2",       "3",          "5",     "7/3",       "-1/2",      "sqrt(2)",   "sqrt(3)",   "root(3, 5)",
    "pi",      "e",          "ln(2)", "sin(1)",    "sqrt(5)",   "12",        "0.25",      "sqrt(2+sqrt(3))",
    "e^(1/2)", "cos(pi/12)", "2^0.5", "atan(1/2)", "log(2, 3)", "sqrt(7)/3", "abs(1-pi)", "(1+sqrt(5))/2",
};
static const char *const names[] = {
    "x",   "y",   "x",   "2*x",       "x^2",     "sqrt(x^2+1)", "x-1",    "3",
    "1/2", "y/x", "e^x", "ln(x^2+2)", "sqrt(2)", "abs(x)",      "sin(x)", "pi",
};

/* A scalar in brackets. */
static void scalar(struct buffer *out, bool with_names, int depth)
{
    static const char *const joints[] = {"+", "-", "*", "+", "*"};

    if (depth == 0 || pick(3) == 0) {
        const char *leaf = with_names ? names[pick(ARRAY_LENGTH(names))] : constants[pick(ARRAY_LENGTH(constants))];
        buffer_append_format(out, "(%s)", leaf);
        return;
    }
    buffer_append_byte(out, '(');
    scalar(out, with_names, depth - 1);
    buffer_append_string(out, joints[pick(ARRAY_LENGTH(joints))]);
    scalar(out, with_names, depth - 1);
    buffer_append_byte(out, ')');
}

/* Identities that hold for all real a, b; each letter is replaced by a scalar. */
static const struct {
    const char *left, *right;
} identities[] = {
    {"A*(B+C)", "A*B+A*C"},
    {"A/(B^2+1)", "A*(B^2+1)^-1"},
    {"A-B", "-(B-A)"},
    {"(A+B)^3", "A^3+3*A^2*B+3*A*B^2+B^3"},
    {"(A+B)*(A-B)", "A^2-B^2"},
    {"sqrt(A^2+1)^2", "A^2+1"},
    {"sqrt(A^2+1)*sqrt(B^2+2)", "sqrt((A^2+1)*(B^2+2))"},
    {"1/(sqrt(A^2+2)-sqrt(A^2+1))", "sqrt(A^2+1)+sqrt(A^2+2)"},
    {"(A^2+1)^(3/2)", "(A^2+1)*sqrt(A^2+1)"},
    {"root(3, A^2+1)^3", "A^2+1"},
    {"ln(A^2+1)+ln(B^2+1)", "ln((A^2+1)*(B^2+1))"},
    {"log(3, A^2+1)", "ln(A^2+1)/ln(3)"},
    {"e^(A+B)", "e^A*e^B"},
    {"2^(A+1)", "2*2^A"},
    {"sin(A)^2+cos(A)^2", "1"},
    {"sin(2*A)", "2*sin(A)*cos(A)"},
    {"cos(A+B)", "cos(A)*cos(B)-sin(A)*sin(B)"},
    {"1/(1+e^A)", "e^(-A)/(e^(-A)+1)"},
    {"sinh(A)^2+1", "cosh(A)^2"},
    {"abs(A)^2", "A^2"},
    {"abs(A)*abs(B)", "abs(A*B)"},
};

static void fill(struct buffer *out, const char *pattern, const struct buffer parts[3])
{
    for (; *pattern; pattern++) {
        if (*pattern >= 'A' && *pattern <= 'C')
            buffer_append(out, parts[*pattern - 'A'].data, parts[*pattern - 'A'].length_bytes);
        else
            buffer_append_byte(out, *pattern);
    }
}

static enum math_decision decide(const char *left, const char *right)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(ARENA_BYTES);
    const struct math_node *one = expression(arena, left), *other = expression(arena, right);
    struct math_decider *decider = math_decider_create(arena, MATH_DECIDER_WORK);
    struct math_decider *mirrored = math_decider_create(arena, MATH_DECIDER_WORK);
    enum math_decision decision = math_decide_equal(decider, one, other);

    if (math_decide_equal(mirrored, other, one) != decision) {
        print_error("%s against %s: %s, but not in the other order\n", left, right, math_decision_names[decision]);
        decision = MATH_DECISIONS;
    }
    math_decider_destroy(mirrored);
    math_decider_destroy(decider);
    return decision;
}

struct pair {
    struct buffer left, right;
};

static void pair_finish(struct pair *pair)
{
    buffer_finish(&pair->left);
    buffer_finish(&pair->right);
}

static void draw(struct pair *pair, bool with_names)
{
    struct buffer parts[3];
    size_t identity = pick(ARRAY_LENGTH(identities));

    buffer_init(&pair->left, 100000);
    buffer_init(&pair->right, 100000);
    for (size_t i = 0; i < 3; i++) {
        buffer_init(&parts[i], 10000);
        scalar(&parts[i], with_names, 1);
    }
    fill(&pair->left, identities[identity].left, parts);
    fill(&pair->right, identities[identity].right, parts);
    for (size_t i = 0; i < 3; i++)
        buffer_finish(&parts[i]);
}

static void check_rewritings(bool with_names)
{
    int counts[MATH_DECISIONS + 1] = {0}, wrong = 0;

    state = with_names ? 7 : 11;
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_(pair_finish) struct pair pair;
        draw(&pair, with_names);
        enum math_decision decision = decide(pair.left.data, pair.right.data);
        counts[decision]++;
        if (decision != MATH_EQUAL)
            print_message("# %s against %s: %s\n", pair.left.data, pair.right.data,
                          decision < MATH_DECISIONS ? math_decision_names[decision] : "unsymmetric");
        wrong += decision == MATH_DIFFERENT || decision == MATH_DECISIONS;
    }
    print_message("# %d equal, %d undecided, %d undefined, %d limit\n", counts[MATH_EQUAL], counts[MATH_UNDECIDED],
                  counts[MATH_UNDEFINED], counts[MATH_LIMIT]);
    assert_int_equal(wrong, 0);
    assert_true((counts[MATH_UNDECIDED] + counts[MATH_LIMIT]) * 1000 <= ROUNDS * UNDECIDED_PERMILLE);
}

static void test_true_rewritings_of_constants_are_equal(void **unused)
{
    (void)unused;
    check_rewritings(false);
}

static void test_true_rewritings_with_names_are_equal(void **unused)
{
    (void)unused;
    check_rewritings(true);
}

/* Five ways to another value: b + something small; sqrt(3 b^2 + 1) > b; 2 b^2 + b + 1 > b. */
static void change(char *out, size_t size_bytes, const char *value)
{
    size_t way = pick(5), places = 1 + pick(300);

    if (way == 0)
        snprintf(out, size_bytes, "%s+10^-%zu", value, places);
    else if (way == 1)
        snprintf(out, size_bytes, "%s-10^-%zu*sqrt(2)", value, places);
    else if (way == 2)
        snprintf(out, size_bytes, "%s+pi*10^-%zu", value, places);
    else if (way == 3)
        snprintf(out, size_bytes, "sqrt(3*(%s)^2+1)", value);
    else
        snprintf(out, size_bytes, "2*(%s)^2+(%s)+1", value, value);
}

static void check_changes(bool with_names)
{
    int wrong = 0;

    state = with_names ? 13 : 17;
    for (int i = 0; i < ROUNDS; i++) {
        _cleanup_(pair_finish) struct pair pair;
        char changed[8192];
        draw(&pair, with_names);
        change(changed, sizeof changed, pair.right.data);
        enum math_decision decision = decide(pair.left.data, changed);
        if (decision == MATH_EQUAL || decision == MATH_DECISIONS)
            print_error("%s against %s: equal\n", pair.left.data, changed);
        wrong += decision == MATH_EQUAL || decision == MATH_DECISIONS;
    }
    assert_int_equal(wrong, 0);
}

static void test_changed_constants_are_never_equal(void **unused)
{
    (void)unused;
    check_changes(false);
}

static void test_changed_scalars_with_names_are_never_equal(void **unused)
{
    (void)unused;
    check_changes(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true_rewritings_of_constants_are_equal),
        cmocka_unit_test(test_true_rewritings_with_names_are_equal),
        cmocka_unit_test(test_changed_constants_are_never_equal),
        cmocka_unit_test(test_changed_scalars_with_names_are_never_equal),
    };

    return cmocka_run_group_tests_name("decide-properties", tests, NULL, NULL);
}
