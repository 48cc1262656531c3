/* Properties of every request, tried on random ones. */
#include "tests/unit/objective/fixture.h"

enum { SEQUENCES = 6, GROUPS = 2 };

static double spread(uint64_t *seed, double width)
{
    return (scene_random(seed) - 0.5) * width;
}

/* Groups interleaved, lengths 1 to 300 (more than a block), some tokens masked, ratios around 1. */
static struct scene *random_scene(uint64_t seed)
{
    struct scene *scene = scene_create();

    for (size_t i = 0; i < SEQUENCES; i++) {
        size_t tokens = 1 + (size_t)(scene_random(&seed) * (i == 0 ? 600 : 20));
        size_t index = scene_add(scene, i % GROUPS, floor(scene_random(&seed) * 5) / 4, tokens);
        struct line *line = &scene->lines[index];
        for (size_t t = 0; t < tokens; t++) {
            line->old[t] = -0.1 - 3 * scene_random(&seed);
            line->logprobs[t] = line->old[t] + spread(&seed, 1.2);
            line->reference[t] = line->old[t] + spread(&seed, 1);
            line->rollout[t] = line->old[t] + spread(&seed, 0.1);
            line->mask[t] = scene_random(&seed) < 0.8;
        }
        line->mask[0] = 1;
    }
    return scene;
}

static double loss_of(struct scene *scene)
{
    assert_int_equal(scene_run(scene), 0);
    return scene->result.loss;
}

static void test_contributions_sum_to_the_loss(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct scene *scene = random_scene(seed);
        double of_sequences = 0;
        scene->knobs.beta = seed % 2 ? 0.1 : 0;
        double loss = loss_of(scene);
        assert_near(scene_contributions(scene), loss, 1e-15);
        for (size_t i = 0; i < SEQUENCES; i++)
            of_sequences += scene->sequences[i].loss;
        assert_near(of_sequences, loss, 1e-15);
        test_free(scene);
    }
}

static void swap_sequences(struct scene *scene, size_t a, size_t b)
{
    struct objective_sequence kept = scene->sequences[a];
    scene->sequences[a] = scene->sequences[b];
    scene->sequences[b] = kept;
}

static void test_the_order_of_members_does_not_matter(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct scene *scene = random_scene(seed);
        scene->knobs.beta = 0.1;
        double loss = loss_of(scene), slope = scene->lines[3].slopes[0];
        for (size_t i = 0; i < SEQUENCES / 2; i++)
            swap_sequences(scene, i, SEQUENCES - 1 - i);
        assert_near(loss_of(scene), loss, 1e-15);
        assert_near(scene->lines[3].slopes[0], slope, 1e-15);
        test_free(scene);
    }
}

static void test_padding_added_changes_no_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct scene *scene = random_scene(seed);
        double loss = loss_of(scene);
        for (size_t i = 1; i < SEQUENCES; i++) {
            struct line *line = &scene->lines[i];
            for (size_t added = 0; added < 9; added++)
                line->logprobs[scene->sequences[i].tokens++] = NAN;
        }
        assert_exactly(loss_of(scene), loss);
        assert_exactly(scene->lines[1].contributions[scene->sequences[1].tokens - 1], 0);
        test_free(scene);
    }
}

static void test_values_at_masked_tokens_change_no_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct scene *scene = random_scene(seed);
        scene->knobs.beta = 0.1;
        double loss = loss_of(scene);
        for (size_t i = 0; i < SEQUENCES; i++)
            for (size_t t = 0; t < scene->sequences[i].tokens; t++)
                if (!scene->lines[i].mask[t])
                    scene->lines[i].logprobs[t] = scene->lines[i].reference[t] = t % 2 ? INFINITY : NAN;
        assert_exactly(loss_of(scene), loss);
        test_free(scene);
    }
}

/* The micro-batches hold one sequence each; advantages were found over the whole. */
static void test_parts_with_totals_add_up_to_the_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        for (int mode = 0; mode < OBJECTIVE_MODE_COUNT; mode++) {
            struct scene *scene = random_scene(seed);
            scene->knobs.aggregation.mode = mode;
            scene->knobs.aggregation.max_len = scene->knobs.aggregation.denominator = 5;
            double whole = loss_of(scene), sum = 0, slope = scene->lines[0].slopes[0];
            struct objective_totals totals = scene->result.totals;
            if (mode == OBJECTIVE_MODE_PROMPT_MEAN || mode == OBJECTIVE_MODE_GROUP_MEAN) {
                test_free(scene); /* they need whole groups in one part: the next test */
                continue;
            }
            scene->request.advantages_given = true;
            scene->request.totals = &totals;
            scene->request.sequence_count = 1;
            for (size_t i = 0; i < SEQUENCES; i++) {
                scene->request.sequences = &scene->sequences[i];
                sum += loss_of(scene);
            }
            assert_near(sum, whole, 1e-15);
            assert_exactly(scene->lines[0].slopes[0], slope);
            test_free(scene);
        }
    }
}

/* Two parts with a group each, for every mode and loss that may come in parts. */
static void test_parts_of_whole_groups_add_up_for_every_loss_and_mode(void **state)
{
    (void)state;
    for (int kind = 0; kind < OBJECTIVE_LOSS_COUNT; kind++) {
        for (int mode = 0; mode < OBJECTIVE_MODE_COUNT; mode++) {
            struct scene *scene = random_scene((uint64_t)(kind * 10 + mode));
            struct objective_sequence sequences[SEQUENCES];
            double sum = 0;
            scene_choose_loss(scene, kind);
            scene->knobs.aggregation.mode = mode;
            scene->knobs.aggregation.max_len = scene->knobs.aggregation.denominator = 5;
            double whole = loss_of(scene), slope = scene->lines[0].slopes[0];
            struct objective_totals totals = scene->result.totals;
            memcpy(sequences, scene->sequences, sizeof sequences);
            scene->request.advantages_given = true;
            scene->request.totals = &totals;
            for (size_t group = 0; group < GROUPS; group++) {
                scene->request.sequence_count = 0;
                for (size_t i = group; i < SEQUENCES; i += GROUPS)
                    scene->sequences[scene->request.sequence_count++] = sequences[i];
                sum += loss_of(scene);
            }
            assert_near(sum, whole, 2e-15);
            assert_near(scene->lines[0].slopes[0], slope, 1e-15);
            test_free(scene);
        }
    }
}

static void test_totals_smaller_than_the_part_or_absent_where_needed_are_refused(void **state)
{
    struct scene *scene = random_scene(1);
    struct objective_totals totals = {1, 100, 100, NAN};
    (void)state;

    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_MEAN;
    scene->request.totals = &totals;
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_TOTALS);
    totals.tokens = NAN;
    assert_int_equal(scene_run(scene), -1);
    assert_int_equal(scene->error.code, OBJECTIVE_ERROR_MISSING_INPUT);
    assert_string_equal(scene->error.field, "tokens");
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN;
    assert_int_equal(scene_run(scene), 0);
    test_free(scene);
}

static void test_rewards_may_be_shifted_and_scaled(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct scene *scene = random_scene(seed);
        double loss = loss_of(scene);
        for (size_t i = 0; i < SEQUENCES; i++)
            scene->sequences[i].reward = 4 * scene->sequences[i].reward + 3; /* both exact in binary */
        assert_near(loss_of(scene), loss, 1e-14);
        test_free(scene);
    }
}

static void test_single_and_double_arrays_of_the_same_numbers_give_the_same_bits(void **state)
{
    struct scene *scene = random_scene(3);
    static float rounded[SEQUENCES][3][MAX_TOKENS];
    (void)state;

    for (size_t i = 0; i < SEQUENCES; i++) {
        double *wide[] = {scene->lines[i].logprobs, scene->lines[i].old, scene->lines[i].reference};
        for (size_t a = 0; a < 3; a++)
            for (size_t t = 0; t < scene->sequences[i].tokens; t++)
                wide[a][t] = rounded[i][a][t] = (float)wide[a][t];
    }
    scene->knobs.beta = 0.1;
    double loss = loss_of(scene);
    for (size_t i = 0; i < SEQUENCES; i++) {
        scene->sequences[i].logprobs = (struct objective_values){.f32 = rounded[i][0]};
        scene->sequences[i].old_logprobs = (struct objective_values){.f32 = rounded[i][1]};
        scene->sequences[i].ref_logprobs = (struct objective_values){.f32 = rounded[i][2]};
    }
    assert_exactly(loss_of(scene), loss);
    test_free(scene);
}

/* As a batch does: the loss at its closing from counts alone, the terms of each rollout later. */
static void test_the_terms_of_single_rollouts_sum_to_the_loss_at_the_closing(void **state)
{
    struct scene *scene = random_scene(7);
    double sum = 0;
    (void)state;

    scene->knobs.beta = 0.1;
    struct objective_knobs batch = scene->knobs, at_sampling;
    assert_int_equal(objective_at_sampling(&batch, &at_sampling), OBJECTIVE_LEFT_OUT_KL);
    scene->knobs = at_sampling;
    for (size_t i = 0; i < SEQUENCES; i++)
        scene->sequences[i].logprobs.f64 = scene->sequences[i].old_logprobs.f64 = NULL;
    double loss = loss_of(scene);
    for (size_t i = 0; i < SEQUENCES; i++) {
        struct objective_sequence one = scene->sequences[i];
        struct objective_result result;
        one.shaped_reward = one.reward;
        assert_int_equal(objective_sampled_terms(&batch, &scene->result.totals, 1, &one, &result), 0);
        assert_exactly(one.surrogates[0], one.advantage);
        for (size_t t = 0; t < one.tokens; t++)
            sum += one.contributions[t];
    }
    assert_near(sum, loss, 1e-15);
    test_free(scene);
}

static void test_rollout_metrics_match_their_formulas(void **state)
{
    const double old[] = {-1, -2, -3, -0.5}, rollout[] = {-1.1, -1, -5, -0.5};
    struct scene *scene = scene_create();
    double w = 0, w2 = 0;
    (void)state;

    scene_add(scene, 0, 1, 5);
    for (int t = 0; t < 4; t++) {
        scene->lines[0].logprobs[t] = scene->lines[0].old[t] = old[t];
        scene->lines[0].rollout[t] = rollout[t];
        w += exp(old[t] - rollout[t]) / 4;
        w2 += exp(2 * (old[t] - rollout[t])) / 4;
    }
    scene->lines[0].mask[4] = 0;
    scene->sequences[0].rollout_logprobs.f64 = scene->lines[0].rollout;
    assert_int_equal(scene_run(scene), 0);
    const struct objective_metrics *metrics = &scene->result.metrics;
    assert_near(metrics->rollout.kl, -0.275, 1e-14);
    assert_near(metrics->rollout.is_mean, w, 1e-14);
    assert_near(metrics->rollout.chi2_token, w2 - 1, 1e-14);
    assert_near(metrics->rollout.chi2_seq, exp(2.2) - 1, 1e-14);
    assert_near(metrics->rollout.training_log_ppl, 1.625, 1e-14);
    assert_near(metrics->rollout.rollout_log_ppl, 1.9, 1e-14);
    assert_near(metrics->rollout.ess, w * w / w2, 1e-14);
    assert_near(scene->result.sums.gap_sum, 3.1, 1e-14);
    test_free(scene);
}

/* F05: every reward is that of a rollout; the copies are further sequences of it. */
static void copy_as_rollouts(struct scene *scene, size_t copies)
{
    for (size_t i = 0; i < SEQUENCES + copies; i++) {
        scene->sequences[i].rollout = i % SEQUENCES;
        if (i < SEQUENCES)
            continue;
        const struct objective_sequence *first = &scene->sequences[i % SEQUENCES];
        size_t index = scene_add(scene, first->group, first->reward, 1);
        scene->sequences[index].rollout = first->rollout;
    }
    scene->request.rollout_count = SEQUENCES;
}

static void test_more_sequences_of_a_rollout_change_no_advantage(void **state)
{
    static const int estimators[] = {OBJECTIVE_ESTIMATOR_GRPO,
                                     OBJECTIVE_ESTIMATOR_RLOO,
                                     OBJECTIVE_ESTIMATOR_LOO,
                                     OBJECTIVE_ESTIMATOR_MAXRL,
                                     OBJECTIVE_ESTIMATOR_PASSK,
                                     OBJECTIVE_ESTIMATOR_GPG,
                                     OBJECTIVE_ESTIMATOR_RPP_BASELINE_SEQUENCE,
                                     OBJECTIVE_ESTIMATOR_NORMALIZATION,
                                     OBJECTIVE_ESTIMATOR_EMA_BASELINE};
    (void)state;

    for (uint64_t seed = 0; seed < 20; seed++)
        for (size_t e = 0; e < sizeof estimators / sizeof estimators[0]; e++) {
            struct scene *alone = random_scene(seed);
            struct scene *copied = random_scene(seed);
            alone->knobs.advantage.estimator = copied->knobs.advantage.estimator = estimators[e];
            copy_as_rollouts(copied, 1 + seed % 8);
            assert_int_equal(scene_run(alone), 0);
            assert_int_equal(scene_run(copied), 0);
            for (size_t i = 0; i < copied->request.sequence_count; i++)
                assert_near(copied->sequences[i].advantage, alone->sequences[i % SEQUENCES].advantage, 1e-14);
            assert_exactly(copied->result.metrics.reward_mean, alone->result.metrics.reward_mean);
            assert_exactly(copied->result.metrics.reward_std, alone->result.metrics.reward_std);
            test_free(alone);
            test_free(copied);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contributions_sum_to_the_loss),
        cmocka_unit_test(test_the_order_of_members_does_not_matter),
        cmocka_unit_test(test_padding_added_changes_no_bit),
        cmocka_unit_test(test_values_at_masked_tokens_change_no_bit),
        cmocka_unit_test(test_parts_with_totals_add_up_to_the_whole),
        cmocka_unit_test(test_parts_of_whole_groups_add_up_for_every_loss_and_mode),
        cmocka_unit_test(test_totals_smaller_than_the_part_or_absent_where_needed_are_refused),
        cmocka_unit_test(test_rewards_may_be_shifted_and_scaled),
        cmocka_unit_test(test_single_and_double_arrays_of_the_same_numbers_give_the_same_bits),
        cmocka_unit_test(test_the_terms_of_single_rollouts_sum_to_the_loss_at_the_closing),
        cmocka_unit_test(test_rollout_metrics_match_their_formulas),
        cmocka_unit_test(test_more_sequences_of_a_rollout_change_no_advantage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
