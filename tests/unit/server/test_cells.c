/* Cells whose numbers are worked out on paper. */
#include "server/reports/cells.h"

#include "server/base/cleanup.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

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

static size_t cell_of(struct cells *cells, int64_t revision, const char *engine)
{
    const struct cell_key key = {.count = 2, .parts = {cell_number(revision), cell_text(text_of(engine))}};
    return cells_find(cells, &key);
}

static struct cell_rollout judged(const char *task, const char *group, double reward, int64_t tokens)
{
    struct cell_rollout rollout;
    cell_rollout_init(&rollout);
    rollout.task = text_of(task);
    rollout.group = text_of(group);
    rollout.group_state = CELL_GROUP_VARIED;
    rollout.reward = reward;
    rollout.solved = reward >= 1;
    rollout.tokens = tokens;
    return rollout;
}

static struct cell_rollout failed(const char *task, const char *group, const char *code)
{
    struct cell_rollout rollout = judged(task, group, (double)NAN, 0);
    rollout.state = CELL_FAILED;
    rollout.solved = -1;
    rollout.failure = text_of(code);
    return rollout;
}

static struct cell_numbers numbers_of(struct cells *cells, size_t cell)
{
    struct cell_numbers numbers;
    cells_numbers(cells, cell, &numbers);
    return numbers;
}

/* --- means --- */

static void test_errors_are_clustered_by_task(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, "e");
    const struct cell_rollout rollouts[] = {judged("a", "1", 1, 10), judged("a", "1", 1, 20), judged("b", "2", 0, 30),
                                            judged("b", "2", 0, 40), judged("c", "3", 1, 50)};
    (void)state;

    for (size_t i = 0; i < ARRAY_LENGTH(rollouts); i++)
        cells_add(cells, cell, &rollouts[i]);
    assert_int_equal(cells_close(cells), 0);
    struct cell_numbers got = numbers_of(cells, 0);
    assert_int_equal(got.n, 5);
    assert_int_equal(got.judged, 5);
    /* the tasks' sums of deviations from 3/5 are 4/5, -6/5, 2/5 */
    assert_close(got.reward.mean, 0.6);
    assert_close(got.reward.se, sqrt(56) / 25);
    assert_close(got.reward_min, 0);
    assert_close(got.reward_max, 1);
    /* mean 30: -30, 10, 20 */
    assert_close(got.tokens.mean, 30);
    assert_close(got.tokens.se, sqrt(1400) / 5);
    assert_int_equal(got.tokens_sum, 150);
    assert_int_equal(got.tokens_max, 50);
    assert_int_equal(got.solved, 3);
    assert_int_equal(got.groups, 3);
    assert_none(got.score.mean);
}

static void test_a_failure_is_counted_and_in_no_mean(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, NULL);
    struct cell_rollout late = failed("a", "1", "deadline");
    const struct cell_rollout good = judged("a", "1", 0.5, 4);
    const struct cell_rollout bad = failed("b", "2", "engine_error");
    (void)state;

    late.tokens = 7;
    late.truncated = true;
    cells_add(cells, cell, &good);
    cells_add(cells, cell, &late);
    cells_add(cells, cell, &bad);
    cells_add(cells, cell, &bad);
    assert_int_equal(cells_close(cells), 0);
    struct cell_numbers got = numbers_of(cells, 0);
    assert_int_equal(got.n, 4);
    assert_int_equal(got.scored, 1);
    assert_int_equal(got.failed, 3);
    assert_close(got.reward.mean, 0.5);
    assert_none(got.reward.se); /* one task */
    assert_close(got.tokens.mean, 4);
    assert_int_equal(got.tokens_sum, 11); /* spent all the same */
    assert_int_equal(got.truncated, 0);   /* of the judged */
    assert_int_equal(got.decided, 1);
    assert_int_equal(got.failure_count, 2);
    assert_true(text_equals(got.failures[0].code, "deadline"));
    assert_int_equal(got.failures[0].count, 1);
    assert_true(text_equals(got.failures[1].code, "engine_error"));
    assert_int_equal(got.failures[1].count, 2);
}

static void test_equal_rewards_have_their_value_as_mean_and_no_error(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, NULL);
    char task[8];
    (void)state;

    for (unsigned i = 0; i < 30; i++) {
        snprintf(task, sizeof task, "%u", i % 3);
        const struct cell_rollout rollout = judged(task, task, 0.1, 1);
        cells_add(cells, cell, &rollout);
    }
    assert_int_equal(cells_close(cells), 0);
    assert_true(numbers_of(cells, 0).reward.mean == 0.1);
    assert_true(numbers_of(cells, 0).reward.se == 0);
}

/* --- groups --- */

static void test_groups_are_whole_and_counted_once_a_cell(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    struct cell_rollout equal = judged("a", "1", 1, 1);
    struct cell_rollout unjudged = failed("a", "2", "deadline");
    struct cell_rollout running = judged("a", "3", 1, 1);
    (void)state;

    equal.group_state = CELL_GROUP_ZERO_VARIANCE;
    unjudged.group_state = CELL_GROUP_UNJUDGED;
    running.group_state = CELL_GROUP_RUNNING;
    cells_add(cells, cell_of(cells, 1, "e1"), &equal);
    cells_add(cells, cell_of(cells, 1, "e1"), &equal);
    cells_add(cells, cell_of(cells, 1, "e2"), &equal); /* the same group */
    cells_add(cells, cell_of(cells, 1, "e2"), &unjudged);
    cells_add(cells, cell_of(cells, 1, "e2"), &running);
    assert_int_equal(cells_close(cells), 0);
    assert_int_equal(cells_count(cells), 2);
    assert_int_equal(numbers_of(cells, 0).groups, 1);
    assert_int_equal(numbers_of(cells, 0).zero_variance_groups, 1);
    assert_int_equal(numbers_of(cells, 1).groups, 3);
    assert_int_equal(numbers_of(cells, 1).judged_groups, 1);
    assert_int_equal(numbers_of(cells, 1).zero_variance_groups, 1);
}

/* --- keys --- */

static void test_cells_are_in_the_order_of_their_keys(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    const struct cell_rollout rollout = judged("a", "1", 1, 1);
    static const struct {
        int64_t revision;
        const char *engine;
    } keys[] = {{-1, NULL}, {2, NULL}, {2, "b"}, {10, ""}, {10, "a"}, {10, "ab"}, {10, "b"}};
    struct cell_key key;
    (void)state;

    for (size_t i = ARRAY_LENGTH(keys); i-- > 0;)
        cells_add(cells, cell_of(cells, keys[i].revision, keys[i].engine), &rollout);
    assert_int_equal(cells_close(cells), 0);
    assert_int_equal(cells_count(cells), ARRAY_LENGTH(keys));
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
        cells_key(cells, i, &key);
        assert_int_equal(key.count, 2);
        assert_int_equal(key.parts[0].kind, keys[i].revision < 0 ? CELL_NULL : CELL_NUMBER);
        if (keys[i].revision >= 0)
            assert_int_equal(key.parts[0].number, keys[i].revision);
        assert_int_equal(key.parts[1].kind, keys[i].engine ? CELL_TEXT : CELL_NULL);
        if (keys[i].engine)
            assert_true(text_equals(key.parts[1].text, keys[i].engine));
    }
}

static void test_without_a_key_there_is_one_cell(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    const struct cell_key everything = {0};
    const struct cell_rollout rollout = judged("a", "1", 1, 1);
    (void)state;

    cells_add(cells, cells_find(cells, &everything), &rollout);
    cells_add(cells, cells_find(cells, &everything), &rollout);
    assert_int_equal(cells_close(cells), 0);
    assert_int_equal(cells_count(cells), 1);
    assert_int_equal(numbers_of(cells, 0).n, 2);
}

/* --- sums --- */

/* The sums of one task's rollouts give the same numbers as the rollouts. */
static void test_sums_stand_for_their_rollouts(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, NULL);
    const struct cell_rollout one = judged("b", "2", 5, 8);
    struct cell_sums sums = {.n = 3,
                             .scored = 2,
                             .failed = 1,
                             .groups = 1,
                             .judged_groups = 1,
                             .reward = {.count = 2, .sum = {.sum = 3}},
                             .reward_min = 1,
                             .reward_max = 2,
                             .score_min = (double)NAN,
                             .score_max = (double)NAN,
                             .judged_tokens = 10,
                             .tokens = 12,
                             .tokens_max = 6,
                             .truncated = 1,
                             .straddles = 2,
                             .duplicates = 1,
                             .decided = 2,
                             .solved = 2,
                             .engine_us = 40};
    (void)state;

    cells_add(cells, cell, &one);
    cells_add_sums(cells, cell, TEXT_LITERAL("a"), &sums);
    cells_add_failures(cells, cell, TEXT_LITERAL("deadline"), 1);
    cells_add_group(cells, cell, TEXT_LITERAL("2"), CELL_GROUP_VARIED);
    assert_int_equal(cells_close(cells), 0);
    struct cell_numbers got = numbers_of(cells, 0);
    assert_int_equal(got.n, 4);
    assert_int_equal(got.scored, 3);
    assert_int_equal(got.groups, 2);
    /* rewards with the sum 3 of two in a, and 5 in b: mean 8/3; a: 3 - 16/3, b: 5 - 8/3 */
    assert_close(got.reward.mean, 8.0 / 3);
    assert_close(got.reward.se, sqrt(2 * (7.0 / 3) * (7.0 / 3)) / 3);
    assert_close(got.reward_min, 1);
    assert_close(got.reward_max, 5);
    assert_close(got.tokens.mean, 6);
    assert_int_equal(got.tokens_sum, 20);
    assert_int_equal(got.tokens_max, 8);
    assert_int_equal(got.truncated, 1);
    assert_int_equal(got.engine_us, 40);
    struct cell_task task;
    assert_int_equal(cells_tasks(cells, 0), 2);
    cells_task(cells, 0, 0, &task);
    assert_true(text_equals(task.task, "a"));
    assert_int_equal(task.n, 3);
    assert_int_equal(task.judged, 2);
    assert_close(task.reward_mean, 1.5);
    assert_int_equal(task.solved, 2);
    cells_task(cells, 0, 1, &task);
    assert_true(text_equals(task.task, "b"));
    assert_close(task.tokens_mean, 8);
}

/* --- objective calls --- */

static struct store_objective_sum call_of(int64_t step, int64_t epoch, double loss, double kl, int64_t kl_tokens)
{
    struct store_objective_sum sum = {.optimizer_step = step,
                                      .ppo_epoch = epoch,
                                      .kl_estimator = TEXT_LITERAL("k3"),
                                      .slice = {.tokens = 10, .clip_low = 1, .clip_high = 2, .loss = loss}};
    sum.slice.means[STORE_OBJECTIVE_KL].sum = kl;
    sum.slice.means[STORE_OBJECTIVE_KL].tokens = kl_tokens;
    return sum;
}

static void test_objective_means_are_sums_over_their_tokens(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, NULL);
    /* step 1 in two parts, again in epoch 1, and step 2 without a KL */
    const struct store_objective_sum calls[] = {call_of(1, 0, 0.5, 2, 8), call_of(1, 0, 0.25, 1, 4),
                                                call_of(1, 1, 9, 3, 4), call_of(2, 0, 0.25, (double)NAN, 0)};
    (void)state;

    for (size_t i = 0; i < ARRAY_LENGTH(calls); i++)
        cells_add_objective(cells, cell, &calls[i]);
    cell_of(cells, 2, NULL);
    assert_int_equal(cells_close(cells), 0);
    struct cell_numbers got = numbers_of(cells, 0);
    assert_close(got.objective[STORE_OBJECTIVE_KL], 6.0 / 16);
    assert_none(got.objective[STORE_OBJECTIVE_ENTROPY]);
    assert_close(got.clip_fraction, 12.0 / 40);
    assert_close(got.loss, 0.5); /* 0.75 and 0.25 */
    assert_true(text_equals(got.kl_estimator, "k3"));
    assert_int_equal(got.n, 0);
    assert_int_equal(got.tokens_max, -1);
    got = numbers_of(cells, 1); /* nothing was kept */
    assert_none(got.objective[STORE_OBJECTIVE_KL]);
    assert_none(got.clip_fraction);
    assert_none(got.loss);
    assert_null(got.kl_estimator.data);
}

static void test_kl_of_two_estimators_has_no_one_name(void **state)
{
    _cleanup_(cells_destroyp) struct cells *cells = cells_create();
    size_t cell = cell_of(cells, 1, NULL);
    struct store_objective_sum first = call_of(1, 0, 0, 1, 1);
    struct store_objective_sum second = call_of(2, 0, 0, 1, 1);
    (void)state;

    second.kl_estimator = TEXT_LITERAL("k1");
    cells_add_objective(cells, cell, &first);
    cells_add_objective(cells, cell, &second);
    cells_add_objective(cells, cell, &first);
    assert_int_equal(cells_close(cells), 0);
    assert_null(numbers_of(cells, 0).kl_estimator.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_clustered_by_task),
        cmocka_unit_test(test_a_failure_is_counted_and_in_no_mean),
        cmocka_unit_test(test_equal_rewards_have_their_value_as_mean_and_no_error),
        cmocka_unit_test(test_groups_are_whole_and_counted_once_a_cell),
        cmocka_unit_test(test_cells_are_in_the_order_of_their_keys),
        cmocka_unit_test(test_without_a_key_there_is_one_cell),
        cmocka_unit_test(test_sums_stand_for_their_rollouts),
        cmocka_unit_test(test_objective_means_are_sums_over_their_tokens),
        cmocka_unit_test(test_kl_of_two_estimators_has_no_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
