/* Event streams, and llama.cpp's completions in them. */
#include "support.h"

#include "client/adapters/event_stream_private.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN(content, id, predicted, logprob)                                                                         \
    "data: {\"index\":0,\"content\":\"" content "\",\"tokens\":[" id "],\"stop\":false,\"id_slot\":-1,"                \
    "\"tokens_predicted\":" predicted ",\"tokens_evaluated\":4,\"completion_probabilities\":[{\"id\":" id              \
    ",\"token\":\"" content "\",\"bytes\":[],\"logprob\":" logprob ",\"top_logprobs\":[{\"id\":" id                    \
    ",\"logprob\":" logprob "}]}]}\n\n"
#define END(predicted, type)                                                                                           \
    "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":\"" type                            \
    "\",\"stopping_word\":\"\",\"truncated\":false,\"tokens_predicted\":" predicted                                    \
    ",\"tokens_evaluated\":4,\"generation_settings/seed\":1827855788}\n\n"
#define GOOD TOKEN(" 4", "812", "1", "-0.5") TOKEN(".", "13", "2", "-1.5") TOKEN("", "2", "3", "-0.25") END("3", "eos")

static enum exchange_outcome parse_length(const char *body, size_t length_bytes, struct sample *ret_sample,
                                          struct sample_error *ret_error)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    enum exchange_outcome outcome;

    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("llamacpp")), &request);
    outcome = parse_bytes(&exchange, 200, body, length_bytes, ret_sample, ret_error);
    exchange_finish(&exchange);
    return outcome;
}

static enum exchange_outcome parse(const char *body, struct sample *ret_sample, struct sample_error *ret_error)
{
    return parse_length(body, strlen(body), ret_sample, ret_error);
}

static void assert_good(const struct sample *sample)
{
    static const uint32_t ids[] = {812, 13, 2};
    static const float logprobs[] = {-0.5f, -1.5f, -0.25f};

    assert_int_equal(sample->id_count, 3);
    assert_memory_equal(sample->ids, ids, sizeof(ids));
    assert_memory_equal(sample->logprobs, logprobs, sizeof(logprobs));
    assert_true(text_equals(sample->text, " 4."));
    assert_int_equal(sample->finish, FINISH_STOP);
    assert_true(sample->trainable && sample->eos_in_ids && sample->seed_honoured);
    assert_int_equal(sample->logprobs_mode, LOGPROBS_RAW);
}

static void assert_refused(const char *body, enum sample_failure code, bool resample)
{
    struct sample sample;
    struct sample_error error;

    assert_int_equal(parse(body, &sample, &error), EXCHANGE_ERROR);
    if (error.code != code || error.resample != resample)
        fail_msg("%s, resample %d: %s", sample_failure_names[error.code], error.resample, error.message);
    assert_true(error.retryable);
    assert_null(sample.memory);
}

/* --- what is believed ---------------------------------------------------------------------------- */

static void test_a_whole_stream_is_a_sample(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse(GOOD, &sample, &error), EXCHANGE_SAMPLE);
    assert_good(&sample);
    sample_finish(&sample);
}

static void test_pings_and_a_done_are_passed_over(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse(":\n\n: ping\n\nevent: x\nid: 7\n\n" GOOD "data: [DONE]\n\n", &sample, &error),
                     EXCHANGE_SAMPLE);
    assert_good(&sample);
    sample_finish(&sample);
}

/* A proxy that does not stream, or a server that ignores the wish. */
static void test_a_reply_that_is_no_stream_is_read_as_it_is(void **state)
{
    static const char body[] =
        "{\"content\":\" 4.\",\"tokens\":[812,13,2],\"stop_type\":\"eos\",\"tokens_predicted\":3,\"completion_"
        "probabilities\":[{\"id\":812,\"logprob\":-0.5},{\"id\":13,\"logprob\":-1.5},{\"id\":2,\"logprob\":-0.25}],"
        "\"generation_settings/seed\":1827855788}";
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse(body, &sample, &error), EXCHANGE_SAMPLE);
    assert_good(&sample);
    sample_finish(&sample);
}

/* The tokens of a stop string keep their log-probabilities here; a plain reply cuts them off. */
static void test_a_stop_string_in_a_stream_keeps_its_tokens(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(
        parse(TOKEN(" 4", "812", "1", "-0.5") TOKEN("", "13", "2", "-1.5") END("2", "word"), &sample, &error),
        EXCHANGE_SAMPLE);
    assert_int_equal(sample.id_count, 2);
    assert_true(text_equals(sample.text, " 4"));
    assert_false(sample.eos_in_ids);
    sample_finish(&sample);
}

/* --- what is not --------------------------------------------------------------------------------- */

static void test_tokens_that_were_held_back_are_missed(void **state)
{
    (void)state;
    /* three tokens of one character: the last one comes alone */
    assert_refused(TOKEN("Oh ", "812", "1", "-0.5") TOKEN("\xF0\x9F\x98\x80", "13", "4", "-1.5") END("4", "limit"),
                   SAMPLE_INVALID_REPLY, true);
    /* cut inside a character: none comes */
    assert_refused(END("3", "limit"), SAMPLE_INVALID_REPLY, true);
    assert_refused(TOKEN("a", "812", "1", "-0.5") END("2", "limit"), SAMPLE_INVALID_REPLY, true);
}

static void test_a_token_without_its_logprob_is_refused(void **state)
{
    (void)state;
    assert_refused(TOKEN("a", "812", "1", "-0.5") "data: {\"content\":\"b\",\"tokens\":[13]}\n\n" END("2", "limit"),
                   SAMPLE_INVALID_REPLY, true);
    assert_refused(TOKEN("a", "812", "1", "null") END("1", "limit"), SAMPLE_NON_FINITE_LOGPROB, true);
}

static void test_cut_at_every_byte_the_same_tokens_are_asked_for_again(void **state)
{
    static const char body[] = GOOD;
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t length = 0; length < sizeof(body) - 1; length++) {
        assert_int_equal(parse_length(body, length, &sample, &error), EXCHANGE_ERROR);
        assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
        assert_true(error.retryable && !error.resample);
    }
}

static void test_events_that_do_not_belong_to_the_sample_are_refused(void **state)
{
    (void)state;
    assert_refused(GOOD TOKEN("!", "5", "4", "-1"), SAMPLE_INVALID_REPLY, false);
    assert_refused(GOOD GOOD, SAMPLE_INVALID_REPLY, false);
    assert_refused("data: 17\n\n" GOOD, SAMPLE_INVALID_REPLY, false);
    assert_refused("data: {\"content\":}\n\n" GOOD, SAMPLE_INVALID_REPLY, false);
    assert_refused("data: {} {}\n\n" GOOD, SAMPLE_INVALID_REPLY, false);
    assert_refused("data: [DONE]\n\n", SAMPLE_INVALID_REPLY, false);
    assert_refused("<html></html>", SAMPLE_INVALID_REPLY, false);
    /* another one's events between ours */
    assert_refused("data: {\"index\":1,\"content\":\"x\",\"tokens\":[7],\"completion_probabilities\":[{\"id\":7,"
                   "\"logprob\":-1}]}\n\n" END("1", "limit"),
                   SAMPLE_INVALID_REPLY, true);
}

static void test_an_error_in_the_stream_is_the_engines(void **state)
{
    (void)state;
    assert_refused(
        TOKEN("a", "812", "1", "-0.5") "data: {\"error\":{\"code\":500,\"message\":\"decode failed\",\"type\":"
                                       "\"server_error\"}}\n\n",
        SAMPLE_ENGINE_ERROR, false);
    assert_refused("error: {\"code\":500,\"message\":\"decode failed\",\"type\":\"server_error\"}\n\n",
                   SAMPLE_ENGINE_ERROR, false);
    assert_refused("data: {\"error\":\"no slot\"}\n\n" GOOD, SAMPLE_ENGINE_ERROR, false);
    assert_refused("data: {\"error\":{\"code\":503,\"message\":\"Loading model\"}}\n\n", SAMPLE_ENGINE_OVERLOADED,
                   false);
}

/* --- the events themselves ------------------------------------------------------------------------- */

static void test_events_end_with_an_empty_line(void **state)
{
    static const char body[] = "data:a\r\n\r\ndata: b\ndata:  c\n\n\n: d\n\ndata\n\ndatax: e\n\ndata: f\n\ndata: g\n";
    static const char *const wanted[] = {"a", "b\n c", "f"};
    struct event_stream stream;
    struct stream_event event;
    size_t count = 0;

    (void)state;
    event_stream_init(&stream, (struct text)TEXT_LITERAL(body));
    for (; event_stream_next(&stream, &event); count++) {
        assert_true(count < ARRAY_LENGTH(wanted));
        assert_true(text_equals(event.data, wanted[count]));
        assert_false(event.is_error);
    }
    assert_int_equal(count, ARRAY_LENGTH(wanted));
    assert_false(event_stream_next(&stream, &event));
    event_stream_finish(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_stream_is_a_sample),
        cmocka_unit_test(test_pings_and_a_done_are_passed_over),
        cmocka_unit_test(test_a_reply_that_is_no_stream_is_read_as_it_is),
        cmocka_unit_test(test_a_stop_string_in_a_stream_keeps_its_tokens),
        cmocka_unit_test(test_tokens_that_were_held_back_are_missed),
        cmocka_unit_test(test_a_token_without_its_logprob_is_refused),
        cmocka_unit_test(test_cut_at_every_byte_the_same_tokens_are_asked_for_again),
        cmocka_unit_test(test_events_that_do_not_belong_to_the_sample_are_refused),
        cmocka_unit_test(test_an_error_in_the_stream_is_the_engines),
        cmocka_unit_test(test_events_end_with_an_empty_line),
    };

    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
