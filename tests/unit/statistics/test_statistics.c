/* Means, errors, correlations and orders whose values are worked out on paper. */
#include "server/statistics/statistics.h"

#include "server/base/cleanup.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 64

static void assert_close(double got, double want)
{
    if (!(fabs(got - want) <= 4 * DBL_EPSILON * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

static void assert_none(double got)
{
    if (!isnan(got))
        fail_msg("%.17g is a number", got);
}

static struct clustered_mean mean_of(size_t n, const double *values, const uint32_t *tasks)
{
    struct task_scratch scratch[MANY];
    return clustered_mean(n, values, tasks, MANY, scratch);
}

/* --- means --- */

static void test_draws_of_one_task_are_one_cluster(void **state)
{
    const double values[] = {1, 1, 0, 0, 1};
    const uint32_t tasks[] = {0, 0, 1, 1, 2};
    (void)state;

    /* mean 3/5; the tasks' sums of deviations are 4/5, -6/5, 2/5: se = sqrt(56)/25 */
    struct clustered_mean got = mean_of(5, values, tasks);
    assert_int_equal(got.count, 5);
    assert_int_equal(got.tasks, 3);
    assert_close(got.mean, 0.6);
    assert_close(got.se, sqrt(56) / 25);
}

static void test_one_value_a_task_is_the_usual_error_of_a_mean(void **state)
{
    const double values[] = {2, 4, 4, 6};
    const uint32_t tasks[] = {3, 1, 0, 2};
    (void)state;

    struct clustered_mean got = mean_of(4, values, tasks);
    assert_close(got.mean, 4);
    assert_close(got.se, sqrt(8) / 4);
}

static void test_a_missing_value_counts_nowhere(void **state)
{
    const double values[] = {NAN, 1, NAN, 3};
    const uint32_t tasks[] = {5, 0, 1, 2};
    (void)state;

    struct clustered_mean got = mean_of(4, values, tasks);
    assert_int_equal(got.count, 2);
    assert_int_equal(got.tasks, 2);
    assert_close(got.mean, 2);
    assert_close(got.se, sqrt(2) / 2);
}

static void test_one_task_has_a_mean_and_no_error(void **state)
{
    const double values[] = {0, 1, 5};
    const uint32_t tasks[] = {7, 7, 7};
    (void)state;

    struct clustered_mean got = mean_of(3, values, tasks);
    assert_close(got.mean, 2);
    assert_none(got.se);
}

static void test_nothing_has_no_mean(void **state)
{
    const double values[] = {NAN, NAN};
    const uint32_t tasks[] = {0, 1};
    (void)state;

    assert_none(mean_of(2, values, tasks).mean);
    assert_none(mean_of(2, values, tasks).se);
    assert_int_equal(mean_of(0, NULL, NULL).count, 0);
    assert_none(mean_of(0, NULL, NULL).mean);
}

static void test_equal_values_have_no_error_at_all(void **state)
{
    double values[MANY];
    uint32_t tasks[MANY];
    (void)state;

    for (uint32_t i = 0; i < MANY; i++) {
        values[i] = 0.1;
        tasks[i] = i;
    }
    for (size_t n = 2; n <= MANY; n++) {
        assert_true(mean_of(n, values, tasks).mean == 0.1);
        assert_true(mean_of(n, values, tasks).se == 0);
    }
}

static void test_an_offset_does_not_drown_the_deviations(void **state)
{
    const double values[] = {1e15 + 1, 1e15 + 2, 1e15 + 3, 1e15 + 6};
    const uint32_t tasks[] = {0, 1, 2, 3};
    (void)state;

    assert_close(mean_of(4, values, tasks).mean, 1e15 + 3);
    assert_close(mean_of(4, values, tasks).se, sqrt(14) / 4);
}

static void test_squares_beyond_double_and_below_it_are_scaled(void **state)
{
    const double large[] = {1e300, -1e300, 1e300, -1e300};
    const double small[] = {1e-300, -1e-300, 1e-300, -1e-300};
    const uint32_t tasks[] = {0, 1, 2, 3};
    (void)state;

    assert_true(mean_of(4, large, tasks).mean == 0);
    assert_close(mean_of(4, large, tasks).se, 0.5e300);
    assert_close(mean_of(4, small, tasks).se, 0.5e-300);
}

static void test_a_sum_beyond_double_has_a_mean_within(void **state)
{
    const double values[] = {DBL_MAX, DBL_MAX, DBL_MAX / 2, DBL_MAX / 2};
    const uint32_t tasks[] = {0, 0, 0, 0};
    (void)state;

    assert_close(mean_of(4, values, tasks).mean, DBL_MAX * 0.75);
}

/* --- differences by task --- */

static void test_a_difference_takes_one_value_of_each_task(void **state)
{
    const double left[] = {0, 0.5, NAN, 1};
    const double right[] = {1, 0.5, 1, 0.5};
    (void)state;

    /* differences 1, 0, -1/2: mean 1/6, squares 25/36 + 1/36 + 16/36 = 42/36 */
    struct paired_difference got = paired_difference(4, left, right);
    assert_int_equal(got.tasks, 3);
    assert_close(got.mean, 1.0 / 6);
    assert_close(got.se, sqrt(42.0 / 36) / 3);
}

/* 0.1 + 0.1 + 0.1 by 3 is another double. */
static void test_equal_differences_have_no_error_at_all(void **state)
{
    double left[MANY];
    double right[MANY];
    (void)state;

    for (size_t i = 0; i < MANY; i++) {
        left[i] = 0;
        right[i] = 0.1;
    }
    for (size_t n = 2; n <= MANY; n++) {
        assert_true(paired_difference(n, left, right).mean == 0.1);
        assert_true(paired_difference(n, left, right).se == 0);
    }
}

static void test_the_mean_of_a_task_with_equal_values_is_their_value(void **state)
{
    double values[MANY];
    uint32_t tasks[MANY] = {0};
    struct task_scratch scratch[1];
    double got[1];
    (void)state;

    for (size_t i = 0; i < MANY; i++)
        values[i] = 0.7;
    for (size_t n = 1; n <= MANY; n++) {
        task_means(n, values, tasks, 1, scratch, got);
        assert_true(got[0] == 0.7);
    }
}

static void test_a_difference_over_one_task_or_none(void **state)
{
    const double left[] = {0.25, NAN};
    const double right[] = {1, 1};
    const double none[] = {NAN, NAN};
    (void)state;

    assert_close(paired_difference(2, left, right).mean, 0.75);
    assert_none(paired_difference(2, left, right).se);
    assert_int_equal(paired_difference(2, none, right).tasks, 0);
    assert_none(paired_difference(2, none, right).mean);
}

static void test_means_of_tasks(void **state)
{
    const double values[] = {1, 0, 4, NAN, NAN};
    const uint32_t tasks[] = {1, 1, 0, 0, 2};
    struct task_scratch scratch[3];
    double got[3];
    (void)state;

    task_means(5, values, tasks, 3, scratch, got);
    assert_close(got[0], 4);
    assert_close(got[1], 0.5);
    assert_none(got[2]);
}

/* --- correlation --- */

static void test_correlations_from_paper(void **state)
{
    const double x[] = {1, 2, 3, 4};
    const double y[] = {2, 4, 6, 8};
    const double down[] = {3, 2, 1, 0};
    const double bent[] = {0, 1, 1, 0};
    const double skew[] = {0, 0, 0, 1};
    (void)state;

    assert_true(correlation(4, x, y) == 1);
    assert_true(correlation(4, x, down) == -1);
    assert_true(fabs(correlation(4, x, bent)) < 1e-16);
    assert_close(correlation(4, x, skew), 1.5 / sqrt(5 * 0.75));
}

static void test_a_constant_side_or_one_pair_has_no_correlation(void **state)
{
    const double x[] = {0.1 + 0.2, 0.3, 0.3};
    const double y[] = {0, 1, 2};
    const double holes[] = {NAN, 1, NAN};
    (void)state;

    assert_none(correlation(3, x, y));
    assert_none(correlation(3, y, x));
    assert_none(correlation(3, y, holes));
    assert_none(correlation(0, NULL, NULL));
}

static void test_a_correlation_is_over_the_pairs_that_are_whole(void **state)
{
    const double x[] = {1, 100, 2, 3, NAN};
    const double y[] = {1, NAN, 2, 3, 7};
    (void)state;

    assert_true(correlation(5, x, y) == 1);
}

static void test_a_correlation_does_not_depend_on_units(void **state)
{
    const double x[] = {1e-300, 2e-300, 4e-300};
    const double y[] = {1e300, 3e300, 2e300};
    (void)state;

    /* of (1,2,4) and (1,3,2): 1 / sqrt((14/3) * 2) */
    assert_close(correlation(3, x, y), 1 / sqrt(28.0 / 3));
}

/* --- orders --- */

static size_t changes(size_t n, const double *before, const double *after)
{
    _cleanup_free_ struct order_scratch *scratch = xcalloc(2 * n + 1, sizeof *scratch);
    return order_changes(n, before, after, scratch);
}

static void test_a_swap_a_tie_and_the_end_of_a_tie_are_changes(void **state)
{
    const double before[] = {0, 1, 1};
    const double after[] = {1, 0, 1};
    (void)state;

    /* 0-1: < becomes >; 0-2: < becomes =; 1-2: = becomes < */
    assert_int_equal(changes(3, before, after), 3);
    assert_int_equal(changes(3, before, before), 0);
}

static void test_another_scale_is_no_change(void **state)
{
    const double before[] = {0.1, 0.2, 0.3, 0.1 + 0.2};
    const double after[] = {10, 20, 30, 30};
    (void)state;

    assert_int_equal(changes(4, before, after), 0);
}

static void test_a_member_without_one_of_the_values_is_in_no_pair(void **state)
{
    const double before[] = {0, NAN, 1, 2};
    const double after[] = {2, 5, NAN, 1};
    (void)state;

    assert_int_equal(changes(4, before, after), 1);
    assert_int_equal(changes(0, before, after), 0);
}

static int sign(double left, double right)
{
    return (left > right) - (left < right);
}

static void test_changes_are_those_that_counting_pairs_finds(void **state)
{
    uint64_t random = 1;
    (void)state;

    for (size_t n = 0; n <= MANY; n++) {
        double before[MANY];
        double after[MANY];
        size_t want = 0;
        for (size_t i = 0; i < n; i++) {
            random = random * 6364136223846793005U + 1442695040888963407U;
            before[i] = (double)(random >> 60); /* many ties */
            after[i] = (double)(random >> 40 & 7);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                want += sign(before[i], before[k]) != sign(after[i], after[k]);
        assert_int_equal(changes(n, before, after), want);
    }
}

/* --- means from sums of tasks --- */

static struct task_scratch sum_of(size_t count, double sum)
{
    return (struct task_scratch){.count = count, .sum = {.sum = sum}};
}

static void test_sums_of_tasks_have_the_mean_and_the_error_of_their_values(void **state)
{
    /* the values 1 1 | 0 0 | | 1 of the first test, and a task without one */
    const struct task_scratch sums[] = {sum_of(2, 2), sum_of(2, 0), sum_of(0, 0), sum_of(1, 1)};
    (void)state;

    struct clustered_mean got = clustered_mean_of_sums(4, sums, 0, 1);
    assert_int_equal(got.count, 5);
    assert_int_equal(got.tasks, 3);
    assert_close(got.mean, 0.6);
    assert_close(got.se, sqrt(56) / 25);
}

static void test_sums_of_one_task_or_of_none_have_no_error(void **state)
{
    const struct task_scratch sums[] = {sum_of(4, 2), sum_of(0, 0)};
    (void)state;

    assert_close(clustered_mean_of_sums(2, sums, 0, 1).mean, 0.5);
    assert_none(clustered_mean_of_sums(2, sums, 0, 1).se);
    assert_none(clustered_mean_of_sums(1, sums + 1, NAN, NAN).mean);
    assert_none(clustered_mean_of_sums(0, NULL, NAN, NAN).se);
}

static void test_sums_of_equal_values_have_that_mean_and_no_error(void **state)
{
    const struct task_scratch sums[] = {sum_of(3, 0.1 + 0.1 + 0.1), sum_of(7, 0.7)};
    (void)state;

    assert_true(clustered_mean_of_sums(2, sums, 0.1, 0.1).mean == 0.1);
    assert_true(clustered_mean_of_sums(2, sums, 0.1, 0.1).se == 0);
}

static void test_sums_with_squares_beyond_double_are_scaled(void **state)
{
    const struct task_scratch large[] = {sum_of(1, 3e200), sum_of(1, 1e200)};
    const struct task_scratch beyond[] = {sum_of(2, INFINITY), sum_of(1, 0)};
    (void)state;

    assert_close(clustered_mean_of_sums(2, large, NAN, NAN).mean, 2e200);
    assert_close(clustered_mean_of_sums(2, large, NAN, NAN).se, sqrt(2) * 1e200 / 2);
    assert_none(clustered_mean_of_sums(2, beyond, NAN, NAN).mean);
    assert_none(clustered_mean_of_sums(2, beyond, NAN, NAN).se);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_of_one_task_are_one_cluster),
        cmocka_unit_test(test_one_value_a_task_is_the_usual_error_of_a_mean),
        cmocka_unit_test(test_a_missing_value_counts_nowhere),
        cmocka_unit_test(test_one_task_has_a_mean_and_no_error),
        cmocka_unit_test(test_nothing_has_no_mean),
        cmocka_unit_test(test_equal_values_have_no_error_at_all),
        cmocka_unit_test(test_an_offset_does_not_drown_the_deviations),
        cmocka_unit_test(test_sums_of_tasks_have_the_mean_and_the_error_of_their_values),
        cmocka_unit_test(test_sums_of_one_task_or_of_none_have_no_error),
        cmocka_unit_test(test_sums_of_equal_values_have_that_mean_and_no_error),
        cmocka_unit_test(test_sums_with_squares_beyond_double_are_scaled),
        cmocka_unit_test(test_squares_beyond_double_and_below_it_are_scaled),
        cmocka_unit_test(test_a_sum_beyond_double_has_a_mean_within),
        cmocka_unit_test(test_a_difference_takes_one_value_of_each_task),
        cmocka_unit_test(test_equal_differences_have_no_error_at_all),
        cmocka_unit_test(test_the_mean_of_a_task_with_equal_values_is_their_value),
        cmocka_unit_test(test_a_difference_over_one_task_or_none),
        cmocka_unit_test(test_means_of_tasks),
        cmocka_unit_test(test_correlations_from_paper),
        cmocka_unit_test(test_a_constant_side_or_one_pair_has_no_correlation),
        cmocka_unit_test(test_a_correlation_is_over_the_pairs_that_are_whole),
        cmocka_unit_test(test_a_correlation_does_not_depend_on_units),
        cmocka_unit_test(test_a_swap_a_tie_and_the_end_of_a_tie_are_changes),
        cmocka_unit_test(test_another_scale_is_no_change),
        cmocka_unit_test(test_a_member_without_one_of_the_values_is_in_no_pair),
        cmocka_unit_test(test_changes_are_those_that_counting_pairs_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
