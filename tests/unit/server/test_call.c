#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/http/call.h"
#include "tests/unit/base/cmocka_all.h"

#include <jansson.h>

static void call_setup(struct call *call)
{
    call_init(call);
    call->request_id = "req-1";
}

#define _cleanup_call_ _cleanup_(call_finish)

static void add_query(struct call *call, const char *name, const char *value)
{
    call->query[call->query_count++] = (struct query_parameter){text_of(name), text_of(value)};
}

static json_t *error_of(const struct call *call)
{
    json_t *root = json_loadb(call->reply.body.data, call->reply.body.length_bytes, 0, NULL);
    json_t *error = json_incref(json_object_get(root, "error"));
    json_decref(root);
    assert_non_null(error);
    return error;
}

static void assert_refused(const struct call *call, int status, const char *code, const char *path)
{
    json_t *error = error_of(call);
    assert_int_equal(call->reply.status, status);
    assert_string_equal(call->reply.content_type, "application/json");
    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    if (path)
        assert_string_equal(json_string_value(json_object_get(error, "path")), path);
    else
        assert_true(json_is_null(json_object_get(error, "path")));
    assert_string_equal(json_string_value(json_object_get(error, "request_id")), "req-1");
    json_decref(error);
}

static void test_a_refusal_is_the_envelope_of_the_contract(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    call_setup(&call);
    assert_int_equal(call_refuse(&call, ERR_MISSING_FIELD, "groups[3].reference", "a %s is needed", "\"reference\"\n"),
                     -1);
    assert_refused(&call, 400, "missing_field", "groups[3].reference");
    json_t *error = error_of(&call);
    assert_string_equal(json_string_value(json_object_get(error, "message")), "a \"reference\"\n is needed");
    json_decref(error);
}

static void test_a_refusal_replaces_what_was_written_before(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    call_setup(&call);
    buffer_append_string(&call.reply.body, "{\"half\":");
    call_refuse(&call, ERR_INTERNAL, NULL, "no");
    assert_refused(&call, 500, "internal_error", NULL);
}

static void test_a_message_with_broken_text_stays_json(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    char longest[4000];
    call_setup(&call);
    for (size_t i = 0; i < sizeof(longest) - 2; i += 2)
        memcpy(longest + i, "\xc3\xa9", 3);
    call_refuse(&call, ERR_INVALID_FIELD, "x\xff", "%s", longest);
    assert_refused(&call, 400, "invalid_field", "x\xef\xbf\xbd");
}

static void test_too_many_requests_say_when_to_come_back(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    call_setup(&call);
    call_refuse(&call, ERR_QUEUE_FULL, NULL, "full");
    assert_int_equal(call.reply.status, 429);
    assert_true(call.reply.retry_after_s > 0);
}

static void test_a_json_answer_ends_with_a_line_feed(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    call_setup(&call);
    buffer_append_string(&call.reply.body, "{}");
    assert_int_equal(call_answer_json(&call, 201), 0);
    assert_int_equal(call.reply.status, 201);
    assert_string_equal(call.reply.body.data, "{}\n");
    assert_string_equal(call.reply.content_type, "application/json");
}

static void test_an_answer_that_does_not_fit_becomes_an_error(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    call_setup(&call);
    call.reply.body.failed = true;
    assert_int_equal(call_answer_json(&call, 200), -1);
    assert_refused(&call, 500, "internal_error", NULL);
}

static int destroyed;

static void destroy(void *parsed)
{
    destroyed += *(int *)parsed;
}

static void test_finishing_destroys_what_was_parsed_once(void **state)
{
    (void)state;
    struct call call;
    int one = 1;
    call_setup(&call);
    call.body = xstrdup("body");
    call.parsed = &one;
    call.parsed_destroy = destroy;
    call_finish(&call);
    call_finish(&call);
    assert_int_equal(destroyed, 1);
    assert_null(call.body);
}

/* --- the query --- */

static void test_an_absent_parameter_leaves_the_default(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    int64_t integer = 7;
    double number = 7;
    bool boolean = true;
    int arrays = JSON_ARRAYS_NONE;
    call_setup(&call);
    assert_null(call_query(&call, "x").data);
    assert_int_equal(call_query_int(&call, "x", 0, 1, &integer), 0);
    assert_int_equal(call_query_double(&call, "x", &number), 0);
    assert_int_equal(call_query_duration(&call, "x", &integer), 0);
    assert_int_equal(call_query_bool(&call, "x", &boolean), 0);
    assert_int_equal(call_query_arrays(&call, &arrays), 0);
    assert_true(integer == 7 && number == 7 && boolean && arrays == JSON_ARRAYS_NONE);
}

static void test_parameters_are_read_by_their_type(void **state)
{
    (void)state;
    _cleanup_call_ struct call call;
    int64_t limit = 0;
    int64_t wait_us = 0;
    double least = 0;
    bool straddles = true;
    int arrays = -1;
    call_setup(&call);
    add_query(&call, "limit", "1000");
    add_query(&call, "wait", "30s");
    add_query(&call, "reward_min", "-0.5");
    add_query(&call, "straddles", "false");
    add_query(&call, "arrays", "base64");
    assert_int_equal(call_query_int(&call, "limit", 1, 1000, &limit), 0);
    assert_int_equal(call_query_duration(&call, "wait", &wait_us), 0);
    assert_int_equal(call_query_double(&call, "reward_min", &least), 0);
    assert_int_equal(call_query_bool(&call, "straddles", &straddles), 0);
    assert_int_equal(call_query_arrays(&call, &arrays), 0);
    assert_true(limit == 1000 && wait_us == 30 * US_PER_S && least == -0.5 && !straddles);
    assert_int_equal(arrays, JSON_ARRAYS_BASE64);
}

static void test_malformed_parameters_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const integers[] = {"", "x", "1.0", "1001", "-1", " 1", "1 ", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_LENGTH(integers); i++) {
        _cleanup_call_ struct call call;
        int64_t value = 7;
        call_setup(&call);
        add_query(&call, "limit", integers[i]);
        assert_int_equal(call_query_int(&call, "limit", 1, 1000, &value), -1);
        assert_refused(&call, 400, "invalid_field", "limit");
        assert_int_equal(value, 7);
    }
    _cleanup_call_ struct call call;
    int64_t us;
    double number;
    bool boolean;
    int arrays;
    call_setup(&call);
    add_query(&call, "a", "1e999");
    add_query(&call, "b", "30");
    add_query(&call, "c", NULL);
    add_query(&call, "arrays", "both");
    assert_int_equal(call_query_double(&call, "a", &number), -1);
    assert_int_equal(call_query_duration(&call, "b", &us), -1);
    assert_int_equal(call_query_bool(&call, "c", &boolean), -1);
    assert_int_equal(call_query_arrays(&call, &arrays), -1);
}

static void test_unknown_and_doubled_parameters_are_refused(void **state)
{
    (void)state;
    static const char *const known[] = {"run", "limit", NULL};
    _cleanup_call_ struct call call;
    call_setup(&call);
    add_query(&call, "run", "a");
    assert_int_equal(call_check_query(&call, known), 0);
    add_query(&call, "run", "b");
    assert_int_equal(call_check_query(&call, known), -1);
    assert_refused(&call, 400, "invalid_field", "run");
    call.query_count = 1;
    add_query(&call, "limt", "b");
    assert_int_equal(call_check_query(&call, known), -1);
    assert_refused(&call, 400, "unknown_field", "limt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refusal_is_the_envelope_of_the_contract),
        cmocka_unit_test(test_a_refusal_replaces_what_was_written_before),
        cmocka_unit_test(test_a_message_with_broken_text_stays_json),
        cmocka_unit_test(test_too_many_requests_say_when_to_come_back),
        cmocka_unit_test(test_a_json_answer_ends_with_a_line_feed),
        cmocka_unit_test(test_an_answer_that_does_not_fit_becomes_an_error),
        cmocka_unit_test(test_finishing_destroys_what_was_parsed_once),
        cmocka_unit_test(test_an_absent_parameter_leaves_the_default),
        cmocka_unit_test(test_parameters_are_read_by_their_type),
        cmocka_unit_test(test_malformed_parameters_are_refused_by_name),
        cmocka_unit_test(test_unknown_and_doubled_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
