/* Knobs as JSON: refusals with their path, the echo, GET /v1/presets. */
#include "server/spec/objective.h"
#include "tests/unit/server/objective_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- knobs --- */

static void test_wrong_knobs_are_refused_with_their_path(void **state)
{
    static const struct {
        const char *objective;
        int status;
        const char *code, *path;
    } rows[] = {
        {"{\"loss\":{\"eps_hgih\":0.2}}", 400, "unknown_field", "objective.loss.eps_hgih"},
        {"{\"losses\":{}}", 400, "unknown_field", "objective.losses"},
        {"{\"loss\":{\"eps_high\":\"0.2\"}}", 400, "invalid_field", "objective.loss.eps_high"},
        {"{\"loss\":{\"eps_high\":-1}}", 422, "objective_options", "objective.loss.eps_high"},
        {"{\"loss\":{\"kind\":\"ppo\"}}", 422, "objective_options", "objective.loss.kind"},
        {"{\"loss\":{\"kind\":\"cispo\"}}", 422, "objective_options", "objective.loss.hi"},
        {"{\"loss\":{\"kind\":\"importance_sampling\",\"eps_low\":0.1}}", 422, "objective_options",
         "objective.loss.eps_low"},
        {"{\"loss\":{\"kind\":\"importance_sampling\"},\"epsilon\":0.1}", 422, "objective_options",
         "objective.epsilon"},
        {"{\"loss\":{\"tau_pos\":1}}", 422, "objective_options", "objective.loss.tau_pos"},
        {"{\"loss\":{\"kind\":\"two_sided\"}}", 422, "objective_options", "objective.loss.delta"},
        {"{\"loss\":{\"delta\":1.1}}", 422, "objective_options", "objective.loss.delta"},
        {"{\"advantage\":{\"ddof\":2}}", 422, "objective_options", "objective.advantage.ddof"},
        {"{\"advantage\":{\"ddof\":0.5}}", 400, "invalid_field", "objective.advantage.ddof"},
        {"{\"advantage\":{\"estimator\":\"reward\",\"eps\":1}}", 422, "objective_options", "objective.advantage.eps"},
        {"{\"aggregation\":{\"mode\":\"seq_mean_token_sum_norm\"}}", 422, "objective_options",
         "objective.aggregation.max_len"},
        {"{\"aggregation\":{\"max_len\":4}}", 422, "objective_options", "objective.aggregation.max_len"},
        {"{\"kl\":{\"in\":\"prompt\"}}", 422, "objective_options", "objective.kl.in"},
        {"{\"shaping\":{}}", 400, "invalid_field", "objective.shaping"},
        {"{\"shaping\":[{}]}", 400, "missing_field", "objective.shaping[0].kind"},
        {"{\"shaping\":[{\"kind\":\"no_eos_zero\",\"coef\":1}]}", 422, "objective_options",
         "objective.shaping[0].coef"},
        {"{\"shaping\":[{\"kind\":\"no_eos_zero\"},{\"kind\":\"stop_properly\"}]}", 422, "objective_options",
         "objective.shaping[1].coef"},
        {"{\"shaping\":[{\"kind\":\"linear_map\",\"source\":[0],\"target\":[0,1]}]}", 400, "invalid_field",
         "objective.shaping[0].source"},
        {"{\"importance\":[{\"method\":\"token\",\"hi\":2}]}", 422, "objective_options", "objective.importance[0].hi"},
        {"{\"importance\":{\"hi\":2}}", 422, "objective_options", "objective.importance.hi"},
        {"{\"importance\":{\"method\":\"rollout_rs\",\"option\":\"token_k1\",\"threshold\":\"2_1\"}}", 422,
         "objective_options", "objective.importance.threshold"},
        {"{\"importance\":{\"method\":\"rollout_rs\",\"option\":\"token_k1\",\"threshold\":\"2-1\"}}", 400,
         "invalid_field", "objective.importance.threshold"},
        {"{\"selection\":{\"method\":\"m2po\"}}", 422, "objective_options", "objective.selection.threshold"},
        {"{\"preset\":\"nobody\"}", 422, "objective_options", "objective.preset"},
        {"{\"beta\":-1}", 422, "objective_options", "objective.beta"},
        {"{\"mask\":true}", 400, "invalid_field", "objective.mask"},
        {"[]", 400, "invalid_field", "objective"},
    };
    char body[512];
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(body, sizeof body, "{\"objective\":%s," PAIR "}", rows[i].objective);
        assert_refused(body, rows[i].status, rows[i].code, rows[i].path);
    }
}

static void test_the_reply_echoes_every_knob_of_the_chosen_kinds(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{\"epsilon\":0.3,\"loss\":{\"eps_high\":0.4},\"shaping\":[],"
                "\"importance\":{\"method\":\"none\"}}," PAIR "}");
    assert_string_equal(json_string_value(find(asked.reply, "objective.preset")), "grpo");
    assert_number(&asked, "objective.loss.eps_low", 0.3);
    assert_number(&asked, "objective.loss.eps_high", 0.4);
    assert_is_null(&asked, "objective.loss.dual_c");
    assert_number(&asked, "objective.beta", 0);
    assert_string_equal(json_string_value(find(asked.reply, "objective.aggregation.mode")), "seq_mean_token_mean");
    assert_is_null(&asked, "objective.loss.delta");
    assert_false(find(asked.reply, "objective.aggregation.max_len") != NULL);
    assert_int_equal(json_array_size(find(asked.reply, "objective.shaping")), 0);
    finish(&asked);
    ask(&asked, "{\"objective\":{\"loss\":{\"kind\":\"dual_clip\"},\"kl\":{\"estimator\":\"low_var\"}}," PAIR "}");
    assert_string_equal(json_string_value(find(asked.reply, "objective.loss.kind")), "ppo_clip");
    assert_number(&asked, "objective.loss.dual_c", 3);
    assert_number(&asked, "objective.kl.log_clamp", 20);
    finish(&asked);
}

static void test_written_knobs_are_read_back_the_same(void **state)
{
    struct objective_knobs before, after;
    struct json_write json;
    struct buffer out;
    (void)state;

    buffer_init(&out, 65536);
    assert_int_equal(objective_json_parse(
                         TEXT_LITERAL("{\"loss\":{\"kind\":\"dual_clip\",\"log_clamp\":20},\"beta\":0.04,"
                                      "\"shaping\":[{\"kind\":\"linear_map\",\"source\":[0,1],\"target\":[-1,0.1]},"
                                      "{\"kind\":\"reward_clip\",\"lo\":-1,\"hi\":1}],"
                                      "\"importance\":[{\"method\":\"token\"},{\"method\":\"rollout_rs\",\"option\":"
                                      "\"token_k1\",\"threshold\":\"0.1_1.2\"}],"
                                      "\"aggregation\":{\"mode\":\"constant\",\"denominator\":7}}"),
                         &before),
                     0);
    json_write_init(&json, &out);
    objective_json_write(&json, &before);
    assert_int_equal(objective_json_parse(buffer_text(&out), &after), 0);
    buffer_clear(&out);
    json_write_init(&json, &out);
    objective_json_write(&json, &before);
    size_t length;
    char *first = buffer_steal(&out, &length);
    json_write_init(&json, &out);
    objective_json_write(&json, &after);
    assert_string_equal(first, out.data);
    free(first);
    buffer_finish(&out);
    assert_int_equal(objective_json_parse(TEXT_LITERAL("{\"nonsense\":1}"), &after), -1);
    assert_int_equal(objective_json_parse(TEXT_NONE, &after), -1);
}

static void test_presets_are_listed_with_every_knob(void **state)
{
    struct asked asked;
    (void)state;

    call_init(&asked.call);
    presets_handler(&asked.call);
    asked.reply = json_loadb(asked.call.reply.body.data, asked.call.reply.body.length_bytes, 0, NULL);
    assert_string_equal(json_string_value(find(asked.reply, "presets.0.name")), "grpo");
    assert_number(&asked, "presets.0.objective.loss.eps_low", 0.2);
    finish(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_knobs_are_refused_with_their_path),
        cmocka_unit_test(test_the_reply_echoes_every_knob_of_the_chosen_kinds),
        cmocka_unit_test(test_written_knobs_are_read_back_the_same),
        cmocka_unit_test(test_presets_are_listed_with_every_knob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
