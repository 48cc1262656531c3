/* A verifier that has to ask first: its calls, and its verdict on what came back. Its table is this one. */
#include "tests/unit/base/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "verifiers/registry.h"
#include "verifiers/text/extract.h"
#include "verifiers/worker/worker.h"

/* A blank completion is judged at once; "many" and "large" ask too much; any other text is asked about, twice. */
static bool plan(const struct verifier_input *input, json_t *calls, struct verdict *ret_verdict)
{
    size_t count = text_equals(input->completion, "many") ? VERIFIER_CALLS_MAX + 1 : 2;
    size_t bytes = text_equals(input->completion, "large") ? VERIFIER_CALLS_BYTES / 2 + 1 : 2;
    _cleanup_free_ char *body = malloc(bytes + 1);

    if (text_trimmed(input->completion).length_bytes == 0) {
        verdict_set(ret_verdict, false, "no_answer");
        return false;
    }
    memset(body, '"', bytes);
    body[bytes] = 0;
    for (size_t i = 0; i < count; i++)
        json_array_append_new(calls, json_pack("{s:s, s:s#, s:b}", "path", "/p", "body", body, bytes, "model", i == 0));
    return true;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    const json_t *status = json_object_get(json_array_get(input->replies, 0), "status");

    if (!input->replies)
        verdict_fail(ret_verdict, "verifier_crashed", "judged without replies");
    else
        verdict_set_score(ret_verdict, (double)json_integer_value(status), "status");
}

static const struct verifier asking = {
    .name = "asking", .version = "1", .help = "asks", .needs_reference = true, .plan = plan, .grade = grade};

const struct verifier *const verifiers[] = {&asking};
const size_t verifier_count = 1;

#define FIRST                                                                                                          \
    "\"reference\":1,\"verifiers\":[{\"name\":\"asking\",\"options\":{}},{\"name\":\"asking\",\"options\":{}}]"

/* The place of each verifier in the worker's reply to {`about`, two of them}. */
static json_t *answer(const char *about, uint64_t left_out)
{
    static const struct worker_means means = {.slot_fd = -1};
    _cleanup_free_ char *request = xasprintf("{%s}", about);
    _cleanup_buffer_ struct buffer out;
    json_t *reply, *verdicts;

    buffer_init(&out, WORKER_REPLY_LIMIT_BYTES);
    assert_int_equal(worker_answer(text_of(request), left_out, &means, 0, &out), 0);
    reply = json_loadb(out.data, out.length_bytes, 0, NULL);
    verdicts = json_incref(json_object_get(reply, "verdicts"));
    assert_int_equal(json_array_size(verdicts), 2);
    json_decref(reply);
    return verdicts;
}

static const char *failure_of(const json_t *verdict)
{
    return json_string_value(json_object_get(json_object_get(verdict, "failure"), "code"));
}

static void test_calls_stand_in_the_place_of_the_verdict(void **state)
{
    json_t *verdicts = answer("\"completion\":\"x\"," FIRST, 2);
    const json_t *calls = json_object_get(json_array_get(verdicts, 0), "calls");
    const json_t *call = json_array_get(calls, 0);

    (void)state;
    assert_int_equal(json_array_size(calls), 2);
    assert_string_equal(json_string_value(json_object_get(call, "path")), "/p");
    assert_string_equal(json_string_value(json_object_get(call, "body")), "\"\"");
    assert_true(json_is_true(json_object_get(call, "model")));
    assert_true(json_is_false(json_object_get(json_array_get(calls, 1), "model")));
    assert_true(json_is_null(json_array_get(verdicts, 1)));
    json_decref(verdicts);
}

static void test_a_completion_that_needs_no_call_is_graded_at_once(void **state)
{
    json_t *verdicts = answer("\"completion\":\" \"," FIRST, 0);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(json_array_get(verdicts, 1), "reason")), "no_answer");
    json_decref(verdicts);
}

static void test_replies_are_judged_by_the_verifier_in_whose_place_they_stand(void **state)
{
    json_t *verdicts = answer("\"completion\":\"x\",\"replies\":[null,[{\"status\":200}]]," FIRST, 1);

    (void)state;
    assert_true(json_is_null(json_array_get(verdicts, 0)));
    assert_true(json_number_value(json_object_get(json_array_get(verdicts, 1), "score")) == 200);
    json_decref(verdicts);
}

static void test_replies_of_one_do_not_reach_another(void **state)
{
    json_t *verdicts = answer("\"completion\":\"x\",\"replies\":[[{\"status\":200}],null]," FIRST, 0);

    (void)state;
    assert_true(json_number_value(json_object_get(json_array_get(verdicts, 0), "score")) == 200);
    assert_int_equal(json_array_size(json_object_get(json_array_get(verdicts, 1), "calls")), 2);
    json_decref(verdicts);
}

static void test_too_many_calls_are_a_failure(void **state)
{
    json_t *verdicts = answer("\"completion\":\"many\"," FIRST, 0);

    (void)state;
    assert_string_equal(failure_of(json_array_get(verdicts, 0)), "verifier_input_too_large");
    json_decref(verdicts);
}

static void test_bodies_that_are_too_large_are_a_failure(void **state)
{
    json_t *verdicts = answer("\"completion\":\"large\"," FIRST, 0);

    (void)state;
    assert_string_equal(failure_of(json_array_get(verdicts, 0)), "verifier_input_too_large");
    json_decref(verdicts);
}

static void test_without_a_reference_that_it_needs_nothing_is_asked(void **state)
{
    json_t *verdicts =
        answer("\"completion\":\"x\",\"verifiers\":[{\"name\":\"asking\",\"options\":{}},{\"name\":\"asking\","
               "\"options\":{},\"reference\":\"\"}]",
               0);

    (void)state;
    assert_string_equal(failure_of(json_array_get(verdicts, 0)), "reference_unreadable");
    assert_non_null(json_object_get(json_array_get(verdicts, 1), "calls"));
    json_decref(verdicts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_stand_in_the_place_of_the_verdict),
        cmocka_unit_test(test_a_completion_that_needs_no_call_is_graded_at_once),
        cmocka_unit_test(test_replies_are_judged_by_the_verifier_in_whose_place_they_stand),
        cmocka_unit_test(test_replies_of_one_do_not_reach_another),
        cmocka_unit_test(test_too_many_calls_are_a_failure),
        cmocka_unit_test(test_bodies_that_are_too_large_are_a_failure),
        cmocka_unit_test(test_without_a_reference_that_it_needs_nothing_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
