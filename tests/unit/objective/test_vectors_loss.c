/* The vectors of losses, KL and selections. */
#include "tests/unit/objective/vectors.h"

static void test_kl(void **state)
{
    static const struct {
        const char *name, *estimator;
        double log_clamp, value_clamp;
        int ratio;
    } rows[] = {{"k3_in_clamp20", "k3", 20, NAN, OBJECTIVE_KL_RATIO_NONE},
                {"k1_out_clamp10", "k1", NAN, 10, OBJECTIVE_KL_RATIO_NONE},
                {"k2_out_clamp10", "k2", NAN, 10, OBJECTIVE_KL_RATIO_NONE},
                {"k3_out_clamp10", "k3", NAN, 10, OBJECTIVE_KL_RATIO_NONE},
                {"k3_is", "k3", NAN, NAN, OBJECTIVE_KL_RATIO_MULTIPLY},
                {"ratio_times_k1", "k1", NAN, NAN, OBJECTIVE_KL_RATIO_MULTIPLY}};
    (void)state;

    FOR_SECTION("kl", one)
    {
        for (int gradient = 0; gradient < 2; gradient++) {
            const char *name;
            json_t *want;
            json_object_foreach (json_object_get(one, gradient ? "grad" : "expected"), name, want) {
                struct scene *scene = scene_create();
                const json_t *ratio = json_object_get(at(one, "inputs"), "is_ratio");
                const char *estimator = name;
                scene_add_ratio(scene, 0, 1);
                scene->lines[0].logprobs[0] = number_at(one, "inputs.logp");
                scene->lines[0].old[0] = scene->lines[0].logprobs[0] - (ratio ? log(json_number_value(ratio)) : 0);
                scene->lines[0].reference[0] = number_at(one, "inputs.logp_ref");
                scene->knobs.beta = 1;
                for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
                    if (strcmp(rows[r].name, name) == 0) {
                        estimator = rows[r].estimator;
                        scene->knobs.kl.log_clamp = rows[r].log_clamp;
                        scene->knobs.kl.value_clamp = rows[r].value_clamp;
                        scene->knobs.kl.ratio = rows[r].ratio;
                    }
                set_choice(&scene->knobs, "kl", "estimator", estimator);
                vector_run(scene, one);
                same_number(one, name, gradient ? scene->lines[0].slopes[0] : scene->lines[0].kl[0], want);
                test_free(scene);
            }
        }
    }
}

static void check_flags(const struct line *line, const json_t *one, const json_t *want)
{
    const json_t *keep = json_object_get(want, "keep"), *ratio = json_object_get(want, "ratio");
    const json_t *high = json_object_get(want, "clip_high"), *clipped = json_object_get(want, "clipped");

    if (keep)
        assert_int_equal(line->selected[0], json_is_true(keep));
    if (ratio)
        same_number(one, "ratio", line->ratios[0], ratio);
    if (clipped)
        assert_int_equal(line->clipped[0] != 0, json_is_true(clipped));
    if (high && !json_object_get(at(one, "params"), "delta"))
        assert_int_equal(line->clipped[0], json_is_true(json_object_get(want, "dual_clipped")) ? 2
                                           : json_is_true(high)                                ? 1
                                           : json_is_true(at(want, "clip_low"))                ? -1
                                                                                               : 0);
}

static void one_token(const json_t *one, const json_t *inputs, const json_t *want)
{
    struct scene *scene = scene_create();

    set_choice(&scene->knobs, "loss", "kind", json_string_value(at(one, "loss")));
    set_knobs(&scene->knobs, "loss", at(one, "params"));
    scene->knobs.loss.accept_delta_below_clip = true;
    scene_add_ratio(scene, number_at(inputs, "advantage"), 1);
    scene->lines[0].logprobs[0] = number_at(inputs, "logp");
    scene->lines[0].old[0] = scene->lines[0].rollout[0] = number_at(inputs, "logp_old");
    vector_run(scene, one);
    same_number(one, "loss", scene->lines[0].contributions[0], at(want, "loss"));
    same_number(one, "dloss_dlogp", scene->lines[0].slopes[0], at(want, "dloss_dlogp"));
    check_flags(&scene->lines[0], one, want);
    test_free(scene);
}

static void teacher(const json_t *one, const json_t *inputs, const json_t *want)
{
    struct scene *scene = scene_create();

    scene_add_ratio(scene, number_at(inputs, "advantage"), 1);
    scene->lines[0].logprobs[0] = scene->lines[0].old[0] = number_at(inputs, "logp_old");
    scene->lines[0].reference[0] = number_at(inputs, "logp_teacher");
    scene->sequences[0].teacher_logprobs.f64 = scene->lines[0].reference;
    scene->knobs.advantage.teacher_coef = number_at(one, "params.coef");
    vector_run(scene, one);
    same_number(one, "advantage", scene->lines[0].advantages[0], at(want, "advantage"));
    test_free(scene);
}

static void test_policy_losses(void **state)
{
    (void)state;
    FOR_SECTION("policy_losses", one)
    {
        bool opd = strcmp(json_string_value(at(one, "loss")), "opd") == 0;
        for (size_t i = 0; i < json_array_size(at(one, "inputs")); i++)
            (opd ? teacher : one_token)(one, json_array_get(at(one, "inputs"), i),
                                        json_array_get(at(one, "expected"), i));
    }
}

/* --- whole sequences --- */

static struct scene *scene_of_sequence(const json_t *one, int mode)
{
    struct scene *scene = scene_create();

    set_choice(&scene->knobs, "loss", "kind", json_string_value(at(one, "loss")));
    set_knobs(&scene->knobs, "loss", at(one, "params"));
    scene->knobs.aggregation.mode = mode;
    scene->request.advantages_given = true;
    return scene;
}

static void one_sequence(const json_t *one)
{
    const json_t *inputs = at(one, "inputs"), *expected = at(one, "expected"),
                 *log_is = json_object_get(inputs, "log_is");
    bool by_sequence = json_object_get(expected, "seq_loss") != NULL;
    struct scene *scene =
        scene_of_sequence(one, by_sequence ? OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN : OBJECTIVE_MODE_TOKEN_SUM);

    add_lists(scene, 0, at(inputs, "logp"), at(inputs, "logp_old"), at(inputs, "mask"));
    scene->sequences[0].advantage = number_at(inputs, "advantage");
    if (json_is_array(log_is)) {
        for (size_t t = 0; t < json_array_size(log_is); t++)
            scene->lines[0].rollout[t] = scene->lines[0].old[t] - json_number_value(json_array_get(log_is, t));
        struct objective_correction *correction = &scene->knobs.importance[scene->knobs.importance_count++];
        objective_item_init(objective_section_find("importance"), correction);
        correction->method = OBJECTIVE_IMPORTANCE_TOKEN;
    }
    vector_run(scene, one);
    if (by_sequence)
        same_number(one, "loss", scene->result.loss, at(expected, "seq_loss"));
    else
        same_numbers(one, "contributions", scene->lines[0].contributions, at(expected, "per_token_loss"));
    if (json_object_get(expected, "dloss_dlogp"))
        same_numbers(one, "dloss_dlogp", scene->lines[0].slopes, at(expected, "dloss_dlogp"));
    test_free(scene);
}

static void luspo(const json_t *one)
{
    struct scene *scene = scene_of_sequence(one, OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN);

    for (size_t i = 0; i < json_array_size(at(one, "inputs.logp")); i++) {
        add_lists(scene, i, json_array_get(at(one, "inputs.logp"), i), json_array_get(at(one, "inputs.logp_old"), i),
                  json_array_get(at(one, "inputs.mask"), i));
        scene->sequences[i].advantage = json_number_value(json_array_get(at(one, "inputs.advantage"), i));
    }
    vector_run(scene, one);
    same_number(one, "loss", scene->result.loss, at(one, "expected.loss"));
    test_free(scene);
}

static void real(const json_t *one)
{
    struct scene *scene = scene_of_sequence(one, OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN);

    for (size_t i = 0; i < json_array_size(at(one, "inputs.advantage")); i++) {
        scene_add_ratio(scene, json_number_value(json_array_get(at(one, "inputs.advantage"), i)), 1);
        scene->lines[i].logprobs[0] =
            scene->lines[i].old[0] + json_number_value(json_array_get(at(one, "inputs.seq_mean_log_ratio"), i));
    }
    vector_run(scene, one);
    same_number(one, "loss", scene->result.loss, at(one, "expected.loss"));
    test_free(scene);
}

static void test_sequence_losses(void **state)
{
    (void)state;
    FOR_SECTION("sequence_losses", one)
    {
        const char *kind = json_string_value(at(one, "loss"));
        if (strcmp(kind, "luspo") == 0)
            luspo(one);
        else if (strcmp(kind, "real") == 0)
            real(one);
        else
            one_sequence(one);
    }
}

/* --- selections of one sequence --- */

static void test_token_selection(void **state)
{
    (void)state;
    FOR_SECTION("token_selection", one)
    {
        const json_t *inputs = at(one, "inputs"), *expected = at(one, "expected");
        const json_t *logp = json_object_get(inputs, "logp_old"), *mask = json_object_get(expected, "mask");
        const char *method = json_string_value(at(one, "method"));
        if (strstr(method, "_cov")) /* test_gradient.c and test_library.c */
            continue;
        struct scene *scene = scene_create();
        logp = logp ? logp : json_object_get(inputs, "logp");
        logp = logp ? logp : at(inputs, "entropy");
        add_lists(scene, 0, logp, NULL, at(inputs, "mask"));
        const json_t *rollout = json_object_get(inputs, "logp_rollout");
        fill_numbers(scene->lines[0].rollout, rollout ? rollout : json_object_get(inputs, "logp_behaviour"));
        scene->sequences[0].entropy.f64 = scene->lines[0].logprobs;
        scene->request.advantages_given = true;
        scene->sequences[0].advantage = json_object_get(inputs, "advantage") ? number_at(inputs, "advantage") : 1;
        scene->knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
        set_choice(&scene->knobs, "selection", "method", method);
        set_knobs(&scene->knobs, "selection", at(one, "params"));
        vector_run(scene, one);
        for (size_t t = 0; mask && t < json_array_size(mask); t++)
            assert_int_equal(scene->lines[0].selected[t], json_integer_value(json_array_get(mask, t)));
        if (json_object_get(expected, "keep"))
            assert_int_equal(scene->sequences[0].kept, json_is_true(at(expected, "keep")));
        test_free(scene);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kl),
        cmocka_unit_test(test_policy_losses),
        cmocka_unit_test(test_sequence_losses),
        cmocka_unit_test(test_token_selection),
    };
    vectors = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
    if (!vectors)
        return 99;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(vectors);
    return result;
}
