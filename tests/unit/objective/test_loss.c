/* Token losses, KL, aggregation, metrics: values worked out on paper. */
#include "tests/unit/objective/fixture.h"

struct clip_case {
    double ratio, advantage, surrogate, slope_by_logprob;
    int clipped;
};

static void check_clip(struct scene *scene, const struct clip_case *row)
{
    size_t i = scene_add_ratio(scene, row->advantage, row->ratio);
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_SUM;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[i].surrogates[0], row->surrogate, 1e-14);
    assert_near(scene->lines[i].contributions[0], -row->surrogate, 1e-14);
    assert_near(scene->lines[i].slopes[0], row->slope_by_logprob, 1e-14);
    assert_int_equal(scene->lines[i].clipped[0], row->clipped);
    assert_near(scene->lines[i].ratios[0], row->ratio, 1e-14);
}

static void test_ratios_0_6_and_1_4_with_both_signs_at_epsilon_0_2(void **state)
{
    const struct clip_case rows[] = {
        {1.4, 1, 1.2, 0, 1}, {1.4, -1, -1.4, 1.4, 0}, {0.6, 1, 0.6, -0.6, 0}, {0.6, -1, -0.8, 0, -1}};
    struct scene *scene = scene_create();
    (void)state;

    for (size_t i = 0; i < 4; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

static void test_different_bounds_hold_each_its_side(void **state)
{
    const struct clip_case rows[] = {{1.25, 1, 1.25, -1.25, 0}, {1.5, 1, 1.28, 0, 1}, {0.85, -1, -0.9, 0, -1}};
    struct scene *scene = scene_create();
    (void)state;

    scene->knobs.loss.eps_low = 0.1;
    scene->knobs.loss.eps_high = 0.28;
    for (size_t i = 0; i < 3; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

static void test_dual_c_bounds_the_loss_of_a_bad_token(void **state)
{
    const struct clip_case rows[] = {{4, -2, -6, 0, 2}, {2, -2, -4, 4, 0}, {4, 2, 2.4, 0, 1}};
    struct scene *scene = scene_create();
    (void)state;

    scene->knobs.loss.dual_c = 3;
    for (size_t i = 0; i < 3; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

static void test_delta_caps_the_ratio_of_a_bad_token(void **state)
{
    const struct clip_case rows[] = {{4, -1, -3, 0, 0}, {2, -1, -2, 2, 0}, {4, 1, 1.2, 0, 1}};
    struct scene *scene = scene_create();
    (void)state;

    scene->knobs.loss.delta = 3;
    for (size_t i = 0; i < 3; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

static void test_a_delta_below_the_clip_caps_good_tokens_too(void **state)
{
    const struct clip_case rows[] = {{1.5, 1, 1.05, 0, 1}, {1.1, -1, -1.1, 1.1, 0}, {1.5, -1, -1.2, 0, 0}};
    struct scene *scene = scene_create();
    (void)state;

    scene->knobs.loss.delta = 1.05;
    scene->knobs.loss.accept_delta_below_clip = true;
    for (size_t i = 0; i < 3; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

static void test_a_clamped_log_ratio_has_no_gradient(void **state)
{
    struct scene *scene = scene_create();
    size_t i = scene_add_ratio(scene, -1, 1);
    (void)state;

    scene->knobs.loss.log_clamp = 2;
    scene->lines[i].logprobs[0] = scene->lines[i].old[0] + 50;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[i].contributions[0], exp(2), 1e-14);
    assert_exactly(scene->lines[i].slopes[0], 0);
    assert_near(scene->lines[i].ratios[0], exp(2), 1e-14);
    test_free(scene);
}

static void test_zero_advantage_contributes_exactly_0_even_if_the_ratio_overflows(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 1, 1);
    scene_add(scene, 0, 1, 1);
    scene->lines[0].old[0] = -801;
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->result.loss, 0);
    for (int i = 0; i < 2; i++) {
        assert_exactly(scene->lines[i].contributions[0], 0);
        assert_exactly(scene->lines[i].slopes[0], 0);
    }
    assert_exactly(scene->lines[0].ratios[0], INFINITY);
    assert_true(scene->result.notes & OBJECTIVE_NOTE_RATIO_OVERFLOW);
    assert_true(isnan(scene->result.metrics.ratio_max));
    test_free(scene);
}

static void test_a_clipped_branch_with_an_infinite_ratio_is_held(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 1, 1);
    scene_add(scene, 0, 0, 1);
    scene->lines[0].old[0] = -801;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[0].contributions[0], -0.6, 1e-15);
    assert_exactly(scene->lines[0].slopes[0], 0);
    assert_exactly(scene->lines[1].contributions[0], 0.5);
    assert_exactly(scene->lines[1].slopes[0], 0.5);
    assert_near(scene->result.loss, -0.1, 1e-15);
    test_free(scene);
}

static void test_an_infinite_ratio_that_enters_the_loss_is_refused_with_its_place(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 3);
    scene_add(scene, 0, 1, 3);
    scene->lines[0].old[2] = -801;
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_NON_FINITE);
    assert_int_equal(scene->error.sequence, 0);
    assert_int_equal(scene->error.token, 2);
    assert_string_equal(scene->error.field, "logprobs");
    test_free(scene);
}

static void test_importance_sampling_has_no_clip(void **state)
{
    const struct clip_case rows[] = {{4, 1, 4, -4, 0}, {0.25, -2, -0.5, 0.5, 0}};
    struct scene *scene = scene_create();
    (void)state;

    scene->knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
    for (size_t i = 0; i < 2; i++)
        check_clip(scene, &rows[i]);
    test_free(scene);
}

struct kl_case {
    int estimator;
    double value, slope; /* at d = ln 2 */
};

static void test_kl_estimators_at_a_distance_of_ln_2(void **state)
{
    const double ln2 = M_LN2;
    const struct kl_case rows[] = {
        {OBJECTIVE_KL_K1, ln2, 1},         {OBJECTIVE_KL_ABS, ln2, 1},       {OBJECTIVE_KL_K2, ln2 * ln2 / 2, ln2},
        {OBJECTIVE_KL_K3, ln2 - 0.5, 0.5}, {OBJECTIVE_KL_K1_PLUS, ln2, ln2}, {OBJECTIVE_KL_K3_PLUS, ln2 - 0.5, ln2},
    };
    struct scene *scene = scene_create();
    size_t i = scene_add_ratio(scene, 0, 1);
    (void)state;

    scene->knobs.beta = 0.5;
    scene->lines[i].reference[0] = -1 - ln2;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        scene->knobs.kl.estimator = rows[k].estimator;
        assert_int_equal(scene_run(scene), 0);
        assert_near(scene->lines[i].kl[0], rows[k].value, 1e-15);
        assert_near(scene->result.kl_loss, rows[k].value / 2, 1e-15);
        assert_near(scene->lines[i].slopes[0], rows[k].slope / 2, 1e-15);
        assert_exactly(scene->result.policy_loss, 0);
    }
    test_free(scene);
}

static void test_kl_clamps_hold_value_and_kill_the_gradient(void **state)
{
    struct scene *scene = scene_create();
    size_t i = scene_add_ratio(scene, 0, 1);
    (void)state;

    scene->knobs.beta = 1;
    scene->knobs.kl.log_clamp = 20;
    scene->lines[i].reference[0] = -51;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[i].kl[0], 19 + exp(-20), 1e-15);
    assert_exactly(scene->lines[i].slopes[0], 0);
    scene->knobs.kl.value_clamp = 10;
    scene->lines[i].reference[0] = -14; /* d = 13: k3 is just above 12 */
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->lines[i].kl[0], 10);
    assert_exactly(scene->lines[i].slopes[0], 0);
    test_free(scene);
}

static void test_kl_times_ratio_with_and_without_its_gradient(void **state)
{
    struct scene *scene = scene_create();
    size_t i = scene_add_ratio(scene, 0, 2);
    double d = M_LN2;
    (void)state;

    scene->knobs.beta = 1;
    scene->knobs.kl.estimator = OBJECTIVE_KL_K1;
    scene->lines[i].reference[0] = -1; /* logprob is -1 + ln 2 */
    scene->knobs.kl.ratio = OBJECTIVE_KL_RATIO_MULTIPLY;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[i].kl[0], 2 * d, 1e-15);
    assert_near(scene->lines[i].slopes[0], 2 + 2 * d, 1e-15);
    scene->knobs.kl.ratio = OBJECTIVE_KL_RATIO_DETACHED;
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->lines[i].slopes[0], 2, 1e-15);
    test_free(scene);
}

static void test_a_kl_beyond_double_is_refused(void **state)
{
    struct scene *scene = scene_create();
    size_t i = scene_add_ratio(scene, 0, 1);
    (void)state;

    scene->knobs.beta = 1;
    scene->lines[i].reference[0] = 800;
    assert_int_equal(scene_run(scene), -1);
    assert_string_equal(scene->error.field, "ref_logprobs");
    test_free(scene);
}

static void test_beta_without_a_reference_names_the_missing_array(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 1);
    scene_add(scene, 0, 1, 1);
    scene->sequences[1].ref_logprobs.f64 = NULL;
    scene->knobs.beta = 0.1;
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_MISSING_INPUT);
    assert_int_equal(scene->error.sequence, 1);
    assert_string_equal(scene->error.field, "ref_logprobs");
    test_free(scene);
}

/* Two sequences of 3 and 1 trainable tokens, one all masked. */
static void test_every_mode_weighs_as_its_formula_says(void **state)
{
    struct {
        int mode, masked_seq;
        double of_three, of_one;
    } rows[] = {
        {OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN, OBJECTIVE_MASKED_SEQ_COUNT, 1.0 / 9, 1.0 / 3},
        {OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN, OBJECTIVE_MASKED_SEQ_EXCLUDE, 1.0 / 6, 1.0 / 2},
        {OBJECTIVE_MODE_TOKEN_MEAN, OBJECTIVE_MASKED_SEQ_COUNT, 0.25, 0.25},
        {OBJECTIVE_MODE_TOKEN_SUM, OBJECTIVE_MASKED_SEQ_COUNT, 1, 1},
        {OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM, OBJECTIVE_MASKED_SEQ_COUNT, 1.0 / 3, 1.0 / 3},
        {OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM, OBJECTIVE_MASKED_SEQ_EXCLUDE, 1.0 / 2, 1.0 / 2},
        {OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM_NORM, OBJECTIVE_MASKED_SEQ_COUNT, 1.0 / 24, 1.0 / 24},
        {OBJECTIVE_MODE_SEQ_SUM_TOKEN_SUM_NORM, OBJECTIVE_MASKED_SEQ_COUNT, 1.0 / 8, 1.0 / 8},
        {OBJECTIVE_MODE_CONSTANT, OBJECTIVE_MASKED_SEQ_COUNT, 1.0 / 5, 1.0 / 5},
    };
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 4);
    scene_add(scene, 0, 1, 1);
    scene_add(scene, 0, 1, 2);
    scene->lines[0].mask[1] = 0;
    scene->lines[2].mask[0] = scene->lines[2].mask[1] = 0;
    scene->knobs.aggregation.max_len = 8;
    scene->knobs.aggregation.denominator = 5;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene->knobs.aggregation.mode = rows[i].mode;
        scene->knobs.aggregation.masked_seq = rows[i].masked_seq;
        assert_int_equal(scene_run(scene), 0);
        assert_near(scene->lines[0].weights[0], rows[i].of_three, 1e-15);
        assert_exactly(scene->lines[0].weights[1], 0);
        assert_near(scene->lines[1].weights[0], rows[i].of_one, 1e-15);
        assert_exactly(scene->lines[2].weights[0], 0);
    }
    test_free(scene);
}

static void test_all_masked_is_0_and_nothing_scored_is_no_number(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 2);
    scene_add(scene, 0, 1, 0); /* an empty completion is refused by the transport; here it has no tokens to count */
    memset(scene->lines[0].mask, 0, 2);
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->result.loss, 0);
    assert_true(scene->result.notes & OBJECTIVE_NOTE_ALL_MASKED);
    assert_true(isnan(scene->result.metrics.ratio_mean));
    scene->sequences[0].rewarded = scene->sequences[1].rewarded = false;
    assert_int_equal(scene_run(scene), 0);
    assert_true(isnan(scene->result.loss) && isnan(scene->result.policy_loss));
    assert_true(scene->result.notes & OBJECTIVE_NOTE_NOTHING_SCORED);
    test_free(scene);
}

static void test_a_member_without_a_reward_is_in_no_denominator(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 1);
    scene_add(scene, 0, NAN, 5);
    scene_add(scene, 0, 1, 1);
    scene->lines[1].logprobs[0] = NAN; /* never read */
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->result.totals.sequences, 2);
    assert_exactly(scene->result.totals.tokens, 2);
    assert_exactly(scene->lines[0].contributions[0], 0.5);
    assert_exactly(scene->lines[1].contributions[0], 0);
    assert_true(isnan(scene->sequences[1].advantage));
    assert_int_equal(scene->result.sums.sequences, 2);
    test_free(scene);
}

static void test_an_untrainable_rollout_counts_in_the_statistics_alone(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    for (int i = 0; i < 4; i++)
        scene_add(scene, 0, i >= 2, 1);
    scene->sequences[3].untrainable = true;
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->sequences[2].advantage, 1);
    assert_exactly(scene->result.totals.sequences, 3);
    assert_exactly(scene->lines[3].contributions[0], 0);
    test_free(scene);
}

static void test_overlong_filtering_masks_but_keeps_the_statistics(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, 0, 2);
    scene_add(scene, 0, 1, 2);
    scene->knobs.mask.truncated = true;
    scene->sequences[1].finish_reason = OBJECTIVE_FINISH_LENGTH;
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->sequences[0].advantage, -1);
    assert_exactly(scene->result.totals.tokens, 2);
    assert_exactly(scene->lines[1].contributions[0], 0);
    test_free(scene);
}

static void test_metrics_of_clip_and_reward(void **state)
{
    struct scene *scene = scene_create();
    const double rewards[] = {0, 0, 1, 0, 1, 1};
    (void)state;

    for (size_t i = 0; i < 6; i++)
        scene_add(scene, i / 2, rewards[i], 2);
    scene->lines[2].logprobs[0] = -1 + log(1.4); /* advantage 1: upper bound */
    scene->lines[3].logprobs[1] = -1 + log(0.6); /* advantage -1: lower bound */
    assert_int_equal(scene_run(scene), 0);
    assert_near(scene->result.metrics.clip_high_fraction, 1.0 / 12, 1e-15);
    assert_near(scene->result.metrics.clip_low_fraction, 1.0 / 12, 1e-15);
    assert_near(scene->result.metrics.ratio_mean, 1, 1e-15);
    assert_near(scene->result.metrics.ratio_max, 1.4, 1e-15);
    assert_near(scene->result.metrics.ratio_outside_band, 1.0 / 6, 1e-15);
    assert_near(scene->result.metrics.reward_mean, 0.5, 1e-15);
    assert_near(scene->result.metrics.reward_std, sqrt(0.3), 1e-15);
    assert_near(scene->result.metrics.frac_reward_zero_std, 2.0 / 3, 1e-15);
    assert_int_equal(scene->result.metrics.zero_variance_groups, 2);
    test_free(scene);
}

static void test_lengths_are_told_by_finish_reason(void **state)
{
    struct scene *scene = scene_create();
    const size_t lengths[] = {3, 10, 5, 10};
    (void)state;

    for (size_t i = 0; i < 4; i++) {
        scene_add(scene, 0, 1, lengths[i]);
        scene->sequences[i].finish_reason = i & 1 ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER;
    }
    assert_int_equal(scene_run(scene), 0);
    assert_exactly(scene->result.metrics.mean_length, 7);
    assert_exactly(scene->result.metrics.truncated_fraction, 0.5);
    assert_exactly(scene->result.metrics.mean_terminated_length, 4);
    assert_exactly(scene->result.metrics.max_terminated_length, 5);
    test_free(scene);
}

static void test_pass_at_k_draws_without_replacement(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    for (size_t i = 0; i < 8; i++)
        scene_add(scene, i / 4, i == 0, 1);
    assert_int_equal(scene_run(scene), 0);
    assert_near(objective_pass_at_k(&scene->request, 1), 0.125, 1e-15);
    assert_near(objective_pass_at_k(&scene->request, 2), 0.25, 1e-15);
    assert_near(objective_pass_at_k(&scene->request, 4), 0.5, 1e-15);
    assert_true(isnan(objective_pass_at_k(&scene->request, 5)));
    test_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratios_0_6_and_1_4_with_both_signs_at_epsilon_0_2),
        cmocka_unit_test(test_different_bounds_hold_each_its_side),
        cmocka_unit_test(test_dual_c_bounds_the_loss_of_a_bad_token),
        cmocka_unit_test(test_delta_caps_the_ratio_of_a_bad_token),
        cmocka_unit_test(test_a_delta_below_the_clip_caps_good_tokens_too),
        cmocka_unit_test(test_a_clamped_log_ratio_has_no_gradient),
        cmocka_unit_test(test_zero_advantage_contributes_exactly_0_even_if_the_ratio_overflows),
        cmocka_unit_test(test_a_clipped_branch_with_an_infinite_ratio_is_held),
        cmocka_unit_test(test_an_infinite_ratio_that_enters_the_loss_is_refused_with_its_place),
        cmocka_unit_test(test_importance_sampling_has_no_clip),
        cmocka_unit_test(test_kl_estimators_at_a_distance_of_ln_2),
        cmocka_unit_test(test_kl_clamps_hold_value_and_kill_the_gradient),
        cmocka_unit_test(test_kl_times_ratio_with_and_without_its_gradient),
        cmocka_unit_test(test_a_kl_beyond_double_is_refused),
        cmocka_unit_test(test_beta_without_a_reference_names_the_missing_array),
        cmocka_unit_test(test_every_mode_weighs_as_its_formula_says),
        cmocka_unit_test(test_all_masked_is_0_and_nothing_scored_is_no_number),
        cmocka_unit_test(test_a_member_without_a_reward_is_in_no_denominator),
        cmocka_unit_test(test_an_untrainable_rollout_counts_in_the_statistics_alone),
        cmocka_unit_test(test_overlong_filtering_masks_but_keeps_the_statistics),
        cmocka_unit_test(test_metrics_of_clip_and_reward),
        cmocka_unit_test(test_lengths_are_told_by_finish_reason),
        cmocka_unit_test(test_pass_at_k_draws_without_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
