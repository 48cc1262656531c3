#include "server/verify/pool.h"
#include "server/verify/spec.h"
#include "verifiers/registry.h"
#include "verifiers/worker/worker.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Reads {"verifiers": …}. NULL: refused; then status and the error's code and path are in `refused`. */
static struct {
    int status;
    char body[2048];
} refused;

static struct verifier_list *read_list(const char *json)
{
    struct call call;
    struct json_input input;
    struct verifier_list *list = NULL;

    call_init(&call);
    call.request_id = "test";
    call.body = xstrdup(json);
    call.body_bytes = strlen(json);
    if (json_input_init(&input, &call, NULL) == 0) {
        list = verifier_list_read(&input, json_object_get(input.root, "verifiers"), "verifiers");
        json_input_finish(&input);
    }
    refused.status = call.reply.status;
    snprintf(refused.body, sizeof refused.body, "%s", buffer_text(&call.reply.body).data);
    call_finish(&call);
    return list;
}

static void expect_refusal(const char *json, int status, const char *code, const char *path)
{
    struct verifier_list *list = read_list(json);

    assert_null(list);
    if (refused.status != status || !strstr(refused.body, code) || !strstr(refused.body, path))
        fail_msg("%s: %d %s", json, refused.status, refused.body);
}

static void test_each_fault_is_refused_with_its_path(void **state)
{
    (void)state;
    expect_refusal("{\"verifiers\":[{\"name\":\"maths\"}]}", 400, "\"invalid_field\"", "\"verifiers[0].name\"");
    for (size_t i = 0; i < verifier_count; i++)
        assert_non_null(strstr(refused.body, verifiers[i]->name));
    expect_refusal("{\"verifiers\":[{\"nam\":\"math\"}]}", 400, "\"unknown_field\"", "\"verifiers[0].nam\"");
    expect_refusal("{\"verifiers\":[{}]}", 400, "\"missing_field\"", "\"verifiers[0].name\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"math\"},{\"name\":\"math\"}]}", 400, "\"invalid_field\"",
                   "\"verifiers[1].id\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"math\",\"heldout\":true,\"weight\":1}]}", 422, "\"verifier_options\"",
                   "\"verifiers[0].weight\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"math\",\"heldout\":true,\"gate\":true}]}", 422, "\"verifier_options\"",
                   "\"verifiers[0].gate\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"regex\",\"options\":{\"pattern\":\"(\"}}]}", 422,
                   "\"verifier_options\"", "\"verifiers[0].options.pattern\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"math\",\"weight\":\"1\"}]}", 400, "\"invalid_field\"",
                   "\"verifiers[0].weight\"");
    expect_refusal("{\"verifiers\":{}}", 400, "\"invalid_field\"", "\"verifiers\"");
    expect_refusal("{\"verifiers\":[{\"name\":\"math\",\"id\":\"a\\u0000b\"}]}", 400, "\"invalid_field\"",
                   "\"verifiers[0].id\"");
}

static void test_defaults_are_the_contracts(void **state)
{
    (void)state;
    struct verifier_list *list = read_list(
        "{\"verifiers\":[{\"name\":\"math\"},{\"name\":\"math\",\"id\":\"correct\",\"heldout\":true,"
        "\"reference\":\"7\"},{\"name\":\"format\",\"weight\":0.2,\"options\":{\"template\":\"think_answer\"}}]}");
    assert_non_null(list);
    assert_int_equal(list->count, 3);
    assert_string_equal(list->specs[0].id, "math");
    assert_true(list->specs[0].weight == 1);
    assert_true(verifier_needs_reference(&list->specs[0]));
    assert_false(verifier_needs_reference(&list->specs[1]));
    assert_false(verifier_needs_reference(&list->specs[2]));
    assert_true(list->specs[1].heldout && list->specs[1].weight == 0);
    assert_true(list->specs[2].weight == 0.2);
    verifier_list_unref(list);
}

static void test_the_same_options_have_the_same_hash_however_they_are_written(void **state)
{
    (void)state;
    struct verifier_list *left =
        read_list("{\"verifiers\":[{\"name\":\"math\",\"options\":{\"form\":\"any\",\"abs_tol\":0}}]}");
    struct verifier_list *right = read_list("{\"verifiers\":[{\"name\":\"math\"}]}");
    struct verifier_list *other = read_list("{\"verifiers\":[{\"name\":\"math\",\"options\":{\"abs_tol\":1}}]}");
    assert_string_equal(left->specs[0].options_sha256, right->specs[0].options_sha256);
    assert_string_not_equal(left->specs[0].options_sha256, other->specs[0].options_sha256);
    verifier_list_unref(left);
    verifier_list_unref(right);
    verifier_list_unref(other);
}

static void test_a_reference_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct verifier_list *list = read_list("{\"verifiers\":[{\"name\":\"exact\"},{\"name\":\"math\"}]}");
    struct verifier_problem problem;
    json_t *bad = json_string("\\frac{1");
    size_t index = 9;

    assert_int_equal(verifier_list_check_reference(list, NULL, &index, &problem), 0);
    assert_int_equal(verifier_list_check_reference(list, bad, &index, &problem), -1);
    assert_int_equal(index, 1);
    json_decref(bad);
    verifier_list_unref(list);
}

static void read_reply(const struct verifier_list *list, struct text reply, struct verdict_set *ret_set)
{
    struct verify_job job = {.frame = NULL};

    verify_job_ask(&job, list, 1);
    job.parts[WORKER_TEXT].reply = (char *)(uintptr_t)reply.data;
    job.parts[WORKER_TEXT].reply_bytes = reply.length_bytes;
    verdict_set_read(&job, ret_set);
}

static void test_a_frame_is_answered_by_a_worker_and_read_back(void **state)
{
    (void)state;
    struct verifier_list *list =
        read_list("{\"verifiers\":[{\"name\":\"math\"},{\"name\":\"exact\",\"reference\":\"\\\\boxed{42}\"}]}");
    struct buffer frame, reply;
    struct verdict_set set;
    struct text body;

    buffer_init(&frame, 1 << 20);
    buffer_init(&reply, 1 << 20);
    assert_int_equal(verify_request_build(list,
                                          &(struct verify_subject){.completion = TEXT_LITERAL("\\boxed{42}"),
                                                                   .reference_json = TEXT_LITERAL("\"42\""),
                                                                   .completion_tokens = -1},
                                          &frame),
                     0);
    assert_int_equal(frame_get_length(frame.data), frame.length_bytes - REQUEST_HEADER_BYTES);
    body = (struct text){frame.data + REQUEST_HEADER_BYTES, frame.length_bytes - REQUEST_HEADER_BYTES};
    assert_int_equal(worker_answer(body, 0, &(struct worker_means){.slot_fd = -1}, 0, &reply), 0);
    read_reply(list, buffer_text(&reply), &set);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(set.verdicts[i].kind, VERDICT_CORRECT);
        assert_true(set.verdicts[i].score == 1);
    }
    verdict_set_finish(&set);
    buffer_finish(&frame);
    buffer_finish(&reply);
    verifier_list_unref(list);
}

static void test_a_frame_too_large_is_refused(void **state)
{
    (void)state;
    struct verifier_list *list = read_list("{\"verifiers\":[{\"name\":\"math\"}]}");
    struct buffer frame;

    buffer_init(&frame, 100);
    assert_int_equal(
        verify_request_build(
            list, &(struct verify_subject){.completion = TEXT_LITERAL("0123456789"), .completion_tokens = -1}, &frame),
        -1);
    buffer_finish(&frame);
    verifier_list_unref(list);
}

static void test_nothing_that_a_worker_says_is_believed_unless_it_fits(void **state)
{
    static const char *const lies[] = {
        "",
        "{}",
        "[]",
        "{\"verdicts\":[]}",
        "{\"verdicts\":[1]}",
        "{\"verdicts\":[{\"score\":2,\"verdict\":\"correct\",\"reason\":\"x\",\"failure\":null}]}",
        "{\"verdicts\":[{\"score\":1,\"verdict\":\"incorrect\",\"reason\":\"x\",\"failure\":null}]}",
        "{\"verdicts\":[{\"score\":null,\"verdict\":\"correct\",\"reason\":\"x\",\"failure\":null}]}",
        "{\"verdicts\":[{\"score\":1,\"verdict\":\"unscored\",\"reason\":\"x\",\"failure\":{\"code\":\"a\"}}]}",
        "{\"verdicts\":[{\"score\":null,\"verdict\":\"unscored\",\"reason\":\"x\",\"failure\":null}]}",
        "{\"verdicts\":[{\"score\":1,\"verdict\":\"correct\",\"reason\":\"x\",\"failure\":{\"code\":\"a\"}}]}",
        "{\"verdicts\":[{\"score\":1,\"verdict\":\"correct\",\"reason\":\"<b>\",\"failure\":null}]}",
        "{\"verdicts\":[{\"score\":1,\"score\":1,\"verdict\":\"correct\",\"reason\":\"x\",\"failure\":null}]}",
    };
    struct verifier_list *list = read_list("{\"verifiers\":[{\"name\":\"math\"}]}");
    struct verdict_set set;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
        read_reply(list, text_of(lies[i]), &set);
        assert_int_equal(set.count, 1);
        assert_int_equal(set.verdicts[0].kind, VERDICT_UNSCORED);
        assert_true(isnan(set.verdicts[0].score));
        assert_string_equal(set.verdicts[0].failure_code, "verifier_crashed");
        verdict_set_finish(&set);
    }
    verifier_list_unref(list);
}

/* --- verifiers whose score depends on another one's --- */

#define SHAPED(of, truth)                                                                                              \
    "{\"verifiers\":[{\"name\":\"cosine_length\",\"options\":{\"of\":\"" of                                            \
    "\",\"max_length\":10}},{\"name\":\"exact\",\"id\":\"truth\"" truth "}]}"
#define CHAIN(first, second)                                                                                           \
    "{\"verifiers\":[{\"name\":\"overlong\",\"options\":{\"of\":\"" first                                              \
    "\",\"max_length\":10,\"cache\":5}},{\"name\":\"repetition\",\"options\":{\"of\":\"" second                        \
    "\",\"ngram\":1,\"max_penalty\":-1}},{\"name\":\"exact\",\"id\":\"truth\"}]}"

static void test_a_name_that_no_score_can_be_taken_from_is_refused(void **state)
{
    (void)state;
    expect_refusal(SHAPED("nobody", ""), 422, "\"verifier_options\"", "\"verifiers[0].options.of\"");
    expect_refusal(SHAPED("cosine_length", ""), 422, "\"verifier_options\"", "\"verifiers[0].options.of\"");
    expect_refusal(SHAPED("truth", ",\"heldout\":true"), 422, "\"verifier_options\"", "\"verifiers[0].options.of\"");
    expect_refusal(SHAPED("", ""), 422, "\"verifier_options\"", "\"verifiers[0].options.of\"");
    expect_refusal(CHAIN("repetition", "overlong"), 422, "\"verifier_options\"", "\"verifiers[0].options.of\"");
}

/* Verdicts of a worker, one with a score and one without. */
#define SAID(score) "{\"score\":" score ",\"verdict\":\"scored\",\"reason\":\"said\",\"failure\":null}"
#define UNSAID                                                                                                         \
    "{\"score\":null,\"verdict\":\"unscored\",\"reason\":\"x\",\"failure\":{\"code\":\"x\",\"message\":\"m\"}}"

static void settle(const char *json, const char *reply, struct verdict_set *ret_set)
{
    struct verifier_list *list = read_list(json);

    assert_non_null(list);
    read_reply(list, text_of(reply), ret_set);
    verifier_list_unref(list);
}

static void test_a_score_is_settled_by_one_that_stands_later(void **state)
{
    struct verdict_set set;

    (void)state;
    settle(SHAPED("truth", ""), "{\"verdicts\":[" SAID("1") "," SAID("0.1") "]}", &set);
    assert_true(set.verdicts[0].score == 1);
    assert_string_equal(set.verdicts[0].reason, "of_correct");
    verdict_set_finish(&set);
    settle(SHAPED("truth", ""), "{\"verdicts\":[" SAID("0") "," SAID("0") "]}", &set);
    assert_true(set.verdicts[0].score == -0.5);
    assert_string_equal(set.verdicts[0].reason, "of_wrong");
    verdict_set_finish(&set);
}

static void test_without_the_other_score_there_is_none(void **state)
{
    struct verdict_set set;

    (void)state;
    settle(SHAPED("truth", ""), "{\"verdicts\":[" SAID("1") "," UNSAID "]}", &set);
    assert_int_equal(set.verdicts[0].kind, VERDICT_UNSCORED);
    assert_true(isnan(set.verdicts[0].score));
    assert_string_equal(set.verdicts[0].failure_code, "of_unscored");
    verdict_set_finish(&set);
    settle(SHAPED("truth", ""), "{\"verdicts\":[" UNSAID "," UNSAID "]}", &set);
    assert_string_equal(set.verdicts[0].failure_code, "x"); /* its own failure stays */
    verdict_set_finish(&set);
}

static void test_names_may_follow_names(void **state)
{
    struct verdict_set set;

    (void)state;
    settle(CHAIN("repetition", "truth"), "{\"verdicts\":[" SAID("-0.5") "," SAID("-0.25") "," SAID("1") "]}", &set);
    assert_true(set.verdicts[1].score == -0.25);
    assert_true(set.verdicts[0].score == 0); /* a penalty is not above 0 */
    verdict_set_finish(&set);
    settle(CHAIN("repetition", "truth"), "{\"verdicts\":[" SAID("-0.5") "," SAID("-0.25") "," UNSAID "]}", &set);
    assert_string_equal(set.verdicts[0].failure_code, "of_unscored");
    verdict_set_finish(&set);
}

static void test_a_settled_score_that_is_not_finite_is_not_believed(void **state)
{
    struct verdict_set set;

    (void)state;
    settle("{\"verifiers\":[{\"name\":\"cosine_length\",\"options\":{\"of\":\"exact\",\"max_length\":1,\"max_correct\":"
           "1e9}},"
           "{\"name\":\"exact\"}]}",
           "{\"verdicts\":[" SAID("1e308") "," SAID("1") "]}", &set);
    assert_string_equal(set.verdicts[0].failure_code, "verifier_crashed");
    verdict_set_finish(&set);
}

/* --- the reward --- */

#define MISSING NAN

static struct reward combine(const char *json, const double *scores, enum reward_missing missing)
{
    static struct verdict_record records[4];
    struct verifier_list *list = read_list(json);
    struct verdict_set set = {list->count, records};
    struct reward reward;

    for (size_t i = 0; i < list->count; i++)
        records[i] = (struct verdict_record){isnan(scores[i]) ? VERDICT_UNSCORED : VERDICT_SCORED,
                                             scores[i],
                                             "r",
                                             "verifier_timeout",
                                             "",
                                             true,
                                             NULL,
                                             0};
    reward = reward_combine(list, &set, missing);
    verifier_list_unref(list);
    return reward;
}

#define TWO "{\"verifiers\":[{\"name\":\"exact\",\"weight\":1},{\"name\":\"math\",\"weight\":0.5}]}"
#define HELDOUT "{\"verifiers\":[{\"name\":\"exact\"},{\"name\":\"math\",\"heldout\":true}]}"
#define GATE "{\"verifiers\":[{\"name\":\"exact\",\"gate\":true,\"weight\":0},{\"name\":\"math\",\"weight\":2}]}"

static void test_the_reward_is_the_weighted_sum(void **state)
{
    (void)state;
    assert_true(combine(TWO, (double[]){1, 1}, REWARD_MISSING_NULL).value == 1.5);
    assert_true(combine(TWO, (double[]){0, 0.5}, REWARD_MISSING_NULL).value == 0.25);
    assert_null(combine(TWO, (double[]){0, 0.5}, REWARD_MISSING_NULL).failure);
}

static void test_a_missing_score_makes_the_reward_null_with_its_failure(void **state)
{
    (void)state;
    struct reward reward = combine(TWO, (double[]){1, MISSING}, REWARD_MISSING_NULL);
    assert_true(isnan(reward.value) && reward.rewarded);
    assert_string_equal(reward.failure->failure_code, "verifier_timeout");
}

static void test_skip_sums_the_rest_and_does_not_renormalise(void **state)
{
    (void)state;
    struct reward reward = combine(TWO, (double[]){MISSING, 1}, REWARD_MISSING_SKIP);
    assert_true(reward.value == 0.5);
    assert_null(reward.failure);
    reward = combine(TWO, (double[]){MISSING, MISSING}, REWARD_MISSING_SKIP);
    assert_true(isnan(reward.value));
    assert_non_null(reward.failure);
}

static void test_a_held_out_verifier_is_no_part_of_the_reward(void **state)
{
    (void)state;
    assert_true(combine(HELDOUT, (double[]){1, 0}, REWARD_MISSING_NULL).value == 1);
    struct reward reward = combine(HELDOUT, (double[]){1, MISSING}, REWARD_MISSING_NULL);
    assert_true(reward.value == 1);
    assert_null(reward.failure);
    reward =
        combine("{\"verifiers\":[{\"name\":\"math\",\"heldout\":true}]}", (double[]){MISSING}, REWARD_MISSING_NULL);
    assert_true(isnan(reward.value) && !reward.rewarded);
    assert_null(reward.failure);
}

static void test_a_gate_of_score_zero_makes_the_whole_reward_zero(void **state)
{
    (void)state;
    assert_true(combine(GATE, (double[]){0, 1}, REWARD_MISSING_NULL).value == 0);
    assert_true(combine(GATE, (double[]){1, 1}, REWARD_MISSING_NULL).value == 2);
    assert_true(isnan(combine(GATE, (double[]){MISSING, 1}, REWARD_MISSING_NULL).value));
    assert_true(isnan(combine(GATE, (double[]){0, MISSING}, REWARD_MISSING_NULL).value));
    assert_true(isnan(combine(GATE, (double[]){MISSING, 1}, REWARD_MISSING_SKIP).value));
    assert_true(isnan(combine(GATE, (double[]){1, MISSING}, REWARD_MISSING_SKIP).value)); /* no weight is left */
}

static void test_a_verifier_of_weight_zero_may_be_missing(void **state)
{
    (void)state;
    struct reward reward = combine("{\"verifiers\":[{\"name\":\"exact\",\"weight\":0},{\"name\":\"math\"}]}",
                                   (double[]){MISSING, 1}, REWARD_MISSING_NULL);
    assert_true(reward.value == 1);
    assert_null(reward.failure);
}

/* --- rewards that come with the request --- */

static const struct given_reward two_given[] = {{"env", 2}, {"style", 0.5}};

static void test_given_rewards_stand_behind_the_verifiers(void **state)
{
    (void)state;
    struct verifier_list *base = read_list("{\"verifiers\":[{\"name\":\"math\"}]}");
    struct verifier_list *list = verifier_list_with_given(base, two_given, 2);
    assert_int_equal(list->count, 3);
    assert_string_equal(list->specs[0].id, "math");
    assert_string_equal(list->specs[1].id, "env");
    assert_string_equal(list->specs[2].verifier->name, "given");
    assert_true(list->specs[1].weight == 2 && list->specs[2].weight == 0.5);
    assert_true(verifier_list_has(list, text_of("style")) && !verifier_list_has(base, text_of("style")));
    verifier_list_unref(base); /* the list keeps it */
    assert_string_equal(list->specs[0].options_json, base->specs[0].options_json);
    verifier_list_unref(list);
}

static void test_a_list_is_shared_by_those_who_give_the_same_rewards(void **state)
{
    (void)state;
    struct verifier_list *base = read_list("{\"verifiers\":[{\"name\":\"math\"}]}");
    struct verifier_list *list = verifier_list_with_given(base, two_given, 2);
    const struct given_reward heavier[] = {{"env", 3}, {"style", 0.5}};
    const struct given_reward renamed[] = {{"env", 2}, {"taste", 0.5}};
    assert_true(verifier_list_gives(list, base, two_given, 2));
    assert_false(verifier_list_gives(list, base, two_given, 1));
    assert_false(verifier_list_gives(list, base, heavier, 2));
    assert_false(verifier_list_gives(list, base, renamed, 2));
    assert_false(verifier_list_gives(base, base, two_given, 2));
    assert_true(verifier_list_gives(base, base, NULL, 0));
    assert_ptr_equal(verifier_list_with_given(base, NULL, 0), base);
    verifier_list_unref(base);
    verifier_list_unref(base);
    verifier_list_unref(list);
}

static struct reward combine_given(double env, double style, enum reward_missing missing)
{
    struct verifier_list *base = read_list("{\"verifiers\":[]}");
    struct verifier_list *list = verifier_list_with_given(base, two_given, 2);
    struct verdict_set set = {0};
    verdict_set_add_given(&set, (const struct given_score[]){{.score = env}, {.score = style}}, 2);
    struct reward reward = reward_combine(list, &set, missing);
    verdict_set_finish(&set);
    verifier_list_unref(list);
    verifier_list_unref(base);
    return reward;
}

static void test_given_rewards_are_summed_by_weight_and_null_is_missing(void **state)
{
    (void)state;
    assert_true(combine_given(0.25, 1, REWARD_MISSING_NULL).value == 1);
    assert_true(isnan(combine_given(NAN, 1, REWARD_MISSING_NULL).value));
    assert_true(combine_given(NAN, 1, REWARD_MISSING_SKIP).value == 0.5);
    assert_true(isnan(combine_given(NAN, NAN, REWARD_MISSING_SKIP).value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_is_refused_with_its_path),
        cmocka_unit_test(test_defaults_are_the_contracts),
        cmocka_unit_test(test_the_same_options_have_the_same_hash_however_they_are_written),
        cmocka_unit_test(test_a_reference_that_cannot_be_read_is_named),
        cmocka_unit_test(test_a_frame_is_answered_by_a_worker_and_read_back),
        cmocka_unit_test(test_a_frame_too_large_is_refused),
        cmocka_unit_test(test_nothing_that_a_worker_says_is_believed_unless_it_fits),
        cmocka_unit_test(test_a_name_that_no_score_can_be_taken_from_is_refused),
        cmocka_unit_test(test_a_score_is_settled_by_one_that_stands_later),
        cmocka_unit_test(test_without_the_other_score_there_is_none),
        cmocka_unit_test(test_names_may_follow_names),
        cmocka_unit_test(test_a_settled_score_that_is_not_finite_is_not_believed),
        cmocka_unit_test(test_the_reward_is_the_weighted_sum),
        cmocka_unit_test(test_a_missing_score_makes_the_reward_null_with_its_failure),
        cmocka_unit_test(test_skip_sums_the_rest_and_does_not_renormalise),
        cmocka_unit_test(test_a_held_out_verifier_is_no_part_of_the_reward),
        cmocka_unit_test(test_a_gate_of_score_zero_makes_the_whole_reward_zero),
        cmocka_unit_test(test_a_verifier_of_weight_zero_may_be_missing),
        cmocka_unit_test(test_given_rewards_stand_behind_the_verifiers),
        cmocka_unit_test(test_a_list_is_shared_by_those_who_give_the_same_rewards),
        cmocka_unit_test(test_given_rewards_are_summed_by_weight_and_null_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
