/* Meaning of a refusal: status, words, Retry-After. */
#include "support.h"

#include "client/transport/transport.h"

#include <string.h>

static struct sample_error refusal(int status, const char *body, const char *retry_after)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;
    struct engine_reply reply = {.status = status,
                                 .body = text_of(body),
                                 .retry_after = text_of(retry_after),
                                 .now_utc_us = INT64_C(784111777) * 1000000}; /* Sun, 06 Nov 1994 08:49:37 GMT */

    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("vllm")), &request);
    assert_int_equal(exchange_parse(&exchange, &reply, &sample, &error), EXCHANGE_ERROR);
    exchange_finish(&exchange);
    return error;
}

static const struct {
    int status;
    const char *body;
    enum sample_failure code;
    bool retryable;
    const char *says; /* in the message */
} refusals[] = {
    {400, "{\"error\":{\"message\":\"bad thing\",\"type\":\"BadRequestError\",\"code\":400}}", SAMPLE_ENGINE_ERROR,
     false, "bad thing"},
    {401, "{\"error\":\"Unauthorized\"}", SAMPLE_ENGINE_ERROR, false, "Unauthorized"},
    {404, "{\"detail\":\"Not Found\"}", SAMPLE_ENGINE_ERROR, false, "Not Found"},
    {422, "{\"detail\":[{\"type\":\"json_invalid\"}]}", SAMPLE_ENGINE_ERROR, false, "json_invalid"},
    {429, "{\"error\":{\"message\":\"rate limit\",\"code\":429}}", SAMPLE_ENGINE_OVERLOADED, true, "rate limit"},
    {429, "{\"error\":{\"message\":\"no money\",\"code\":\"insufficient_quota\"}}", SAMPLE_ENGINE_ERROR, false,
     "insufficient_quota"},
    {500, "{\"object\":\"error\",\"message\":\"boom\"}", SAMPLE_ENGINE_ERROR, true, "boom"},
    {500, "", SAMPLE_ENGINE_ERROR, true, "500"},
    {501, "{\"error\":{\"message\":\"not built\"}}", SAMPLE_ENGINE_ERROR, false, "not built"},
    {502, "<html>\r\n<b>bad gateway</b>", SAMPLE_ENGINE_OVERLOADED, true, "bad gateway"},
    {503, "{\"error\":\"The model is currently scaling.\"}", SAMPLE_ENGINE_OVERLOADED, true, "scaling"},
    {504, "upstream timed out", SAMPLE_ENGINE_TIMEOUT, true, "upstream"},
    {302, "", SAMPLE_ENGINE_ERROR, false, "302"},
    {400, "{\"error\":{\"message\":\"max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)\"}}",
     SAMPLE_CONTEXT_OVERFLOW, false, "max_tokens"},
    /* vLLM's /inference/v1/generate */
    {400,
     "{\"error\":{\"message\":\"The decoder prompt (length 2048) plus the number of requested output tokens (at least "
     "1) is longer than the maximum model length of 2048.\"}}",
     SAMPLE_CONTEXT_OVERFLOW, false, "2048"},
    {400,
     "{\"error\":{\"message\":\"The decoder prompt (length 3000) is longer than the maximum model length of 2048.\"}}",
     SAMPLE_CONTEXT_OVERFLOW, false, "3000"},
    /* a gateway hands its upstream's error on with status 200 */
    {200, "{\"error\":{\"code\":\"rate_limit_daily\",\"message\":\"quota used up\",\"type\":\"rate_limit\"}}",
     SAMPLE_ENGINE_OVERLOADED, true, "rate_limit_daily: quota used up"},
    {200, "{\"error\":{\"message\":\"scheduler died\"}}", SAMPLE_ENGINE_ERROR, true, "scheduler died"},
};

static void test_refusals_mean_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(refusals); i++) {
        struct sample_error error = refusal(refusals[i].status, refusals[i].body, NULL);

        if (error.code != refusals[i].code || error.retryable != refusals[i].retryable ||
            !strstr(error.message, refusals[i].says))
            fail_msg("%d %s became %s (%s): %s", refusals[i].status, refusals[i].body, sample_failure_names[error.code],
                     error.retryable ? "retryable" : "final", error.message);
        assert_false(error.resample);
        assert_int_equal(error.status, refusals[i].status);
    }
}

/* It comes back for every try with this seed, so it counts as a complete answer that was refused. */
static void test_a_generation_that_llamacpp_cannot_deliver_draws_a_new_seed(void **state)
{
    struct sample_error error =
        refusal(500,
                "{\"error\":{\"code\":500,\"message\":\"The model produced output that does not match the expected "
                "Content-only format\",\"type\":\"server_error\"}}",
                NULL);

    (void)state;
    assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
    assert_true(error.retryable && error.resample);
}

static void test_retry_after_is_understood_in_both_forms(void **state)
{
    static const struct {
        const char *value;
        int64_t want_us;
    } cases[] = {
        {"1", 1000000},
        {" 120 ", 120000000},
        {"Sun, 06 Nov 1994 08:49:47 GMT", 10000000},
        {"Sun, 06 Nov 1994 08:49:00 GMT", 0}, /* has passed */
        {"999999999999999999999", INT64_C(3600000000)},
        {"Sun, 06 Nov 2094 08:49:47 GMT", INT64_C(3600000000)},
        {"-5", 0},
        {"1.5", 0},
        {"soon", 0},
        {"", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct sample_error error = refusal(429, "{}", cases[i].value);

        if (error.retry_after_us != cases[i].want_us)
            fail_msg("\"%s\" is %lld us", cases[i].value, (long long)error.retry_after_us);
    }
}

static void test_messages_are_bounded_printable_utf8(void **state)
{
    char body[4096];
    struct sample_error error;
    size_t length;

    (void)state;
    strcpy(body, "{\"error\":{\"message\":\"\\u0000\\u0007\\n\\ud83d");
    for (length = strlen(body); length < sizeof(body) - 8; length += 2)
        memcpy(body + length, "\xc3\xa9", 2);
    strcpy(body + length, "\"}}");
    error = refusal(500, body, NULL);
    assert_true(strlen(error.message) < SAMPLE_MESSAGE_BYTES);
    assert_true(strlen(error.message) > 100);
    for (const char *at = error.message; *at; at++)
        assert_false((unsigned char)*at < ' ' || *at == 0x7f);
    assert_int_equal((unsigned char)error.message[strlen(error.message) - 1], 0xa9); /* no half character at the end */
}

static void test_transfers_that_fail_keep_their_seed(void **state)
{
    static const struct {
        enum transfer_result result;
        enum sample_failure code;
        bool retryable;
    } cases[] = {
        {TRANSFER_UNREACHABLE, SAMPLE_ENGINE_UNREACHABLE, true},
        {TRANSFER_TIMEOUT, SAMPLE_ENGINE_TIMEOUT, true},
        {TRANSFER_CUT, SAMPLE_INVALID_REPLY, true},
        {TRANSFER_TOO_LARGE, SAMPLE_INVALID_REPLY, false},
        {TRANSFER_BAD_REQUEST, SAMPLE_ENGINE_ERROR, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct transfer_reply reply = {.result = cases[i].result, .problem = "why"};
        struct sample_error error;

        sample_error_of_transfer(&reply, &error);
        assert_int_equal(error.code, cases[i].code);
        assert_int_equal(error.retryable, cases[i].retryable);
        assert_false(error.resample);
        assert_non_null(strstr(error.message, "why"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals_mean_what_they_say),
        cmocka_unit_test(test_a_generation_that_llamacpp_cannot_deliver_draws_a_new_seed),
        cmocka_unit_test(test_retry_after_is_understood_in_both_forms),
        cmocka_unit_test(test_messages_are_bounded_printable_utf8),
        cmocka_unit_test(test_transfers_that_fail_keep_their_seed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
