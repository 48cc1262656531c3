#include "tests/unit/verifiers/decisions.h"

#include "tests/unit/base/cmocka_all.h"
#include "verifiers/math/parse.h"

#define WORK 1000000

static struct math_node *read_answer(struct math_arena *arena, const char *text)
{
    struct math_reading reading = {.max_depth = 256};
    struct math_parse_error error = {0, "?"};
    struct math_node *node = NULL;

    if (math_parse(arena, text_of(text), &reading, &node, &error) != MATH_PARSED)
        fail_msg("%s is not read: %s expected at %zu", text, error.expected, error.at_bytes);
    return node;
}

enum math_decision decide(const char *reference, const char *answer, bool percent_is_unit)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(1 << 20);
    struct math_decider *decider = math_decider_create(arena, WORK);
    struct math_rules rules = {.arena = arena, .percent_is_unit = percent_is_unit};
    enum math_decision decision =
        math_compare(decider, read_answer(arena, reference), read_answer(arena, answer), &rules);

    math_decider_destroy(decider);
    return decision;
}

void expect_decision(const char *reference, const char *answer, enum math_decision expected)
{
    enum math_decision decision = decide(reference, answer, false);

    if (decision != expected)
        fail_msg("%s against %s: %s, expected %s", answer, reference, math_decision_names[decision],
                 math_decision_names[expected]);
}

void same(const char *left, const char *right)
{
    expect_decision(left, right, MATH_EQUAL);
    expect_decision(right, left, MATH_EQUAL);
}

void differ(const char *left, const char *right)
{
    expect_decision(left, right, MATH_DIFFERENT);
    expect_decision(right, left, MATH_DIFFERENT);
}

void never(const char *left, const char *right)
{
    expect_decision(left, right, MATH_UNDECIDED);
    expect_decision(right, left, MATH_UNDECIDED);
}
