/* Estimators, shapers, filters, corrections and selections by hand-worked numbers; properties of all of them. */
#include "tests/unit/objective/fixture.h"

static void run(struct scene *scene)
{
    struct objective_contradiction contradiction;
    if (objective_settle(&scene->knobs, &contradiction) < 0)
        fail_msg("%s %s", contradiction.path, contradiction.message);
    if (scene_run(scene) < 0)
        fail_msg("%s %s", scene->error.field ? scene->error.field : "", scene->error.message);
}

static struct scene *scene_of(size_t n, const double *rewards)
{
    struct scene *scene = scene_create();
    for (size_t i = 0; i < n; i++)
        scene_add(scene, 0, rewards[i], 2);
    return scene;
}

static struct objective_shaper *shape(struct scene *scene, int kind)
{
    struct objective_shaper *shaper = &scene->knobs.shaping[scene->knobs.shaping_count++];
    objective_item_init(objective_section_find("shaping"), shaper);
    shaper->kind = kind;
    return shaper;
}

static struct objective_correction *correct(struct scene *scene, int method)
{
    struct objective_correction *correction = &scene->knobs.importance[scene->knobs.importance_count++];
    objective_item_init(objective_section_find("importance"), correction);
    correction->method = method;
    return correction;
}

/* --- advantages --- */

static void test_equal_rewards_give_exactly_0_under_every_estimator_that_removes_a_mean(void **state)
{
    const int kinds[] = {OBJECTIVE_ESTIMATOR_GRPO,          OBJECTIVE_ESTIMATOR_RLOO,
                         OBJECTIVE_ESTIMATOR_LOO,           OBJECTIVE_ESTIMATOR_MAXRL,
                         OBJECTIVE_ESTIMATOR_PASSK,         OBJECTIVE_ESTIMATOR_OPO,
                         OBJECTIVE_ESTIMATOR_GPG,           OBJECTIVE_ESTIMATOR_RPP,
                         OBJECTIVE_ESTIMATOR_RPP_BASELINE,  OBJECTIVE_ESTIMATOR_RPP_BASELINE_SEQUENCE,
                         OBJECTIVE_ESTIMATOR_NORMALIZATION, OBJECTIVE_ESTIMATOR_OPTIMAL_TOKEN_BASELINE};
    const double rewards[] = {0.1, 0.1, 0.1};
    (void)state;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct scene *scene = scene_of(3, rewards);
        scene->knobs.advantage.estimator = kinds[k];
        scene->knobs.advantage.eps = 1e-6;
        for (size_t i = 0; i < 3; i++)
            scene->sequences[i].sum_pi_squared.f64 = scene->lines[i].rollout;
        run(scene);
        for (size_t i = 0; i < 3; i++)
            for (size_t t = 0; t < 2; t++) {
                assert_exactly(scene->lines[i].advantages[t], 0);
                assert_exactly(scene->lines[i].slopes[t], 0);
            }
        test_free(scene);
    }
}

static void test_the_best_alone_is_rewarded_and_ties_are_not(void **state)
{
    const double rewards[] = {0.25, 1, 0.5}, tied[] = {1, 1, 0};
    struct scene *scene = scene_of(3, rewards);
    (void)state;

    scene->knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_PASSK;
    scene->knobs.advantage.norm = false;
    run(scene);
    assert_exactly(scene->sequences[1].advantage, 0.5);
    assert_exactly(scene->sequences[0].advantage, 0);
    for (size_t i = 0; i < 3; i++)
        scene->sequences[i].reward = tied[i];
    run(scene);
    for (size_t i = 0; i < 3; i++)
        assert_exactly(scene->sequences[i].advantage, 0);
    test_free(scene);
}

static void test_leave_one_out_statistics_are_those_of_the_others(void **state)
{
    const double rewards[] = {1e6, 1, 1.5, 0.5}; /* one outlier: its own share must not eat the others' digits */
    struct scene *scene = scene_of(4, rewards);
    (void)state;

    scene->knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_LOO;
    run(scene);
    assert_near(scene->sequences[0].advantage, (1e6 - 1) / 0.5, 1e-14);
    test_free(scene);
}

static void test_normalization_takes_each_statistic_from_its_own_level(void **state)
{
    const double rewards[] = {0, 2, 4, 4};
    struct scene *scene = scene_create();
    (void)state;

    for (size_t i = 0; i < 4; i++)
        scene_add(scene, i / 2, rewards[i], 1);
    scene->knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_NORMALIZATION;
    scene->knobs.advantage.mean = OBJECTIVE_SCALE_BATCH;
    scene->knobs.advantage.scale = OBJECTIVE_SCALE_NONE;
    run(scene);
    assert_exactly(scene->sequences[0].advantage, -2.5);
    scene->knobs.advantage.mean = OBJECTIVE_SCALE_GROUP;
    scene->knobs.advantage.leave_one_out = true;
    run(scene);
    assert_exactly(scene->sequences[1].advantage, 2);
    assert_exactly(scene->sequences[2].advantage, 0);
    test_free(scene);
}

static void test_a_group_that_the_filter_drops_is_in_no_statistic_over_the_request(void **state)
{
    const double rewards[] = {0, 2, 100, 100};
    struct scene *scene = scene_create();
    (void)state;

    for (size_t i = 0; i < 4; i++)
        scene_add(scene, i / 2, rewards[i], 1);
    scene->knobs.advantage.scale = OBJECTIVE_SCALE_BATCH;
    scene->knobs.filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    run(scene);
    assert_exactly(scene->sequences[1].advantage, 1); /* the deviation of {0, 2} is 1 */
    assert_false(scene->sequences[2].kept);
    assert_exactly(scene->result.totals.sequences, 2);
    assert_exactly(scene->lines[2].weights[0], 0);
    assert_true(scene->result.notes & OBJECTIVE_NOTE_FILTERED);
    test_free(scene);
}

static void test_all_groups_dropped_is_a_loss_of_0(void **state)
{
    const double rewards[] = {1, 1};
    struct scene *scene = scene_of(2, rewards);
    (void)state;

    scene->knobs.filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    run(scene);
    assert_exactly(scene->result.loss, 0);
    assert_true(scene->result.notes & OBJECTIVE_NOTE_ALL_MASKED);
    test_free(scene);
}

/* --- shaping --- */

static void test_the_cosine_runs_from_the_short_end_to_the_long_one(void **state)
{
    const double rewards[] = {1, 1, 1, 0, 0}, want[] = {1, 0.75, 0.5, -1, -0.5};
    const int64_t lengths[] = {0, 5, 25, 0, 10};
    struct scene *scene = scene_of(5, rewards);
    (void)state;

    shape(scene, OBJECTIVE_SHAPER_COSINE)->max_len = 10;
    for (size_t i = 0; i < 5; i++)
        scene->sequences[i].length = lengths[i];
    run(scene);
    for (size_t i = 0; i < 5; i++)
        assert_near(scene->sequences[i].shaped_reward, want[i], 1e-15);
    test_free(scene);
}

static void test_repetition_counts_distinct_ngrams(void **state)
{
    const uint32_t ids[] = {1, 2, 1, 2, 1}, few[] = {7};
    const double rewards[] = {1, 1};
    struct scene *scene = scene_of(2, rewards);
    struct objective_shaper *shaper = shape(scene, OBJECTIVE_SHAPER_REPETITION);
    (void)state;

    shaper->ngram = 2;
    shaper->max_penalty = -1;
    scene->sequences[0].completion_ids = ids;
    scene->sequences[0].completion_id_count = 5;
    scene->sequences[1].completion_ids = few;
    scene->sequences[1].completion_id_count = 1;
    run(scene);
    assert_near(scene->sequences[0].shaped_reward, 0.5, 1e-15); /* {12, 21} of 4 */
    assert_exactly(scene->sequences[1].shaped_reward, 1);
    test_free(scene);
}

static void test_shapers_apply_in_order_and_leave_the_raw_reward(void **state)
{
    const double rewards[] = {0.5, 1};
    struct scene *scene = scene_of(2, rewards);
    struct objective_shaper *map = shape(scene, OBJECTIVE_SHAPER_LINEAR_MAP);
    (void)state;

    map->source[0] = 0;
    map->source[1] = 1;
    map->target[0] = -1;
    map->target[1] = 3;
    struct objective_shaper *clip = shape(scene, OBJECTIVE_SHAPER_REWARD_CLIP);
    clip->lo = -1;
    clip->hi = 2;
    run(scene);
    assert_exactly(scene->sequences[0].shaped_reward, 1);
    assert_exactly(scene->sequences[1].shaped_reward, 2);
    assert_exactly(scene->sequences[1].reward, 1);
    assert_exactly(scene->groups[0].mean, 0.75);
    assert_near(scene->result.metrics.reward_mean, 0.75, 1e-15);
    test_free(scene);
}

/* --- correction and selection --- */

static void test_weights_multiply_and_rejections_add_up(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, NAN, 3);
    scene->sequences[0].rewarded = scene->request.advantages_given = true;
    scene->sequences[0].advantage = -1;
    scene->sequences[0].importance = scene->lines[0].given;
    scene->lines[0].rollout[0] -= log(2);
    scene->lines[0].rollout[1] -= log(8);
    scene->lines[0].rollout[2] = -2000; /* e^1999: rejected, so it never meets a 0 */
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_TRUNCATE)->hi = 4;
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_MASK)->hi = 10;
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_SUM;
    run(scene);
    assert_near(scene->lines[0].contributions[0], 4, 1e-14);  /* 2 * 2 */
    assert_near(scene->lines[0].contributions[1], 32, 1e-14); /* 4 * 8 */
    assert_exactly(scene->lines[0].contributions[2], 0);
    assert_exactly(scene->lines[0].given[2], 0);
    assert_int_equal(scene->lines[0].selected[2], 0);
    assert_exactly(scene->result.totals.tokens, 3);
    scene->knobs.importance[1].denominator = OBJECTIVE_IS_DENOMINATOR_KEPT;
    run(scene);
    assert_exactly(scene->result.totals.tokens, 2);
    test_free(scene);
}

static void test_a_rejected_token_whose_own_loss_is_beyond_double_is_0(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, NAN, 2);
    scene->sequences[0].rewarded = scene->request.advantages_given = true;
    scene->sequences[0].advantage = -1;
    scene->lines[0].old[0] = -1000; /* ratio e^999, and a bad token: its loss is infinite */
    scene->lines[0].rollout[0] = -1;
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_MASK)->lo = 0.5;
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_SUM;
    run(scene);
    assert_exactly(scene->lines[0].contributions[0], 0);
    assert_exactly(scene->lines[0].slopes[0], 0);
    assert_exactly(scene->result.loss, 1);
    test_free(scene);
}

static void test_the_filter_looks_at_the_reward_it_is_told_to(void **state)
{
    const double rewards[] = {1, 1};
    struct scene *scene = scene_of(2, rewards);
    (void)state;

    shape(scene, OBJECTIVE_SHAPER_NO_EOS_ZERO);
    scene->sequences[0].finish_reason = OBJECTIVE_FINISH_LENGTH;
    scene->sequences[1].finish_reason = OBJECTIVE_FINISH_OTHER;
    scene->knobs.filter.rule = OBJECTIVE_FILTER_NONZERO_VARIANCE;
    run(scene);
    assert_false(scene->sequences[0].kept);
    scene->knobs.filter.on = OBJECTIVE_FILTER_ON_SHAPED;
    run(scene);
    assert_true(scene->sequences[0].kept);
    test_free(scene);
}

static void test_a_seed_chooses_among_the_candidates_and_the_same_ones_again(void **state)
{
    struct scene *scene = scene_create();
    size_t dropped[2] = {0, 0};
    (void)state;

    scene_add(scene, 0, NAN, 100);
    scene->sequences[0].rewarded = scene->request.advantages_given = true;
    scene->sequences[0].advantage = 1;
    scene_add(scene, 0, NAN, 100);
    scene->sequences[1].rewarded = true;
    scene->sequences[1].advantage = -1;
    for (size_t t = 0; t < 100; t++)
        scene->lines[1].logprobs[t] = scene->lines[1].old[t] = -4; /* covariance 1.5 everywhere */
    scene->knobs.selection.method = OBJECTIVE_SELECTION_CLIP_COV;
    scene->knobs.selection.ratio = 0.1;
    for (int pass = 0; pass < 2; pass++) {
        run(scene);
        for (size_t i = 0; i < 2; i++)
            for (size_t t = 0; t < 100; t++)
                dropped[pass] += (i * 100 + t + 1) * !scene->lines[i].selected[t];
    }
    assert_int_equal(dropped[0], dropped[1]);
    size_t count = 0;
    for (size_t t = 0; t < 100; t++)
        count += !scene->lines[0].selected[t] + !scene->lines[1].selected[t];
    assert_int_equal(count, 20);
    scene->knobs.selection.seed = 1;
    run(scene);
    dropped[1] = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t t = 0; t < 100; t++)
            dropped[1] += (i * 100 + t + 1) * !scene->lines[i].selected[t];
    assert_int_not_equal(dropped[0], dropped[1]);
    test_free(scene);
}

static void test_a_group_without_variance_may_be_spared_the_kl(void **state)
{
    const double rewards[] = {1, 1};
    struct scene *scene = scene_of(2, rewards);
    (void)state;

    scene->lines[0].reference[0] = -3;
    scene->knobs.beta = 0.5;
    run(scene);
    assert_true(scene->result.kl_loss > 0);
    scene->knobs.kl.skip_zero_variance = true;
    run(scene);
    assert_exactly(scene->result.kl_loss, 0);
    test_free(scene);
}

static void test_positive_nll_is_a_mean_over_tokens_of_good_sequences(void **state)
{
    const double rewards[] = {1, 0};
    struct scene *scene = scene_of(2, rewards);
    (void)state;

    scene->knobs.loss.positive_nll = 0.5;
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_SUM;
    run(scene);
    assert_near(scene->lines[0].contributions[0], -1 + 0.5 / 2, 1e-15); /* -A + w/T * 1 */
    assert_near(scene->lines[0].slopes[0], -1 - 0.5 / 2, 1e-15);
    assert_near(scene->lines[1].contributions[0], 1, 1e-15);
    test_free(scene);
}

/* --- properties --- */

static struct scene *random_scene(uint64_t seed)
{
    struct scene *scene = scene_create();

    for (size_t i = 0; i < 6; i++) {
        size_t tokens = 3 + (size_t)(scene_random(&seed) * 9);
        size_t index = scene_add(scene, i % 2, floor(scene_random(&seed) * 9) / 8, tokens);
        struct line *line = &scene->lines[index];
        for (size_t t = 0; t < tokens; t++) {
            line->old[t] = -0.1 - 3 * scene_random(&seed);
            line->logprobs[t] = line->old[t] + (scene_random(&seed) - 0.5);
            line->reference[t] = line->old[t] + (scene_random(&seed) - 0.5);
            line->rollout[t] = line->old[t] + (scene_random(&seed) - 0.5) / 2;
            line->mask[t] = t == 0 || scene_random(&seed) < 0.8;
        }
        scene->sequences[index].sum_pi_squared.f64 = line->given;
        scene->sequences[index].entropy.f64 = line->reference;
        scene->sequences[index].greedy_reward = 0.5;
    }
    return scene;
}

/* Every estimator but those that need more than a reward. */
static bool works_on_rewards(int estimator)
{
    return estimator != OBJECTIVE_ESTIMATOR_GDPO && estimator != OBJECTIVE_ESTIMATOR_PROCESS;
}

static void test_contributions_sum_to_the_loss_for_every_estimator_and_loss(void **state)
{
    (void)state;
    for (int estimator = 0; estimator < OBJECTIVE_ESTIMATOR_COUNT; estimator++)
        for (int loss = 0; loss < OBJECTIVE_LOSS_COUNT; loss++) {
            struct scene *scene = random_scene((uint64_t)(estimator * 100 + loss));
            struct objective_knobs knobs;
            struct objective_contradiction contradiction;
            scene->knobs.advantage.estimator = estimator;
            scene_choose_loss(scene, loss == OBJECTIVE_LOSS_REAL ? OBJECTIVE_LOSS_PPO_CLIP : loss);
            knobs = scene->knobs;
            scene->knobs.beta = 0.1;
            correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_TRUNCATE)->hi = 1.1;
            if (works_on_rewards(estimator) && objective_settle(&knobs, &contradiction) == 0) {
                run(scene);
                assert_near(scene_contributions(scene), scene->result.loss, 2e-15);
                assert_near(scene->result.policy_loss + scene->result.kl_loss, scene->result.loss, 2e-15);
            }
            test_free(scene);
        }
}

static void swap(struct scene *scene, size_t a, size_t b)
{
    struct objective_sequence kept = scene->sequences[a];
    scene->sequences[a] = scene->sequences[b];
    scene->sequences[b] = kept;
}

static void test_the_order_of_sequences_matters_to_no_estimator_but_the_running_baseline(void **state)
{
    (void)state;
    for (int estimator = 0; estimator < OBJECTIVE_ESTIMATOR_COUNT; estimator++) {
        struct scene *scene = random_scene((uint64_t)estimator);
        scene->knobs.advantage.estimator = estimator;
        if (!works_on_rewards(estimator) || estimator == OBJECTIVE_ESTIMATOR_EMA_BASELINE) {
            test_free(scene);
            continue;
        }
        run(scene);
        double loss = scene->result.loss, slope = scene->lines[4].slopes[0];
        for (size_t i = 0; i < 3; i++)
            swap(scene, i, 5 - i);
        run(scene);
        assert_near(scene->result.loss, loss, 4e-15);
        assert_near(scene->lines[4].slopes[0], slope, 4e-15);
        test_free(scene);
    }
}

/* Values at a masked token, and padding behind the end, change no bit of any loss. */
static void test_masked_tokens_touch_no_loss(void **state)
{
    (void)state;
    for (int loss = 0; loss < OBJECTIVE_LOSS_COUNT; loss++) {
        struct scene *scene = random_scene((uint64_t)loss + 500);
        scene_choose_loss(scene, loss);
        scene->knobs.beta = 0.1;
        if (loss != OBJECTIVE_LOSS_REAL)
            correct(scene, OBJECTIVE_IMPORTANCE_SEQUENCE_TRUNCATE)->hi = 1.2;
        run(scene);
        double before = scene->result.loss;
        for (size_t i = 0; i < 6; i++) {
            struct line *line = &scene->lines[i];
            for (size_t added = 0; added < 4; added++)
                line->mask[scene->sequences[i].tokens++] = 0;
            for (size_t t = 0; t < scene->sequences[i].tokens; t++)
                if (!line->mask[t])
                    line->logprobs[t] = line->old[t] = line->rollout[t] = line->reference[t] = t % 2 ? NAN : INFINITY;
        }
        run(scene);
        if (loss == OBJECTIVE_LOSS_FIPO) /* its decay goes by place, so masked places count */
            assert_near(scene->result.loss, before, 1e-14);
        else
            assert_exactly(scene->result.loss, before);
        test_free(scene);
    }
}

static void test_rewards_may_be_shifted_by_a_constant_where_a_mean_is_removed(void **state)
{
    const int kinds[] = {OBJECTIVE_ESTIMATOR_GRPO,         OBJECTIVE_ESTIMATOR_RLOO,
                         OBJECTIVE_ESTIMATOR_LOO,          OBJECTIVE_ESTIMATOR_PASSK,
                         OBJECTIVE_ESTIMATOR_OPO,          OBJECTIVE_ESTIMATOR_RPP,
                         OBJECTIVE_ESTIMATOR_RPP_BASELINE, OBJECTIVE_ESTIMATOR_RPP_BASELINE_SEQUENCE};
    (void)state;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct scene *scene = random_scene(40 + k);
        scene->knobs.advantage.estimator = kinds[k];
        run(scene);
        double loss = scene->result.loss;
        for (size_t i = 0; i < 6; i++)
            scene->sequences[i].reward += 4;
        run(scene);
        assert_near(scene->result.loss, loss, 1e-13);
        test_free(scene);
    }
}

static void test_an_advantage_of_a_bad_token_beyond_double_is_refused_with_its_place(void **state)
{
    struct scene *scene = scene_create();
    (void)state;

    scene_add(scene, 0, NAN, 2);
    scene->sequences[0].rewarded = scene->request.advantages_given = true;
    scene->sequences[0].advantage = -1;
    scene->lines[0].old[1] = -900;
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_NON_FINITE);
    assert_int_equal(scene->error.token, 1);
    scene->lines[0].old[1] = -1;
    scene->lines[0].rollout[1] = NAN;
    scene->lines[0].mask[1] = 1;
    assert_int_equal(scene_run(scene), -1); /* an input that is there must be finite, needed or not */
    test_free(scene);
}

/* --- arrays in and out --- */

/* F07 */
static void test_a_value_out_of_range_is_found_anywhere_except_under_the_mask(void **state)
{
    enum { LONGEST = 70 };
    const double bad[] = {2e-6, 1e300, NAN, INFINITY, -INFINITY};
    double wide[LONGEST];
    float narrow[LONGEST];
    uint8_t mask[LONGEST];
    (void)state;

    for (size_t n = 1; n <= LONGEST; n++) {
        struct objective_sequence sequence = {.tokens = n};
        for (size_t place = 0; place < n; place++) {
            for (size_t t = 0; t < n; t++) {
                wide[t] = t % 3 ? -1.5 * (double)t : 1e-6;
                narrow[t] = (float)wide[t];
                mask[t] = t != place;
            }
            sequence.mask = NULL;
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f64 = wide}, 1e-6), n);
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f32 = narrow}, 1e-6), n);
            wide[place] = bad[(n + place) % 5];
            narrow[place] = (float)wide[place];
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f64 = wide}, 1e-6), place);
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f32 = narrow}, 1e-6), place);
            sequence.mask = mask;
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f64 = wide}, 1e-6), n);
            assert_int_equal(objective_find_outside(&sequence, (struct objective_values){.f32 = narrow}, 1e-6), n);
        }
    }
    assert_int_equal(objective_find_outside(&(struct objective_sequence){.tokens = 3}, (struct objective_values){0}, 0),
                     3);
}

static void test_doubles_become_the_nearest_floats_and_what_is_beyond_them_is_told(void **state)
{
    const double values[] = {0.1, -1e-46, 1e-40, 3.4028234663852886e38, -2.5};
    const double beyond[] = {0.1, -1e39, 1};
    float narrow[5];
    (void)state;

    assert_true(objective_narrow(5, values, narrow));
    for (size_t t = 0; t < 5; t++)
        assert_true(narrow[t] == (float)values[t]);
    assert_false(objective_narrow(3, beyond, narrow));
    assert_true(narrow[1] == -INFINITY && narrow[2] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_rewards_give_exactly_0_under_every_estimator_that_removes_a_mean),
        cmocka_unit_test(test_the_best_alone_is_rewarded_and_ties_are_not),
        cmocka_unit_test(test_leave_one_out_statistics_are_those_of_the_others),
        cmocka_unit_test(test_normalization_takes_each_statistic_from_its_own_level),
        cmocka_unit_test(test_a_group_that_the_filter_drops_is_in_no_statistic_over_the_request),
        cmocka_unit_test(test_all_groups_dropped_is_a_loss_of_0),
        cmocka_unit_test(test_the_cosine_runs_from_the_short_end_to_the_long_one),
        cmocka_unit_test(test_repetition_counts_distinct_ngrams),
        cmocka_unit_test(test_shapers_apply_in_order_and_leave_the_raw_reward),
        cmocka_unit_test(test_weights_multiply_and_rejections_add_up),
        cmocka_unit_test(test_a_rejected_token_whose_own_loss_is_beyond_double_is_0),
        cmocka_unit_test(test_the_filter_looks_at_the_reward_it_is_told_to),
        cmocka_unit_test(test_a_seed_chooses_among_the_candidates_and_the_same_ones_again),
        cmocka_unit_test(test_a_group_without_variance_may_be_spared_the_kl),
        cmocka_unit_test(test_positive_nll_is_a_mean_over_tokens_of_good_sequences),
        cmocka_unit_test(test_contributions_sum_to_the_loss_for_every_estimator_and_loss),
        cmocka_unit_test(test_the_order_of_sequences_matters_to_no_estimator_but_the_running_baseline),
        cmocka_unit_test(test_masked_tokens_touch_no_loss),
        cmocka_unit_test(test_rewards_may_be_shifted_by_a_constant_where_a_mean_is_removed),
        cmocka_unit_test(test_a_value_out_of_range_is_found_anywhere_except_under_the_mask),
        cmocka_unit_test(test_doubles_become_the_nearest_floats_and_what_is_beyond_them_is_told),
        cmocka_unit_test(test_an_advantage_of_a_bad_token_beyond_double_is_refused_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
