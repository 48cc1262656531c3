/* The vectors of rewards, advantages, aggregation, correction and whole objectives. */
#include "tests/unit/objective/vectors.h"

/* --- advantages --- */

struct scores { /* rewards by function */
    double values[MAX_SEQUENCES][4], weights[MAX_SEQUENCES][4];
};

static void add_scores(struct scene *scene, struct scores *scores, size_t index, const json_t *inputs)
{
    const json_t *row = json_array_get(at(inputs, "rewards_per_func"), index);
    struct objective_sequence *sequence = &scene->sequences[index];

    sequence->rewarded = false;
    scene->request.score_count = json_array_size(row);
    for (size_t k = 0; k < json_array_size(row); k++) {
        const json_t *score = json_array_get(row, k);
        scores->values[index][k] = json_is_null(score) ? NAN : json_number_value(score);
        scores->weights[index][k] = json_number_value(json_array_get(at(inputs, "weights"), k));
        sequence->rewarded = sequence->rewarded || !json_is_null(score);
    }
    sequence->scores = scores->values[index];
    sequence->weights_of_scores = scores->weights[index];
    sequence->reward = objective_combine_rewards(json_array_size(row), scores->values[index], scores->weights[index],
                                                 OBJECTIVE_MISSING_SKIP);
}

static void add_rewarded(struct scene *scene, struct scores *scores, size_t index, const json_t *inputs)
{
    const json_t *masks = json_object_get(inputs, "mask"), *rewards = json_object_get(inputs, "rewards");
    const json_t *by_token = json_object_get(inputs, "token_rewards"), *lengths = json_object_get(inputs, "lengths");
    size_t group = group_number(scene, json_object_get(inputs, "group"), index);
    size_t tokens = masks     ? json_array_size(json_array_get(masks, index))
                    : lengths ? (size_t)json_integer_value(json_array_get(lengths, index))
                              : 1;
    const json_t *reward = json_array_get(rewards, index);

    assert_int_equal(scene_add(scene, group, json_is_number(reward) ? json_number_value(reward) : NAN, tokens), index);
    for (size_t t = 0; masks && t < tokens; t++)
        scene->lines[index].mask[t] = json_integer_value(json_array_get(json_array_get(masks, index), t)) != 0;
    if (by_token) {
        fill_numbers(scene->lines[index].reference, json_array_get(by_token, index));
        scene->sequences[index].token_rewards.f64 = scene->lines[index].reference;
        scene->sequences[index].rewarded = true;
    }
    if (json_object_get(inputs, "greedy_reward"))
        scene->sequences[index].greedy_reward = json_number_value(json_array_get(at(inputs, "greedy_reward"), index));
    if (json_object_get(inputs, "rewards_per_func"))
        add_scores(scene, scores, index, inputs);
}

static size_t count_of(const json_t *inputs)
{
    static const char *const names[] = {"rewards", "token_rewards", "rewards_per_func"};
    for (size_t i = 0; i < 3; i++)
        if (json_object_get(inputs, names[i]))
            return json_array_size(json_object_get(inputs, names[i]));
    return 0;
}

static void check_advantages(struct scene *scene, const json_t *one)
{
    const json_t *expected = at(one, "expected"), *want = json_object_get(expected, "advantages");

    want = want ? want : at(expected, "returns");
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t *value = json_array_get(want, i);
        if (json_is_array(value))
            same_numbers(one, "advantage", scene->lines[i].advantages, value);
        else if (scene->sequences[i].rewarded)
            same_number(one, "advantage", scene->sequences[i].advantage, value);
        if (json_is_true(json_object_get(expected, "exact_zero")))
            assert_exactly(scene->sequences[i].advantage, 0);
    }
}

static void test_advantages(void **state)
{
    (void)state;
    FOR_SECTION("advantages", one)
    {
        struct scene *scene = scene_create();
        struct scores scores;
        double baseline;
        const char *estimator = json_string_value(at(one, "estimator"));
        bool summed = strcmp(estimator, "grpo_multi_reward") == 0;
        set_choice(&scene->knobs, "advantage", "estimator", summed ? "grpo" : estimator);
        set_knobs(&scene->knobs, "advantage", at(one, "params"));
        scene->request.baselines = &baseline;
        for (size_t i = 0; i < count_of(at(one, "inputs")); i++)
            add_rewarded(scene, &scores, i, at(one, "inputs"));
        vector_run(scene, one);
        check_advantages(scene, one);
        if (json_object_get(at(one, "expected"), "final_baseline"))
            same_number(one, "baseline", baseline, at(one, "expected.final_baseline"));
        test_free(scene);
    }
}

/* --- rewards --- */

static void test_reward_aggregation(void **state)
{
    (void)state;
    FOR_SECTION("reward_aggregation", one)
    {
        const json_t *rows = at(one, "inputs.rewards_per_func");
        struct scores scores;
        for (size_t i = 0; i < json_array_size(rows); i++) {
            struct scene *scene = scene_create();
            scene_add(scene, 0, NAN, 1);
            json_t *inputs = json_pack("{s:[O], s:O}", "rewards_per_func", json_array_get(rows, i), "weights",
                                       at(one, "inputs.weights"));
            add_scores(scene, &scores, 0, inputs);
            same_number(one, "reward", scene->sequences[0].reward, json_array_get(at(one, "expected.rewards"), i));
            json_decref(inputs);
            test_free(scene);
        }
    }
}

static struct objective_shaper *add_shaper(struct scene *scene, const json_t *one)
{
    struct objective_shaper *shaper = &scene->knobs.shaping[scene->knobs.shaping_count++];
    objective_item_init(objective_section_find("shaping"), shaper);
    set_choice(shaper, "shaping", "kind", json_string_value(at(one, "shaper")));
    set_knobs(shaper, "shaping", at(one, "params"));
    return shaper;
}

static void shape_overlong(const json_t *one)
{
    for (int capped = 0; capped < 2; capped++) {
        const char *name = capped ? "penalty_capped" : "penalty_uncapped";
        struct scene *scene = scene_create();
        if (!json_object_get(at(one, "expected"), name)) {
            test_free(scene);
            continue;
        }
        add_shaper(scene, one)->capped = capped;
        scene_add(scene, 0, 0, 1);
        scene->sequences[0].length = json_integer_value(at(one, "inputs.length"));
        vector_run(scene, one);
        same_number(one, name, scene->sequences[0].shaped_reward, at(at(one, "expected"), name));
        test_free(scene);
    }
}

static void shape_one(const json_t *one)
{
    struct scene *scene = scene_create();
    const json_t *truncated = json_object_get(at(one, "inputs"), "truncated");

    add_shaper(scene, one);
    scene_add(scene, 0, number_at(one, "inputs.reward"), 1);
    scene->sequences[0].finish_reason = json_is_true(truncated) ? OBJECTIVE_FINISH_LENGTH : OBJECTIVE_FINISH_OTHER;
    vector_run(scene, one);
    same_number(one, "reward", scene->sequences[0].shaped_reward, at(one, "expected.reward"));
    test_free(scene);
}

static void shape_linear_length(const json_t *one)
{
    struct scene *scene = scene_create();
    const json_t *inputs = at(one, "inputs");

    add_shaper(scene, one);
    scene->knobs.advantage.scale = OBJECTIVE_SCALE_NONE;
    for (size_t i = 0; i < json_array_size(at(inputs, "rewards")); i++) {
        scene_add(scene, 0, json_number_value(json_array_get(at(inputs, "rewards"), i)), 1);
        scene->sequences[i].length = json_integer_value(json_array_get(at(inputs, "output_tokens"), i));
        scene->sequences[i].prompt_tokens = json_integer_value(json_array_get(at(inputs, "input_tokens"), i));
        scene->sequences[i].turns = json_integer_value(json_array_get(at(inputs, "turns"), i));
    }
    vector_run(scene, one);
    for (size_t i = 0; i < scene->request.sequence_count; i++) {
        same_number(one, "shaped", scene->sequences[i].shaped_reward, json_array_get(at(one, "expected.shaped"), i));
        same_number(one, "advantage", scene->sequences[i].advantage, json_array_get(at(one, "expected.advantages"), i));
    }
    test_free(scene);
}

static void shape_kl(const json_t *one)
{
    struct scene *scene = scene_create();

    add_lists(scene, 0, at(one, "inputs.logp_old"), NULL, at(one, "inputs.mask"));
    fill_numbers(scene->lines[0].reference, at(one, "inputs.logp_ref"));
    scene->sequences[0].reward = number_at(one, "inputs.reward");
    scene->knobs.beta = number_at(one, "params.beta");
    set_choice(&scene->knobs, "kl", "estimator", json_string_value(at(one, "params.kind")));
    scene->knobs.kl.in = OBJECTIVE_KL_IN_REWARD;
    scene->knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_REWARD;
    vector_run(scene, one);
    same_number(one, "reward", scene->sequences[0].advantage, at(one, "expected.sequence_reward"));
    scene->knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_REWARD_TO_GO;
    scene->knobs.advantage.gamma = 0;
    vector_run(scene, one);
    same_numbers(one, "token rewards", scene->lines[0].advantages, at(one, "expected.token_rewards"));
    test_free(scene);
}

static void test_reward_shaping(void **state)
{
    (void)state;
    FOR_SECTION("reward_shaping", one)
    {
        const char *shaper = json_string_value(at(one, "shaper"));
        if (strcmp(shaper, "dapo_soft_overlong") == 0)
            shape_overlong(one);
        else if (strcmp(shaper, "linear_length_penalty") == 0)
            shape_linear_length(one);
        else if (strcmp(shaper, "kl_in_reward") == 0)
            shape_kl(one);
        else
            shape_one(one);
    }
}

static void test_group_filters(void **state)
{
    static const struct {
        const char *name;
        int rule;
    } rules[] = {{"keep_exact_nonzero_variance", OBJECTIVE_FILTER_NONZERO_VARIANCE},
                 {"keep_range_tol_1e6", OBJECTIVE_FILTER_RANGE},
                 {"keep_mean_open_interval_0_1", OBJECTIVE_FILTER_MEAN_INTERVAL}};
    (void)state;

    FOR_SECTION("group_filters", one)
    {
        const json_t *rewards = json_object_get(at(one, "inputs"), "rewards");
        for (size_t r = 0; rewards && r < 3; r++) {
            struct scene *scene = scene_create();
            for (size_t i = 0; i < json_array_size(rewards); i++)
                scene_add(scene, 0, json_number_value(json_array_get(rewards, i)), 1);
            scene->knobs.filter.rule = rules[r].rule;
            vector_run(scene, one);
            assert_int_equal(scene->sequences[0].kept, json_is_true(at(at(one, "expected"), rules[r].name)));
            test_free(scene);
        }
    }
}

static void test_pass_at_k(void **state)
{
    (void)state;
    FOR_SECTION("pass_at_k", one)
    {
        struct scene *scene = scene_create();
        for (int i = 0; i < (int)number_at(one, "inputs.n"); i++)
            scene_add(scene, 0, i < (int)number_at(one, "inputs.c"), 1);
        vector_run(scene, one);
        same_number(one, "pass_at_k", objective_pass_at_k(&scene->request, (uint64_t)number_at(one, "inputs.k")),
                    at(one, "expected.pass_at_k"));
        test_free(scene);
    }
}

/* --- aggregation: at ratio 1 without a clip the loss of a token is minus its advantage --- */

static struct scene *scene_of_losses(const json_t *losses, const json_t *masks, const json_t *groups)
{
    struct scene *scene = scene_create();

    scene->request.advantages_given = true;
    scene->knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
    for (size_t i = 0; i < json_array_size(losses); i++) {
        const json_t *row = json_array_get(losses, i);
        size_t group = groups ? group_number(scene, groups, i) : i;
        assert_int_equal(scene_add(scene, group, NAN, json_array_size(row)), i);
        for (size_t t = 0; t < json_array_size(row); t++) {
            scene->lines[i].given[t] = -json_number_value(json_array_get(row, t));
            scene->lines[i].mask[t] = json_integer_value(json_array_get(json_array_get(masks, i), t)) != 0;
        }
        scene->sequences[i].token_advantages = scene->lines[i].given;
        scene->sequences[i].rewarded = true;
    }
    return scene;
}

static void test_aggregation(void **state)
{
    (void)state;
    FOR_SECTION("aggregation", one)
    {
        if (strstr(json_string_value(at(one, "id")), "empty-completion")) /* refused by the transport */
            continue;
        json_t *params = json_deep_copy(at(one, "params"));
        const json_t *groups = json_object_get(at(one, "params"), "groups");
        struct scene *scene = scene_of_losses(at(one, "inputs.per_token_loss"), at(one, "inputs.mask"), groups);
        json_object_del(params, "groups");
        set_choice(&scene->knobs, "aggregation", "mode", json_string_value(at(one, "mode")));
        set_knobs(&scene->knobs, "aggregation", params);
        vector_run(scene, one);
        same_number(one, "loss", scene->result.loss, at(one, "expected.loss"));
        for (size_t i = 0; i < scene->request.sequence_count; i++)
            same_numbers(one, "weights", scene->lines[i].weights, json_array_get(at(one, "expected.token_weights"), i));
        assert_near(scene_contributions(scene), scene->result.loss, 1e-15);
        json_decref(params);
        test_free(scene);
    }
}

/* --- off-policy correction: with advantage -1 and ratio 1 a contribution is the weight itself --- */

static struct scene *scene_of_weights(const json_t *one)
{
    struct scene *scene = scene_create();

    add_lists(scene, 0, at(one, "inputs.logp_old"), NULL, at(one, "inputs.mask"));
    fill_numbers(scene->lines[0].rollout, at(one, "inputs.logp_rollout"));
    scene->request.advantages_given = true;
    scene->sequences[0].advantage = -1;
    scene->knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
    scene->knobs.aggregation.mode = OBJECTIVE_MODE_TOKEN_SUM;
    return scene;
}

static struct objective_correction *add_correction(struct scene *scene, const char *method, const json_t *params)
{
    struct objective_correction *correction = &scene->knobs.importance[scene->knobs.importance_count++];
    objective_item_init(objective_section_find("importance"), correction);
    set_choice(correction, "importance", "method", method);
    set_knobs(correction, "importance", params);
    return correction;
}

static void test_off_policy(void **state)
{
    (void)state;
    FOR_SECTION("off_policy", one)
    {
        struct scene *scene = scene_of_weights(one);
        const json_t *expected = at(one, "expected"), *weight = json_object_get(expected, "weight");
        add_correction(scene, json_string_value(at(one, "method")), at(one, "params"));
        vector_run(scene, one);
        if (json_object_get(expected, "weights"))
            same_numbers(one, "weights", scene->lines[0].contributions, at(expected, "weights"));
        else if (json_object_get(expected, "mask"))
            same_numbers(one, "mask", scene->lines[0].contributions, at(expected, "mask"));
        for (size_t t = 0; weight && t < scene->sequences[0].tokens; t++)
            if (scene->lines[0].mask[t])
                same_number(one, "weight", scene->lines[0].contributions[t], weight);
        if (json_object_get(expected, "keep"))
            assert_int_equal(scene->sequences[0].kept, json_is_true(at(expected, "keep")));
        test_free(scene);
    }
}

/* --- whole objectives --- */

static void choose(struct scene *scene, const json_t *params)
{
    const json_t *kind = json_object_get(params, "kind"), *importance = json_object_get(params, "importance");
    const char *name = kind ? json_string_value(kind) : "ppo";
    char method[64];

    set_choice(&scene->knobs, "loss", "kind", strcmp(name, "ppo") == 0 ? "ppo_clip" : name);
    set_knobs(&scene->knobs, "loss", at(params, "loss"));
    set_knobs(&scene->knobs, "advantage", at(params, "advantage"));
    set_knobs(&scene->knobs, "aggregation", at(params, "aggregation"));
    scene->knobs.beta = number_at(params, "beta");
    if (!json_is_object(importance))
        return;
    const json_t *level = json_object_get(importance, "level"), *how = json_object_get(importance, "how");
    snprintf(method, sizeof method, "%s_%s", level ? json_string_value(level) : "token",
             json_string_value(at(importance, "mode")));
    struct objective_correction *correction = add_correction(scene, method, NULL);
    correction->hi = number_at(importance, "hi");
    if (how)
        set_choice(correction, "importance", "reduction", json_string_value(how));
}

static void check_whole(struct scene *scene, const json_t *one)
{
    const json_t *expected = at(one, "expected");

    same_number(one, "loss", scene->result.loss, at(expected, "loss"));
    for (size_t i = 0; i < scene->request.sequence_count; i++) {
        same_number(one, "advantage", scene->sequences[i].advantage, json_array_get(at(expected, "advantages"), i));
        same_numbers(one, "weights", scene->lines[i].weights, json_array_get(at(expected, "token_weights"), i));
        same_numbers(one, "contributions", scene->lines[i].contributions,
                     json_array_get(at(expected, "contributions"), i));
        same_numbers(one, "dloss_dlogp", scene->lines[i].slopes, json_array_get(at(expected, "grad_logp"), i));
    }
}

static void test_end_to_end(void **state)
{
    (void)state;
    FOR_SECTION("end_to_end", one)
    {
        struct scene *scene = scene_create();
        const json_t *inputs = at(one, "inputs"), *masks = at(inputs, "mask");
        choose(scene, at(one, "params"));
        for (size_t i = 0; i < json_array_size(masks); i++) {
            size_t group = group_number(scene, at(inputs, "group"), i);
            add_lists(scene, group, json_array_get(at(inputs, "logp"), i), json_array_get(at(inputs, "logp_old"), i),
                      json_array_get(masks, i));
            fill_numbers(scene->lines[i].reference, json_array_get(json_object_get(inputs, "logp_ref"), i));
            fill_numbers(scene->lines[i].rollout, json_array_get(json_object_get(inputs, "logp_rollout"), i));
            scene->sequences[i].reward = json_number_value(json_array_get(at(inputs, "rewards"), i));
        }
        vector_run(scene, one);
        check_whole(scene, one);
        test_free(scene);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advantages),     cmocka_unit_test(test_reward_aggregation),
        cmocka_unit_test(test_reward_shaping), cmocka_unit_test(test_group_filters),
        cmocka_unit_test(test_pass_at_k),      cmocka_unit_test(test_aggregation),
        cmocka_unit_test(test_off_policy),     cmocka_unit_test(test_end_to_end),
    };
    vectors = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
    if (!vectors)
        return 99;
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(vectors);
    return result;
}
