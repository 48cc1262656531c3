/* Rewards to advantages. The numbers are worked out on paper or stand in the papers. */
#include "tests/unit/objective/fixture.h"

static struct objective_knobs grpo(void)
{
    struct objective_knobs knobs;
    assert_true(objective_preset_find("grpo", 4, &knobs));
    return knobs;
}

#define EXPECT_GROUP(knobs, rewards, want)                                                                             \
    do {                                                                                                               \
        double got_[8];                                                                                                \
        struct objective_group group_;                                                                                 \
        assert_int_equal(group_advantages(&(knobs), sizeof(rewards) / sizeof(double), rewards, got_, &group_), 0);     \
        for (size_t i_ = 0; i_ < sizeof(rewards) / sizeof(double); i_++)                                               \
            assert_near(got_[i_], (want)[i_], 1e-15);                                                                  \
    } while (0)

static void test_0_0_1_1_gives_minus_1_minus_1_1_1_exactly(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, 0, 1, 1};
    double got[4];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 4, rewards, got, &group), 0);
    assert_exactly(got[0], -1);
    assert_exactly(got[1], -1);
    assert_exactly(got[2], 1);
    assert_exactly(got[3], 1);
    assert_exactly(group.mean, 0.5);
    assert_exactly(group.std, 0.5);
    assert_false(group.zero_variance);
}

static void test_0_1_1_gives_minus_sqrt2_and_half_sqrt2(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, 1, 1}, want[] = {-M_SQRT2, M_SQRT1_2, M_SQRT1_2};
    (void)state;

    EXPECT_GROUP(knobs, rewards, want);
}

static void test_1_1_1_gives_exact_zeros(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1, 1, 1};
    double got[3];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 3, rewards, got, &group), 0);
    for (int i = 0; i < 3; i++)
        assert_exactly(got[i], 0);
    assert_true(group.zero_variance);
    assert_exactly(group.std, 0);
}

static void test_equal_rewards_without_a_binary_form_give_exact_zeros(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95};
    double got[7];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 7, rewards, got, &group), 0);
    for (int i = 0; i < 7; i++)
        assert_exactly(got[i], 0);
    assert_exactly(group.mean, 0.95);
}

static void test_the_sample_deviation_divides_by_n_minus_1(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1, 0, 0, 0}, want[] = {1.5, -0.5, -0.5, -0.5}; /* mean 1/4, std_s 1/2 */
    (void)state;

    knobs.advantage.ddof = 1;
    EXPECT_GROUP(knobs, rewards, want);
}

static void test_eps_is_added_to_the_deviation(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, 2}, want[] = {-0.5, 0.5}; /* std 1, eps 1 */
    (void)state;

    knobs.advantage.eps = 1;
    EXPECT_GROUP(knobs, rewards, want);
}

static void test_scale_none_only_centres(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1, 0, 0, 0}, want[] = {0.75, -0.25, -0.25, -0.25};
    (void)state;

    knobs.advantage.scale = OBJECTIVE_SCALE_NONE;
    EXPECT_GROUP(knobs, rewards, want);
}

static void test_a_group_that_lost_a_member_normalises_over_the_rest(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, NAN, 1};
    double got[3];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 3, rewards, got, &group), 0);
    assert_exactly(got[0], -1);
    assert_true(isnan(got[1]));
    assert_exactly(got[2], 1);
    assert_int_equal(group.members, 3);
    assert_int_equal(group.rewarded, 2);
}

static void test_a_single_judged_member_gets_zero_or_its_raw_reward(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {NAN, 5}, zero = 0;
    double got[2];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 2, rewards, got, &group), 0);
    assert_exactly(got[1], zero);
    knobs.advantage.singleton = OBJECTIVE_SINGLETON_RAW;
    knobs.advantage.eps = 0.25;
    assert_int_equal(group_advantages(&knobs, 2, rewards, got, &group), 0);
    assert_exactly(got[1], 4); /* 5 / (1 + 1/4) */
}

static void test_a_group_without_rewards_has_no_statistics(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {NAN, NAN};
    double got[2] = {0, 0};
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 2, rewards, got, &group), 0);
    assert_true(isnan(got[0]) && isnan(got[1]) && isnan(group.mean) && isnan(group.std));
    assert_false(group.zero_variance);
    assert_int_equal(group_advantages(&knobs, 0, rewards, got, &group), 0);
}

static void test_a_large_offset_does_not_eat_the_spread(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3};
    const double unit = 1 / sqrt(1.25), want[] = {-1.5 * unit, -0.5 * unit, 0.5 * unit, 1.5 * unit};
    (void)state;

    EXPECT_GROUP(knobs, rewards, want);
}

static void test_huge_and_tiny_spreads_scale(void **state)
{
    struct objective_knobs knobs = grpo();
    const double huge[] = {1e200, -1e200}, tiny[] = {1e-200, 3e-200}, want_huge[] = {1, -1}, want_tiny[] = {-1, 1};
    (void)state;

    EXPECT_GROUP(knobs, huge, want_huge);
    EXPECT_GROUP(knobs, tiny, want_tiny);
}

static void test_a_sum_beyond_double_is_refused_with_its_sequence(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1.7e308, 1.7e308, -1};
    double got[3];
    struct objective_group group;
    struct scene *scene = scene_create();
    (void)state;

    assert_int_equal(group_advantages(&knobs, 3, rewards, got, &group), -1);
    assert_true(isnan(got[0]));
    for (int i = 0; i < 3; i++)
        scene_add(scene, 0, rewards[i], 1);
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_NON_FINITE);
    assert_string_equal(scene->error.field, "reward");
    test_free(scene);
}

static void test_groups_may_be_interleaved_and_never_mix(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 1);
    scene_add(scene, 1, 10, 1);
    scene_add(scene, 0, 1, 1);
    scene_add(scene, 1, 30, 1);
    assert_int_equal(scene_run(scene), 0);
    for (int i = 0; i < 4; i++)
        assert_exactly(scene->sequences[i].advantage, i < 2 ? -1 : 1);
    test_free(scene);
}

static void test_scale_batch_divides_by_the_deviation_of_all_rewards(void **state)
{
    struct scene *scene = scene_create();
    const double rewards[] = {0, 2, 4, 4}; /* groups {0,2} and {4,4}; all: mean 2.5, variance 11/4 */
    (void)state;

    scene->knobs.advantage.scale = OBJECTIVE_SCALE_BATCH;
    for (size_t i = 0; i < 4; i++)
        scene_add(scene, i / 2, rewards[i], 1);
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->sequences[0].advantage, -1 / sqrt(2.75), 1e-15);
    assert_near(scene->sequences[1].advantage, 1 / sqrt(2.75), 1e-15);
    assert_exactly(scene->sequences[2].advantage, 0);
    assert_true(objective_needs_whole_batch(&scene->knobs));
    test_free(scene);
}

static void test_a_rule_over_the_batch_has_no_advantages_at_the_closing_of_a_group(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, 1};
    double got[2] = {0, 0};
    struct objective_group group;
    (void)state;

    knobs.advantage.scale = OBJECTIVE_SCALE_BATCH;
    assert_int_equal(group_advantages(&knobs, 2, rewards, got, &group), 0);
    assert_true(isnan(got[0]) && isnan(got[1]));
    assert_exactly(group.mean, 0.5);
}

static void test_the_estimator_reward_has_no_baseline(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0.25, -3}, want[] = {0.25, -3};
    (void)state;

    knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_REWARD;
    EXPECT_GROUP(knobs, rewards, want);
}

static void test_the_clip_of_the_advantage_comes_last(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {0, 0, 0, 1}, want[] = {-0.5, -0.5, -0.5, 1.5}; /* before: -0.577 and 1.732 */
    (void)state;

    knobs.advantage.clip_low = -0.5;
    knobs.advantage.clip_high = 1.5;
    EXPECT_GROUP(knobs, rewards, want);
}

static void test_scores_combine_by_weight_and_by_the_rule_for_missing_ones(void **state)
{
    const double scores[] = {1, 0.5}, partly[] = {1, NAN}, none[] = {NAN, NAN}, weights[] = {0.5, 0.25};
    const double idle[] = {0.5, 0};
    (void)state;

    assert_exactly(objective_combine_rewards(2, scores, weights, OBJECTIVE_MISSING_NULL), 0.625);
    assert_true(isnan(objective_combine_rewards(2, partly, weights, OBJECTIVE_MISSING_NULL)));
    assert_exactly(objective_combine_rewards(2, partly, weights, OBJECTIVE_MISSING_SKIP), 0.5);
    assert_exactly(objective_combine_rewards(2, partly, idle, OBJECTIVE_MISSING_NULL), 0.5);
    assert_true(isnan(objective_combine_rewards(2, none, weights, OBJECTIVE_MISSING_SKIP)));
    assert_true(isnan(objective_combine_rewards(0, none, weights, OBJECTIVE_MISSING_SKIP)));
}

/* F01 */
static void test_rewards_are_equal_up_to_a_billionth_of_a_thousandth(void **state)
{
    struct objective_knobs knobs = grpo();
    const double equal[] = {0.1 + 0.2, 0.3, 0.3 * (1 - 0.9e-12)};
    const double apart[] = {0.3, 0.3 * (1 + 1e-9)};
    double got[3];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 3, equal, got, &group), 0);
    assert_true(group.zero_variance);
    assert_exactly(group.std, 0);
    for (size_t i = 0; i < 3; i++)
        assert_exactly(got[i], 0);
    assert_int_equal(group_advantages(&knobs, 2, apart, got, &group), 0);
    assert_false(group.zero_variance);
    assert_near(got[0], -1, 1e-12);
    assert_near(got[1], 1, 1e-12);
}

/* F01 */
static void test_a_sum_that_is_nothing_but_rounding_is_0(void **state)
{
    const double scores[] = {0.1, 0.2, -0.3};
    const double more[] = {0.1, 0.2, -0.2999};
    const double huge[] = {1.7e308, -1e308, 0};
    const double ones[] = {1, 1, 1};
    (void)state;

    assert_exactly(objective_combine_rewards(3, scores, ones, OBJECTIVE_MISSING_NULL), 0);
    assert_near(objective_combine_rewards(3, more, ones, OBJECTIVE_MISSING_NULL), 1e-4, 1e-12);
    assert_exactly(objective_combine_rewards(3, huge, ones, OBJECTIVE_MISSING_NULL), 1.7e308 - 1e308);
}

/* F01 */
static void test_advantages_add_up_to_nothing_at_any_offset(void **state)
{
    enum { MEMBERS = 1000 };
    static double rewards[MEMBERS], got[MEMBERS];
    struct objective_knobs knobs = grpo();
    struct objective_group group;
    uint64_t seed = 1;
    (void)state;

    for (double offset = 1; offset < 1e16; offset *= -1000) {
        double sum = 0;
        for (size_t i = 0; i < MEMBERS; i++)
            rewards[i] = offset + fabs(offset) * 1e-10 * scene_random(&seed);
        assert_int_equal(group_advantages(&knobs, MEMBERS, rewards, got, &group), 0);
        assert_false(group.zero_variance);
        for (size_t i = 0; i < MEMBERS; i++)
            sum += got[i];
        assert_near(1 + sum, 1, 1e-9);
    }
}

/* F01 */
static void test_a_range_beyond_double_scales_too(void **state)
{
    struct objective_knobs knobs = grpo();
    const double rewards[] = {1.7e308, -1.7e308};
    double got[2];
    struct objective_group group;
    (void)state;

    assert_int_equal(group_advantages(&knobs, 2, rewards, got, &group), 0);
    assert_exactly(got[0], 1);
    assert_exactly(got[1], -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_0_0_1_1_gives_minus_1_minus_1_1_1_exactly),
        cmocka_unit_test(test_0_1_1_gives_minus_sqrt2_and_half_sqrt2),
        cmocka_unit_test(test_1_1_1_gives_exact_zeros),
        cmocka_unit_test(test_equal_rewards_without_a_binary_form_give_exact_zeros),
        cmocka_unit_test(test_the_sample_deviation_divides_by_n_minus_1),
        cmocka_unit_test(test_eps_is_added_to_the_deviation),
        cmocka_unit_test(test_scale_none_only_centres),
        cmocka_unit_test(test_a_group_that_lost_a_member_normalises_over_the_rest),
        cmocka_unit_test(test_a_single_judged_member_gets_zero_or_its_raw_reward),
        cmocka_unit_test(test_a_group_without_rewards_has_no_statistics),
        cmocka_unit_test(test_a_large_offset_does_not_eat_the_spread),
        cmocka_unit_test(test_huge_and_tiny_spreads_scale),
        cmocka_unit_test(test_a_sum_beyond_double_is_refused_with_its_sequence),
        cmocka_unit_test(test_groups_may_be_interleaved_and_never_mix),
        cmocka_unit_test(test_scale_batch_divides_by_the_deviation_of_all_rewards),
        cmocka_unit_test(test_a_rule_over_the_batch_has_no_advantages_at_the_closing_of_a_group),
        cmocka_unit_test(test_the_estimator_reward_has_no_baseline),
        cmocka_unit_test(test_the_clip_of_the_advantage_comes_last),
        cmocka_unit_test(test_scores_combine_by_weight_and_by_the_rule_for_missing_ones),
        cmocka_unit_test(test_rewards_are_equal_up_to_a_billionth_of_a_thousandth),
        cmocka_unit_test(test_a_sum_that_is_nothing_but_rounding_is_0),
        cmocka_unit_test(test_advantages_add_up_to_nothing_at_any_offset),
        cmocka_unit_test(test_a_range_beyond_double_scales_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
