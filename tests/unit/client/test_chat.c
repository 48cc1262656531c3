/* Chats: every kind hands messages, tools and template options to the engine's own template. And what is given up. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static struct sample_request chat_request(void)
{
    struct sample_request request = plain_request();

    request.prompt_ids = NULL;
    request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"hi\"}]");
    request.tools = (struct text)TEXT_LITERAL("[{\"type\":\"function\",\"function\":{\"name\":\"look\"}}]");
    request.sampling.chat_template_kwargs = (struct text)TEXT_LITERAL("{\"enable_thinking\":false}");
    request.request_id = (struct text)TEXT_LITERAL("r-1");
    return request;
}

static void test_every_kind_hands_messages_tools_and_options_to_the_template(void **state)
{
    static const struct {
        const char *kind, *path;
    } first[] = {{"vllm", "/tokenize"},
                 {"vllm_generate", "/tokenize"},
                 {"llamacpp", "/apply-template"},
                 {"sglang", "/v1/chat/completions"},
                 {"openai_compat", "/v1/chat/completions"}};
    struct sample_request request = chat_request();

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(first); i++) {
        struct exchange exchange;
        const char *path;
        json_t *body;

        exchange_init(&exchange, engine_adapter_find(text_of(first[i].kind)), &request);
        body = built_body(&exchange, &path);
        assert_string_equal(path, first[i].path);
        assert_int_equal(json_array_size(json_object_get(body, "messages")), 1);
        assert_int_equal(json_array_size(json_object_get(body, "tools")), 1);
        assert_true(json_is_false(json_object_get(json_object_get(body, "chat_template_kwargs"), "enable_thinking")));
        json_decref(body);
        exchange_finish(&exchange);
    }
}

static void test_without_tools_none_are_sent(void **state)
{
    struct sample_request request = chat_request();

    (void)state;
    request.tools = TEXT_NONE;
    for (size_t i = 0; engine_adapters[i] && engine_kind_samples(engine_adapters[i]->kind); i++) {
        struct exchange exchange;
        json_t *body;

        exchange_init(&exchange, engine_adapters[i], &request);
        body = built_body(&exchange, NULL);
        assert_null(json_object_get(body, "tools"));
        json_decref(body);
        exchange_finish(&exchange);
    }
}

/* --- what a chat's answer is ------------------------------------------------------------------------- */

static enum exchange_outcome parse_message(const char *message, const char *rest, struct sample *ret_sample,
                                           struct sample_error *ret_error)
{
    struct sample_request request = chat_request();
    struct exchange exchange;
    char *reply = xasprintf("{\"choices\":[{\"index\":0,\"message\":%s,\"finish_reason\":%s}]}", message, rest);
    enum exchange_outcome outcome;

    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("openai_compat")), &request);
    outcome = parse_bytes(&exchange, 200, reply, strlen(reply), ret_sample, ret_error);
    exchange_finish(&exchange);
    free(reply);
    return outcome;
}

static void test_parts_that_parsers_took_out_are_not_glued_back(void **state)
{
    static const struct {
        const char *message, *rest, *text;
        enum finish_reason finish;
    } cases[] = {
        {"{\"content\":\"4\",\"reasoning\":\"2+2\"}", "\"stop\"", "4", FINISH_STOP},
        {"{\"content\":\"4\",\"reasoning_content\":\"2+2\",\"tool_calls\":[]}", "\"stop\"", "4", FINISH_STOP},
        {"{\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"look\"}}]}", "\"tool_calls\"", "",
         FINISH_TOOL_CALLS},
        {"{\"content\":\"\",\"reasoning\":\"so lo\"}", "\"length\"", "", FINISH_LENGTH},
    };
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        if (parse_message(cases[i].message, cases[i].rest, &sample, &error) != EXCHANGE_SAMPLE)
            fail_msg("%zu: %s", i, error.message);
        assert_true(text_equals(sample.text, cases[i].text));
        assert_int_equal(sample.finish, cases[i].finish);
        assert_false(sample.trainable);
        assert_null(sample.ids);
        sample_finish(&sample);
    }
}

static void test_a_message_with_nothing_in_it_is_an_empty_completion(void **state)
{
    static const char *const messages[] = {"{\"content\":\"\"}", "{\"content\":null,\"tool_calls\":[]}",
                                           "{\"content\":\"\",\"reasoning\":null,\"reasoning_content\":\"\"}"};
    struct sample sample;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(messages); i++) {
        assert_int_equal(parse_message(messages[i], "\"stop\"", &sample, &error), EXCHANGE_ERROR);
        assert_int_equal(error.code, SAMPLE_EMPTY_COMPLETION);
    }
}

static void test_ids_of_a_chat_make_it_trainable(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse_message("{\"content\":null,\"tool_calls\":[{}]}",
                                   "\"tool_calls\",\"token_ids\":[7,8],\"logprobs\":{\"content\":[{\"token\":\"a\","
                                   "\"logprob\":-1},{\"token\":\"b\",\"logprob\":-2}]}",
                                   &sample, &error),
                     EXCHANGE_SAMPLE);
    assert_true(sample.trainable);
    assert_int_equal(sample.id_count, 2);
    assert_int_equal(sample.finish, FINISH_TOOL_CALLS);
    sample_finish(&sample);
}

/* --- giving up ------------------------------------------------------------------------------------- */

static void test_sglang_is_told_what_to_stop(void **state)
{
    struct sample_request requests[] = {plain_request(), chat_request()};

    (void)state;
    requests[0].request_id = (struct text)TEXT_LITERAL("r-1");
    for (size_t i = 0; i < ARRAY_LENGTH(requests); i++) {
        struct exchange exchange;
        struct engine_call call;
        json_t *body;

        exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("sglang")), &requests[i]);
        body = built_body(&exchange, NULL);
        assert_string_equal(json_string_value(json_object_get(body, "rid")), "r-1");
        json_decref(body);
        assert_true(exchange_build_abort(&exchange, &call));
        assert_string_equal(call.method, "POST");
        assert_string_equal(call.path, "/abort_request");
        assert_true(text_equals(buffer_text(&call.body), "{\"rid\":\"r-1\"}"));
        engine_call_finish(&call);
        exchange_finish(&exchange);
    }
}

/* Closing the connection stops them at once; llama.cpp because it streams. */
static void test_the_others_need_no_call(void **state)
{
    static const char *const kinds[] = {"vllm", "vllm_generate", "llamacpp", "openai_compat"};
    struct sample_request request = chat_request();

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        struct exchange exchange;
        struct engine_call call;

        exchange_init(&exchange, engine_adapter_find(text_of(kinds[i])), &request);
        assert_false(exchange_build_abort(&exchange, &call));
        exchange_finish(&exchange);
    }
}

static void test_llamacpp_streams(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    json_t *body;

    (void)state;
    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("llamacpp")), &request);
    body = built_body(&exchange, NULL);
    assert_true(json_is_true(json_object_get(body, "stream")));
    json_decref(body);
    exchange_finish(&exchange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_hands_messages_tools_and_options_to_the_template),
        cmocka_unit_test(test_without_tools_none_are_sent),
        cmocka_unit_test(test_parts_that_parsers_took_out_are_not_glued_back),
        cmocka_unit_test(test_a_message_with_nothing_in_it_is_an_empty_completion),
        cmocka_unit_test(test_ids_of_a_chat_make_it_trainable),
        cmocka_unit_test(test_sglang_is_told_what_to_stop),
        cmocka_unit_test(test_the_others_need_no_call),
        cmocka_unit_test(test_llamacpp_streams),
    };

    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
