/* Weights that changed while a sample was made: vLLM's weight_versions. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* Three ids, and what the engine says about the weights that made them. */
static enum exchange_outcome parse_spans(const char *spans, struct sample *ret_sample, struct sample_error *ret_error)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    char *reply = xasprintf("{\"choices\":[{\"index\":0,\"token_ids\":[812,13,2],\"finish_reason\":\"stop\","
                            "\"logprobs\":{\"content\":[{\"token_id\":812,\"logprob\":-0.5},{\"token_id\":13,"
                            "\"logprob\":-1.5},{\"token_id\":2,\"logprob\":-0.25}]},\"weight_versions\":%s}]}",
                            spans);
    enum exchange_outcome outcome;

    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("vllm_generate")), &request);
    outcome = parse_bytes(&exchange, 200, reply, strlen(reply), ret_sample, ret_error);
    if (outcome == EXCHANGE_NEXT)
        outcome = parse_bytes(&exchange, 200, "{\"prompt\":\"4.\"}", 15, ret_sample, ret_error);
    exchange_finish(&exchange);
    free(reply);
    return outcome;
}

static void assert_segment(const struct sample *sample, size_t i, size_t start, size_t end, const char *revision)
{
    assert_int_equal(sample->segments[i].start, start);
    assert_int_equal(sample->segments[i].end, end);
    assert_true(text_equals(sample->segments[i].revision, revision));
}

static void test_a_swap_on_the_way_makes_two_segments(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse_spans("[{\"version\":\"step-1\",\"start\":0,\"end\":1},"
                                 "{\"version\":\"step-2\",\"start\":1,\"end\":3}]",
                                 &sample, &error),
                     EXCHANGE_SAMPLE);
    assert_int_equal(sample.segment_count, 2);
    assert_segment(&sample, 0, 0, 1, "step-1");
    assert_segment(&sample, 1, 1, 3, "step-2");
    assert_true(text_equals(sample.engine_revision, "step-2"));
    assert_true(text_equals(sample.text, "4."));
    sample_finish(&sample);
}

static void test_one_version_is_a_revision_and_no_segments(void **state)
{
    static const char *const spans[] = {
        "[{\"version\":\"step-7\",\"start\":0,\"end\":3}]",
        "[{\"version\":\"step-7\"}]",
        /* the same name twice, as after a reload of the same weights */
        "[{\"version\":\"step-7\",\"start\":0,\"end\":2},{\"version\":\"step-7\",\"start\":2,\"end\":3}]",
        /* a swap before the first id */
        "[{\"version\":\"step-6\",\"start\":0,\"end\":0},{\"version\":\"step-7\",\"start\":0,\"end\":3}]",
    };
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(spans); i++) {
        assert_int_equal(parse_spans(spans[i], &sample, &error), EXCHANGE_SAMPLE);
        assert_int_equal(sample.segment_count, 0);
        assert_null(sample.segments);
        assert_true(text_equals(sample.engine_revision, "step-7"));
        sample_finish(&sample);
    }
}

static void test_an_engine_that_does_not_say_has_no_revision(void **state)
{
    static const char *const spans[] = {"null", "[]"};
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(spans); i++) {
        assert_int_equal(parse_spans(spans[i], &sample, &error), EXCHANGE_SAMPLE);
        assert_int_equal(sample.segment_count, 0);
        assert_null(sample.engine_revision.data);
        sample_finish(&sample);
    }
}

static void test_spans_that_are_not_those_of_the_ids_are_refused(void **state)
{
    static const char *const spans[] = {
        "[{\"version\":\"a\",\"start\":0,\"end\":2}]",                                           /* too short */
        "[{\"version\":\"a\",\"start\":0,\"end\":4}]",                                           /* too long */
        "[{\"version\":\"a\",\"start\":1,\"end\":3}]",                                           /* a gap before */
        "[{\"version\":\"a\",\"start\":0,\"end\":1},{\"version\":\"b\",\"start\":2,\"end\":3}]", /* a gap between */
        "[{\"version\":\"a\",\"start\":0,\"end\":2},{\"version\":\"b\",\"start\":1,\"end\":3}]", /* an overlap */
        "[{\"version\":\"a\",\"start\":0,\"end\":4},{\"version\":\"b\",\"start\":4,\"end\":3}]", /* backwards */
        "[{\"version\":null,\"start\":0,\"end\":3}]",
        "[{\"version\":\"\",\"start\":0,\"end\":3}]",
        "[{\"version\":\"a\"},{\"version\":\"b\"}]",
        "[{\"version\":\"a\",\"start\":0.5,\"end\":3}]",
    };
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(spans); i++) {
        if (parse_spans(spans[i], &sample, &error) != EXCHANGE_ERROR)
            fail_msg("believed: %s", spans[i]);
        assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
        assert_null(sample.memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_swap_on_the_way_makes_two_segments),
        cmocka_unit_test(test_one_version_is_a_revision_and_no_segments),
        cmocka_unit_test(test_an_engine_that_does_not_say_has_no_revision),
        cmocka_unit_test(test_spans_that_are_not_those_of_the_ids_are_refused),
    };

    return cmocka_run_group_tests_name("versions", tests, NULL, NULL);
}
