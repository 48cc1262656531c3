/* POST /v1/objective: the stateless and the stored form. */
#include "tests/unit/server/objective_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the stateless form --- */

static void test_a_shown_loss_of_0_has_a_gradient_and_a_note_on_the_ratio(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked,
        "{\"objective\":{\"preset\":\"grpo\"},\"sequences\":["
        "{\"group\":\"a\",\"reward\":1,\"logprobs\":[-0.7]},{\"group\":\"a\",\"reward\":0,\"logprobs\":[-2.3]}]}");
    assert_int_equal(asked.call.reply.status, 200);
    assert_number(&asked, "sequences.0.advantage", 1);
    assert_number(&asked, "sequences.1.advantage", -1);
    assert_true(number(&asked, "loss") == 0);
    assert_number(&asked, "sequences.0.contributions.0", -0.5);
    assert_number(&asked, "sequences.1.contributions.0", 0.5);
    assert_number(&asked, "sequences.0.dloss_dlogp.0", -0.5);
    assert_number(&asked, "metrics.zero_variance_groups", 0);
    assert_true(has_note(&asked, "taken from logprobs"));
    assert_true(has_note(&asked, "population"));
    finish(&asked);
}

static void test_the_four_hand_worked_ratios(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{\"epsilon\":0.2,\"aggregation\":{\"mode\":\"token_sum\"}},\"sequences\":["
                "{\"group\":\"a\",\"advantage\":1,\"logprobs\":[-0.66352776337878707,-1.51082562376599072],\"old_"
                "logprobs\":[-1,-1]},"
                "{\"group\":\"a\",\"advantage\":-1,\"logprobs\":[-0.66352776337878707,-1.51082562376599072],\"old_"
                "logprobs\":[-1,-1]}]}");
    assert_number(&asked, "sequences.0.surrogates.0", 1.2);
    assert_number(&asked, "sequences.0.surrogates.1", 0.6);
    assert_number(&asked, "sequences.1.surrogates.0", -1.4);
    assert_number(&asked, "sequences.1.surrogates.1", -0.8);
    assert_number(&asked, "sequences.0.clipped.0", 1);
    assert_number(&asked, "sequences.1.clipped.1", -1);
    assert_number(&asked, "metrics.clip_fraction", 0.5);
    assert_number(&asked, "surrogate", -number(&asked, "policy_loss"));
    finish(&asked);
}

static void test_an_infinite_ratio_held_by_the_clip_is_null_with_a_note(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"sequences\":[{\"group\":\"a\",\"reward\":1,\"logprobs\":[-1],\"old_logprobs\":[-801]},"
                "{\"group\":\"a\",\"reward\":0,\"logprobs\":[-1],\"old_logprobs\":[-1]}]}");
    assert_number(&asked, "loss", -0.1);
    assert_number(&asked, "sequences.0.contributions.0", -0.6);
    assert_is_null(&asked, "sequences.0.ratios.0");
    assert_is_null(&asked, "metrics.ratio_max");
    assert_true(has_note(&asked, "beyond double"));
    finish(&asked);
}

static void test_rewards_by_name_are_summed_by_weight(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked,
        "{\"sequences\":[{\"group\":\"a\",\"rewards\":{\"fact\":{\"score\":1,\"weight\":1},\"brief\":{\"score\":0,"
        "\"weight\":0.1}},\"logprobs\":[-1]},{\"group\":\"a\",\"rewards\":{\"fact\":{\"score\":0,\"weight\":1},"
        "\"brief\":{\"score\":10,\"weight\":0.1}},\"logprobs\":[-1]}]}");
    assert_true(number(&asked, "sequences.0.reward") == 1);
    assert_true(number(&asked, "sequences.1.reward") == 1);
    assert_true(number(&asked, "sequences.1.advantage") == 0);
    assert_number(&asked, "metrics.zero_variance_groups", 1);
    finish(&asked);
}

static void test_a_group_of_one_says_which_rule_made_its_advantage(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"sequences\":[{\"group\":\"a\",\"reward\":0.7,\"logprobs\":[-1]}]}");
    assert_true(number(&asked, "sequences.0.advantage") == 0);
    assert_true(has_note(&asked, "singleton"));
    finish(&asked);
    ask(&asked, "{\"objective\":{\"advantage\":{\"singleton\":\"raw\"}},"
                "\"sequences\":[{\"group\":\"a\",\"reward\":0.7,\"logprobs\":[-1]}]}");
    assert_number(&asked, "loss", -0.7);
    finish(&asked);
    ask(&asked, "{\"sequences\":[{\"group\":\"a\",\"reward\":0.7,\"logprobs\":[-1]},{\"group\":\"a\",\"reward\":null,"
                "\"logprobs\":[-1,-1]}]}");
    assert_number(&asked, "metrics.sequences", 1);
    assert_is_null(&asked, "sequences.1.advantage");
    assert_number(&asked, "sequences.1.contributions.1", 0);
    finish(&asked);
}

static void test_nothing_judged_is_a_null_loss_and_all_masked_a_zero(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"sequences\":[{\"group\":\"a\",\"reward\":null,\"logprobs\":[-1]}]}");
    assert_is_null(&asked, "loss");
    assert_is_null(&asked, "surrogate");
    finish(&asked);
    ask(&asked, "{\"sequences\":[{\"group\":\"a\",\"reward\":1,\"mask\":[0],\"logprobs\":[null]}]}");
    assert_true(number(&asked, "loss") == 0);
    assert_true(has_note(&asked, "masked"));
    finish(&asked);
}

static void test_parts_with_totals_add_up_and_need_group_sizes(void **state)
{
    struct asked whole, part;
    (void)state;

    ask(&whole, "{\"sequences\":[{\"group\":\"a\",\"advantage\":1,\"logprobs\":[-1,-2]},"
                "{\"group\":\"b\",\"advantage\":0.5,\"logprobs\":[-1]}]}");
    ask(&part, "{\"totals\":{\"sequences\":2},\"sequences\":[{\"group\":\"b\",\"advantage\":0.5,\"logprobs\":[-1]}]}");
    assert_number(&part, "sequences.0.contributions.0", number(&whole, "sequences.1.contributions.0"));
    assert_is_null(&part, "totals.tokens");
    finish(&whole);
    finish(&part);
    assert_refused("{\"totals\":{\"sequences\":2}," PAIR "}", 400, "missing_field", "group_sizes");
    assert_refused("{\"totals\":{\"sequences\":2},\"group_sizes\":{\"a\":4}," PAIR "}", 422, "incomplete_group",
                   "group_sizes.a");
    assert_refused("{\"totals\":{\"sequences\":2},\"group_sizes\":{\"a\":2,\"other\":0}," PAIR "}", 400,
                   "invalid_field", "group_sizes.other");
    assert_refused("{\"totals\":{\"tokens\":2},\"group_sizes\":{\"a\":2}," PAIR "}", 422, "objective_options",
                   "totals.sequences");
    assert_refused("{\"totals\":{\"sequences\":1},\"group_sizes\":{\"a\":2}," PAIR "}", 422, "objective_options",
                   "totals.sequences");
    assert_refused("{\"objective\":{\"advantage\":{\"scale\":\"batch\"}},\"totals\":{\"sequences\":2},"
                   "\"group_sizes\":{\"a\":2}," PAIR "}",
                   422, "objective_options", "objective.advantage.scale");
}

static void test_wrong_sequences_are_refused_with_their_place(void **state)
{
    (void)state;
#define TWO(rest) "{\"sequences\":[" ONE_OF("a", "1", "\"logprobs\":[-1,-1]") "," ONE_OF("a", "0", rest) "]}"
    assert_refused(TWO("\"logprobs\":[-1,null]"), 422, "non_finite", "sequences[1].logprobs[1]");
    assert_refused(TWO("\"logprobs\":[]"), 422, "empty_completion", "sequences[1].logprobs");
    assert_refused(TWO("\"logprobs\":[-1,-1],\"old_logprobs\":[-1]"), 422, "length_mismatch",
                   "sequences[1].old_logprobs");
    assert_refused(TWO("\"logprobs\":[-1,-1],\"mask\":[1,0.5]"), 400, "invalid_field", "sequences[1].mask[1]");
    assert_refused(TWO("\"logprobs\":[-1,-1],\"old_logprobs\":[-1,-801]"), 422, "non_finite",
                   "sequences[1].logprobs[1]");
    assert_refused(TWO("\"logprob\":[-1]"), 400, "unknown_field", "sequences[1].logprob");
    assert_refused(TWO("\"mask\":[1]"), 400, "missing_field", "sequences[1].logprobs");
    assert_refused(TWO("\"logprobs\":[-1],\"advantage\":1"), 400, "invalid_field", "sequences[1].advantage");
    assert_refused("{\"sequences\":[{\"reward\":1,\"logprobs\":[-1]}]}", 400, "missing_field", "sequences[0].group");
    assert_refused("{\"sequences\":[{\"group\":\"a\",\"logprobs\":[-1]}]}", 400, "missing_field",
                   "sequences[0].reward");
    assert_refused("{\"sequences\":[]}", 400, "invalid_field", "sequences");
    assert_refused("{\"sequences\":[{\"group\":\"a\",\"advantage\":1,\"logprobs\":[-1]}," ONE_OF(
                       "a", "1", "\"logprobs\":[-1]") "]}",
                   422, "objective_options", "sequences[1].advantage");
    assert_refused("{\"objective\":{\"beta\":0.1}," PAIR "}", 422, "objective_options", "sequences[0].ref_logprobs");
}

static void test_advantages_may_be_given_per_token_and_arrays_packed(void **state)
{
    struct asked asked;
    (void)state;

    /* AACAvwAAAMA= is -1, -2 in f32 */
    ask(&asked, "{\"return\":[\"dloss_dlogp\"],\"sequences\":[{\"group\":\"a\",\"advantage\":[1,-3],"
                "\"logprobs_f32\":\"AACAvwAAAMA=\"}]}");
    assert_number(&asked, "sequences.0.advantage.1", -3);
    assert_number(&asked, "sequences.0.dloss_dlogp.0", -0.5);
    assert_number(&asked, "sequences.0.dloss_dlogp.1", 1.5);
    assert_is_null(&asked, "metrics.reward_mean");
    assert_is_null(&asked, "metrics.truncated_fraction");
    assert_false(json_object_get(find(asked.reply, "sequences.0"), "weights") != NULL);
    finish(&asked);
    assert_refused("{\"return\":[\"gradient\"]," PAIR "}", 400, "invalid_field", "return[0]");
}

static void test_pass_at_k_is_a_metric(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"pass_at\":[1,2]," PAIR "}");
    assert_number(&asked, "metrics.pass_at_k.1", 0.5);
    assert_number(&asked, "metrics.pass_at_k.2", 1);
    finish(&asked);
}

/* --- the stored form --- */

static void test_a_stored_rollout_brings_reward_advantage_mask_and_old_logprobs(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{},\"sequences\":[{\"rollout\":\"" ROLLOUT(
                    0, 1) "\",\"logprobs\":[-0.1,-5]},"
                          "{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-0.1,-0.2],\"mask\":[0,1]}]}");
    assert_number(&asked, "sequences.0.advantage", -1);
    assert_true(number(&asked, "sequences.0.ratios.0") == 1); /* f32 against f32 */
    assert_number(&asked, "sequences.0.contributions.0", 0.5);
    assert_number(&asked, "sequences.0.contributions.1", 0);
    assert_number(&asked, "sequences.1.contributions.0", 0);
    assert_number(&asked, "sequences.1.contributions.1", -0.5);
    assert_number(&asked, "metrics.trainable_tokens", 2);
    assert_true(has_note(&asked, "from the record"));
    assert_ptr_equal(asked.call.parsed, NULL); /* no optimizer_step: nothing to keep it under */
    finish(&asked);
}

static void test_statistics_of_a_subset_are_those_of_the_recorded_group(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{\"advantage\":{\"ddof\":1}},"
                "\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-0.1,-0.2]}]}");
    assert_number(&asked, "sequences.0.advantage", M_SQRT1_2); /* 0.5 / sqrt(0.5) */
    assert_number(&asked, "metrics.zero_variance_groups", 0);
    assert_true(has_note(&asked, "recomputed"));
    finish(&asked);
}

static void test_without_an_objective_the_batchs_own_is_meant(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-0.1,-0.2]}]}");
    assert_number(&asked, "objective.loss.eps_low", 0.1);
    assert_true(has_note(&asked, "batch's own"));
    finish(&asked);
}

static void test_a_kept_call_leaves_sums_for_the_store(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{},\"optimizer_step\":40,\"part\":3,"
                "\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-0.1,-0.2]}]}");
    const struct objective_kept *kept = asked.call.parsed;
    assert_non_null(kept);
    assert_int_equal(kept->wait.op.kind, STORE_RECORD_OBJECTIVE);
    assert_true(text_equals(kept->wait.op.record_objective.run, "arith"));
    assert_int_equal(kept->wait.op.record_objective.optimizer_step, 40);
    assert_int_equal(kept->wait.op.record_objective.part, 3);
    json_t *sums = json_loads(kept->sums_json.data, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(sums, "tokens")), 2);
    json_decref(sums);
    finish(&asked);
    ask(&asked, "{\"objective\":{},\"optimizer_step\":40,\"store\":false,"
                "\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-0.1,-0.2]}]}");
    assert_ptr_equal(asked.call.parsed, NULL);
    finish(&asked);
}

static void test_stored_rollouts_that_cannot_be_trained_on_are_refused(void **state)
{
    (void)state;
#define STORED(id, rest) "{\"sequences\":[{\"rollout\":\"" id "\"," rest "}]}"
    assert_refused(STORED("r_nobody", "\"logprobs\":[-1]"), 404, "not_found", "sequences[0].rollout");
    assert_refused(STORED(ROLLOUT(0, 0), "\"logprobs\":[-1]"), 422, "length_mismatch", "sequences[0].logprobs");
    assert_refused(STORED(ROLLOUT(1, 0), "\"logprobs\":[-1,-1]"), 409, "state_conflict", "sequences[0].rollout");
    assert_refused(STORED(ROLLOUT(2, 0), "\"logprobs\":[-1,-1]"), 409, "eval_group", "sequences[0].rollout");
    assert_refused(STORED(ROLLOUT(0, 0), "\"logprobs\":[-1,-1],\"reward\":1"), 400, "invalid_field",
                   "sequences[0].reward");
    assert_refused("{\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-1,-1]},{\"rollout\":\"" ROLLOUT(
                       0, 0) "\",\"logprobs\":[-1,-1]}]}",
                   400, "invalid_field", "sequences[1].rollout");
    assert_refused("{\"sequences\":[{\"rollout\":\"" ROLLOUT(0, 0) "\",\"logprobs\":[-1,-1]}," ONE_OF(
                       "a", "1", "\"logprobs\":[-1]") "]}",
                   400, "invalid_field", "sequences[1].rollout");
}

static void test_a_failed_rollout_is_in_no_denominator(void **state)
{
    struct asked asked;
    (void)state;

    ask(&asked, "{\"objective\":{},\"sequences\":[{\"rollout\":\"" ROLLOUT(
                    0, 0) "\",\"logprobs\":[-0.1,-0.2]},"
                          "{\"rollout\":\"" ROLLOUT(3, 0) "\",\"logprobs\":[-0.1,-0.2]}]}");
    assert_number(&asked, "totals.sequences", 1);
    assert_is_null(&asked, "sequences.1.advantage");
    assert_is_null(&asked, "sequences.1.loss");
    finish(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shown_loss_of_0_has_a_gradient_and_a_note_on_the_ratio),
        cmocka_unit_test(test_the_four_hand_worked_ratios),
        cmocka_unit_test(test_an_infinite_ratio_held_by_the_clip_is_null_with_a_note),
        cmocka_unit_test(test_rewards_by_name_are_summed_by_weight),
        cmocka_unit_test(test_a_group_of_one_says_which_rule_made_its_advantage),
        cmocka_unit_test(test_nothing_judged_is_a_null_loss_and_all_masked_a_zero),
        cmocka_unit_test(test_parts_with_totals_add_up_and_need_group_sizes),
        cmocka_unit_test(test_wrong_sequences_are_refused_with_their_place),
        cmocka_unit_test(test_advantages_may_be_given_per_token_and_arrays_packed),
        cmocka_unit_test(test_pass_at_k_is_a_metric),
        cmocka_unit_test(test_a_stored_rollout_brings_reward_advantage_mask_and_old_logprobs),
        cmocka_unit_test(test_statistics_of_a_subset_are_those_of_the_recorded_group),
        cmocka_unit_test(test_without_an_objective_the_batchs_own_is_meant),
        cmocka_unit_test(test_a_kept_call_leaves_sums_for_the_store),
        cmocka_unit_test(test_stored_rollouts_that_cannot_be_trained_on_are_refused),
        cmocka_unit_test(test_a_failed_rollout_is_in_no_denominator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
