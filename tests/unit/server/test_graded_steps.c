/* The steps of a recorded rollout as process sees them, and advantages of tokens as runs. */
#include "tests/unit/base/cmocka_all.h"

#include <stdio.h>

#include "server/base/cleanup.h"
#include "server/record/graded_steps.h"

#define VERDICTS                                                                                                       \
    "[{\"id\":\"prm\",\"steps\":[{\"end\":2,\"score\":1.0,\"byte_end\":3},{\"end\":4,\"score\":0.5,\"byte_end\":null}" \
    "]},"                                                                                                              \
    "{\"id\":\"right\",\"score\":1.0},{\"id\":\"style\",\"steps\":[{\"end\":1,\"score\":1.0},{\"end\":2,\"score\":0."  \
    "0}]},"                                                                                                            \
    "{\"id\":\"blank\",\"steps\":[]},{\"id\":\"held\",\"steps\":[{\"end\":3,\"score\":1.0}]}]"

static struct graded_steps read_steps(const char *rewards, const char *verdicts, int missing)
{
    struct graded_steps steps;

    graded_steps_read(text_of(rewards), text_of(verdicts), missing, &steps);
    assert_non_null(steps.steps);
    return steps;
}

static void expect_steps(const struct graded_steps *steps, size_t count, const struct objective_step *expected)
{
    assert_int_equal(steps->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(steps->steps[i].end, expected[i].end);
        assert_true(steps->steps[i].reward == expected[i].reward);
    }
}

static void test_the_steps_of_all_verdicts_that_count_are_one_pool_by_their_ends(void **state)
{
    struct graded_steps steps =
        read_steps("{\"prm\":{\"score\":0.75,\"weight\":2.0},\"style\":{\"score\":0.5,\"weight\":-1.0},"
                   "\"right\":{\"score\":1.0,\"weight\":0.5},\"blank\":{\"score\":0.0,\"weight\":1.0}}",
                   VERDICTS, OBJECTIVE_MISSING_NULL);

    (void)state;
    expect_steps(&steps, 4, (const struct objective_step[]){{1, -1}, {2, 2}, {2, -0.0}, {4, 1}});
    assert_true(steps.has_outcome && steps.outcome == 0.5);
    graded_steps_finish(&steps);
}

static void test_a_weight_of_zero_and_a_held_out_verifier_do_not_count(void **state)
{
    struct graded_steps steps =
        read_steps("{\"prm\":{\"score\":0.75,\"weight\":0.0},\"right\":{\"score\":1.0,\"weight\":0.0}}", VERDICTS,
                   OBJECTIVE_MISSING_NULL);

    (void)state;
    expect_steps(&steps, 0, NULL);
    assert_false(steps.has_outcome);
    graded_steps_finish(&steps);
}

static void test_a_shut_gate_makes_grades_and_outcome_zero(void **state)
{
    struct graded_steps steps =
        read_steps("{\"prm\":{\"score\":0.75,\"weight\":1.0},\"right\":{\"score\":1.0,\"weight\":1.0},"
                   "\"gate\":{\"score\":0.0,\"weight\":0.0,\"gate\":true}}",
                   VERDICTS, OBJECTIVE_MISSING_NULL);

    (void)state;
    expect_steps(&steps, 2, (const struct objective_step[]){{2, 0}, {4, 0}});
    assert_true(steps.has_outcome && steps.outcome == 0);
    graded_steps_finish(&steps);
}

static void test_a_missing_score_goes_by_the_rule(void **state)
{
    static const char rewards[] = "{\"right\":{\"score\":null,\"weight\":1.0},\"env\":{\"score\":2.0,\"weight\":1.0}}";
    struct graded_steps null = read_steps(rewards, VERDICTS, OBJECTIVE_MISSING_NULL);
    struct graded_steps skip = read_steps(rewards, VERDICTS, OBJECTIVE_MISSING_SKIP);

    (void)state;
    assert_false(null.has_outcome);
    assert_true(skip.has_outcome && skip.outcome == 2);
    graded_steps_finish(&null);
    graded_steps_finish(&skip);
}

static void test_a_record_without_steps_or_a_damaged_one_has_none(void **state)
{
    static const char *const verdicts[] = {NULL,
                                           "",
                                           "[",
                                           "{}",
                                           "[{\"id\":7}]",
                                           "[{\"id\":\"prm\",\"steps\":7}]",
                                           "[{\"id\":\"prm\",\"steps\":[{},{\"end\":0,\"score\":1},{\"end\":1}]}]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(verdicts); i++) {
        struct graded_steps steps =
            read_steps("{\"prm\":{\"score\":1.0,\"weight\":1.0}}", verdicts[i], OBJECTIVE_MISSING_NULL);
        assert_int_equal(steps.count, 0);
        graded_steps_finish(&steps);
    }
}

static void test_many_steps_are_sorted_and_equal_ends_keep_their_order(void **state)
{
    enum { STEPS = 1000 };
    _cleanup_free_ char *text = xcalloc(STEPS, 64);
    size_t at = 0;

    (void)state;
    at += (size_t)sprintf(text, "[{\"id\":\"a\",\"steps\":[");
    for (int i = 0; i < STEPS; i++)
        at += (size_t)sprintf(text + at, "%s{\"end\":%d,\"score\":%d}", i ? "," : "", 1 + i * 7919 % 100, i);
    sprintf(text + at, "]}]");
    struct graded_steps steps = read_steps("{\"a\":{\"score\":1.0,\"weight\":1.0}}", text, OBJECTIVE_MISSING_NULL);
    assert_int_equal(steps.count, STEPS);
    for (size_t i = 1; i < STEPS; i++) {
        assert_true(steps.steps[i - 1].end <= steps.steps[i].end);
        assert_true(steps.steps[i - 1].end < steps.steps[i].end || steps.steps[i - 1].reward < steps.steps[i].reward);
    }
    graded_steps_finish(&steps);
}

static void test_advantages_become_runs_and_come_out_again(void **state)
{
    static const double advantages[] = {0.5, 0.5, 0, -1, -1, -1};
    static const uint32_t ids[6] = {0};
    size_t count;
    _cleanup_free_ struct store_advantage *runs = token_advantage_runs(advantages, 6, &count);
    struct store_rollout rollout = {
        .completion_ids = ids, .token_count = 6, .advantages = runs, .advantage_count = count};
    _cleanup_free_ double *spread = token_advantages_of(&rollout);

    (void)state;
    assert_int_equal(count, 3);
    assert_int_equal(runs[1].end, 3);
    assert_memory_equal(spread, advantages, sizeof advantages);
    rollout.advantages = NULL;
    assert_null(token_advantages_of(&rollout));
}

static void test_runs_that_end_elsewhere_than_the_tokens_stay_inside_of_them(void **state)
{
    static const uint32_t ids[2] = {0};
    static const struct store_advantage runs[] = {{1, 0.5}, {9, 2}, {3, 7}};
    struct store_rollout rollout = {.completion_ids = ids, .token_count = 2, .advantages = runs, .advantage_count = 3};
    _cleanup_free_ double *spread = token_advantages_of(&rollout);

    (void)state;
    assert_true(spread[0] == 0.5 && spread[1] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_steps_of_all_verdicts_that_count_are_one_pool_by_their_ends),
        cmocka_unit_test(test_a_weight_of_zero_and_a_held_out_verifier_do_not_count),
        cmocka_unit_test(test_a_shut_gate_makes_grades_and_outcome_zero),
        cmocka_unit_test(test_a_missing_score_goes_by_the_rule),
        cmocka_unit_test(test_a_record_without_steps_or_a_damaged_one_has_none),
        cmocka_unit_test(test_many_steps_are_sorted_and_equal_ends_keep_their_order),
        cmocka_unit_test(test_advantages_become_runs_and_come_out_again),
        cmocka_unit_test(test_runs_that_end_elsewhere_than_the_tokens_stay_inside_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
