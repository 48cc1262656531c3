/* Requests to each kind of engine, step by step. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const struct engine_adapter *kind(const char *name)
{
    return engine_adapter_find(text_of(name));
}

static void assert_integer(const json_t *body, const char *key, long long want)
{
    const json_t *value = json_object_get(body, key);

    if (!json_is_integer(value) || json_integer_value(value) != want)
        fail_msg("%s is %lld, not the integer %lld", key, (long long)json_integer_value(value), want);
}

static void assert_number(const json_t *body, const char *key, double want)
{
    const json_t *value = json_object_get(body, key);

    assert_true(json_is_number(value));
    assert_true(json_number_value(value) == want);
}

static void assert_true_member(const json_t *body, const char *key)
{
    if (!json_is_true(json_object_get(body, key)))
        fail_msg("%s is not true", key);
}

/* One reply of status 200 that must lead to the next step. */
static void answer(struct exchange *exchange, const char *reply)
{
    struct sample sample;
    struct sample_error error;

    assert_int_equal(parse_bytes(exchange, 200, reply, strlen(reply), &sample, &error), EXCHANGE_NEXT);
}

/* --- vLLM ---------------------------------------------------------------------------------------- */

static void test_vllm_is_told_every_sampling_parameter(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    const char *path;
    json_t *body;

    (void)state;
    exchange_init(&exchange, kind("vllm"), &request);
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/v1/completions");
    assert_integer(body, "n", 1);
    assert_integer(body, "max_tokens", 16);
    assert_number(body, "temperature", 1);
    assert_number(body, "top_p", 1);
    assert_integer(body, "top_k", 0);
    assert_number(body, "min_p", 0);
    assert_number(body, "repetition_penalty", 1);
    assert_number(body, "presence_penalty", 0);
    assert_number(body, "frequency_penalty", 0);
    assert_integer(body, "logprobs", 0);
    assert_null(json_object_get(body, "top_logprobs"));
    assert_true_member(body, "return_token_ids");
    assert_true_member(body, "return_tokens_as_token_ids");
    assert_int_equal(json_array_size(json_object_get(body, "prompt")), 4);
    assert_false(exchange_is_preparing(&exchange));
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_seeds_of_63_bits_arrive_exactly(void **state)
{
    static const uint64_t seeds[] = {UINT64_C(6557950233363098016), UINT64_C(9223372036854775807),
                                     UINT64_C(9007199254740993), 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(seeds); i++) {
        struct sample_request request = plain_request();
        struct exchange exchange;
        json_t *body;

        request.seed = seeds[i];
        exchange_init(&exchange, kind("vllm"), &request);
        body = built_body(&exchange, NULL);
        assert_integer(body, "seed", (long long)seeds[i]);
        json_decref(body);
        exchange_finish(&exchange);
        exchange_init(&exchange, kind("llamacpp"), &request);
        body = built_body(&exchange, NULL);
        assert_integer(body, "seed", (long long)(seeds[i] & 0x7fffffff));
        json_decref(body);
        exchange_finish(&exchange);
    }
}

static void test_a_text_prompt_gets_its_special_tokens_from_vllm(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    json_t *body;

    (void)state;
    request.prompt_ids = NULL;
    request.prompt = (struct text){"a\0b", 3};
    exchange_init(&exchange, kind("vllm"), &request);
    body = built_body(&exchange, NULL);
    assert_int_equal(json_string_length(json_object_get(body, "prompt")), 3);
    assert_true_member(body, "add_special_tokens");
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_a_chat_is_rendered_to_ids_before_vllm_completes_it(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    const char *path;
    json_t *body;

    (void)state;
    request.prompt_ids = NULL;
    request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"hi\"}]");
    request.sampling.chat_template_kwargs = (struct text)TEXT_LITERAL("{\"enable_thinking\":false}");
    exchange_init(&exchange, kind("vllm"), &request);
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/tokenize");
    assert_true(exchange_is_preparing(&exchange));
    assert_int_equal(json_array_size(json_object_get(body, "messages")), 1);
    assert_true(json_is_false(json_object_get(json_object_get(body, "chat_template_kwargs"), "enable_thinking")));
    json_decref(body);
    answer(&exchange, "{\"count\":2,\"max_model_len\":2048,\"tokens\":[5,6],\"token_strs\":null}");
    assert_int_equal(exchange.prompt_id_count, 2);
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/v1/completions");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(body, "prompt"), 1)), 6);
    assert_false(exchange_is_preparing(&exchange));
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_without_a_tokenize_route_the_chat_route_is_asked(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;
    const char *path;
    json_t *body;

    (void)state;
    request.prompt_ids = NULL;
    request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"hi\"}]");
    exchange_init(&exchange, kind("vllm"), &request);
    assert_int_equal(parse_bytes(&exchange, 404, "{}", 2, &sample, &error), EXCHANGE_NEXT);
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/v1/chat/completions");
    assert_true_member(body, "logprobs");
    assert_true_member(body, "return_token_ids");
    json_decref(body);
    exchange_finish(&exchange);
}

/* --- llama.cpp ----------------------------------------------------------------------------------- */

static void test_llamacpp_renders_tokenizes_and_completes(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    const char *path;
    json_t *body;

    (void)state;
    request.prompt_ids = NULL;
    request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"hi\"}]");
    exchange_init(&exchange, kind("llamacpp"), &request);
    json_decref(built_body(&exchange, &path));
    assert_string_equal(path, "/apply-template");
    answer(&exchange, "{\"prompt\":\"<user>hi\"}");
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/tokenize");
    assert_string_equal(json_string_value(json_object_get(body, "content")), "<user>hi");
    assert_true_member(body, "add_special");
    assert_true_member(body, "parse_special");
    json_decref(body);
    answer(&exchange, "{\"tokens\":[1,9,9]}");
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/completion");
    assert_int_equal(json_array_size(json_object_get(body, "prompt")), 3);
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_llamacpp_samples_without_filters_unless_asked(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    json_t *body, *samplers;

    (void)state;
    exchange_init(&exchange, kind("llamacpp"), &request);
    body = built_body(&exchange, NULL);
    samplers = json_object_get(body, "samplers");
    assert_int_equal(json_array_size(samplers), 1);
    assert_string_equal(json_string_value(json_array_get(samplers, 0)), "temperature");
    assert_integer(body, "n_probs", 1);
    assert_true_member(body, "return_tokens");
    json_decref(body);
    request.sampling.top_k = 5;
    request.sampling.min_p = 0.1;
    body = built_body(&exchange, NULL);
    assert_int_equal(json_array_size(json_object_get(body, "samplers")), 3);
    assert_integer(body, "top_k", 5);
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_a_request_beyond_the_engine_is_refused_before_it_is_sent(void **state)
{
    static const uint32_t stop_ids[] = {2};
    struct sample_request request = plain_request();
    struct exchange exchange;
    struct engine_call call;
    struct sample_error error;

    (void)state;
    request.sampling.stop_token_ids = stop_ids;
    request.sampling.stop_token_id_count = 1;
    exchange_init(&exchange, kind("llamacpp"), &request);
    assert_false(exchange_build(&exchange, &call, &error));
    assert_int_equal(error.code, SAMPLE_ENGINE_ERROR);
    assert_false(error.retryable);
    exchange_finish(&exchange);
}

/* --- the others ---------------------------------------------------------------------------------- */

static void test_a_request_that_would_be_too_large_is_not_built(void **state)
{
    struct sample_request request = plain_request();
    size_t length_bytes = ENGINE_CALL_BODY_BYTES;
    char *prompt = malloc(length_bytes);
    struct exchange exchange;
    struct engine_call call;
    struct sample_error error;

    (void)state;
    assert_non_null(prompt);
    memset(prompt, 'a', length_bytes);
    request.prompt_ids = NULL;
    request.prompt_id_count = 0;
    request.prompt = (struct text){prompt, length_bytes};
    exchange_init(&exchange, kind("vllm"), &request);
    assert_false(exchange_build(&exchange, &call, &error));
    assert_int_equal(error.code, SAMPLE_CONTEXT_OVERFLOW);
    assert_false(error.retryable);
    exchange_finish(&exchange);
    free(prompt);
}

static void test_sglang_has_its_parameters_in_an_object_of_their_own(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    const char *path;
    json_t *body, *sampling;

    (void)state;
    request.sampling.engine_options = (struct text)TEXT_LITERAL("{\"repetition_penalty\":1.5}");
    exchange_init(&exchange, kind("sglang"), &request);
    body = built_body(&exchange, &path);
    sampling = json_object_get(body, "sampling_params");
    assert_string_equal(path, "/generate");
    assert_integer(sampling, "top_k", -1);
    assert_integer(sampling, "max_new_tokens", 16);
    assert_number(sampling, "repetition_penalty", 1.5);
    assert_true_member(body, "return_logprob");
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_vllm_generate_asks_for_the_text_afterwards(void **state)
{
    static const char ids[] =
        "{\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"stop_reason\":null,\"token_ids\":[8,9,2],"
        "\"logprobs\":{\"content\":[{\"token_id\":8,\"logprob\":-1},{\"token_id\":9,\"logprob\":-2},"
        "{\"token_id\":2,\"logprob\":-0.5}]},"
        "\"weight_versions\":[{\"version\":\"step-1\",\"start\":0,\"end\":1},{\"version\":\"step-2\",\"start\":1,"
        "\"end\":3}]}]}";
    struct sample_request request = plain_request();
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;
    const char *path;
    json_t *body;

    (void)state;
    exchange_init(&exchange, kind("vllm_generate"), &request);
    json_decref(built_body(&exchange, &path));
    assert_string_equal(path, "/inference/v1/generate");
    answer(&exchange, ids);
    body = built_body(&exchange, &path);
    assert_string_equal(path, "/detokenize");
    assert_int_equal(json_array_size(json_object_get(body, "tokens")), 2); /* the end of sequence is no text */
    json_decref(body);
    assert_int_equal(parse_bytes(&exchange, 200, "{\"prompt\":\" 4\"}", 15, &sample, &error), EXCHANGE_SAMPLE);
    assert_true(text_equals(sample.text, " 4"));
    assert_true(text_equals(sample.engine_revision, "step-2"));
    assert_int_equal(sample.segment_count, 2);
    assert_int_equal(sample.id_count, 3);
    assert_true(sample.eos_in_ids);
    sample_finish(&sample);
    exchange_finish(&exchange);
}

/* --- engine_options ------------------------------------------------------------------------------ */

static void test_engine_options_are_handed_over_and_win_over_our_defaults(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;
    json_t *body;

    (void)state;
    request.sampling.engine_options = (struct text)TEXT_LITERAL(
        "{\"repetition_penalty\": 1.1, \"logit_bias\": {\"5\": -100}, \"x\\u0041\": [1, 2.50]}");
    exchange_init(&exchange, kind("vllm"), &request);
    body = built_body(&exchange, NULL); /* refuses a name that is there twice */
    assert_number(body, "repetition_penalty", 1.1);
    assert_integer(json_object_get(body, "logit_bias"), "5", -100);
    json_decref(body);
    exchange_finish(&exchange);
}

static void test_engine_options_may_not_say_what_the_service_says(void **state)
{
    struct text name;

    (void)state;
    assert_true(engine_options_check((struct text)TEXT_LITERAL("{\"repetition_penalty\":1.1}"), &name));
    assert_false(engine_options_check((struct text)TEXT_LITERAL("{\"a\":1,\"seed\":1}"), &name));
    assert_true(text_equals(name, "seed"));
    assert_false(engine_options_check((struct text)TEXT_LITERAL("{\"se\\u0065d\":1}"), &name));
    assert_false(engine_options_check((struct text)TEXT_LITERAL("[1]"), &name));
    assert_null(name.data);
    assert_false(engine_options_check((struct text)TEXT_LITERAL("{\"a\":1"), &name));
}

static void test_stops_and_salt_are_sent_where_set(void **state)
{
    static const struct text stops[] = {{"\n\n", 2}, {"#", 1}};
    static const uint32_t ids[] = {2, 7};
    struct sample_request request = plain_request();
    struct exchange exchange;
    json_t *body;

    (void)state;
    request.sampling.stop = stops;
    request.sampling.stop_count = 2;
    request.sampling.stop_token_ids = ids;
    request.sampling.stop_token_id_count = 2;
    request.cache_salt = (struct text)TEXT_LITERAL("arith-12");
    request.request_id = (struct text)TEXT_LITERAL("r-1");
    exchange_init(&exchange, kind("vllm"), &request);
    body = built_body(&exchange, NULL);
    assert_string_equal(json_string_value(json_array_get(json_object_get(body, "stop"), 0)), "\n\n");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(body, "stop_token_ids"), 1)), 7);
    assert_string_equal(json_string_value(json_object_get(body, "cache_salt")), "arith-12");
    assert_string_equal(json_string_value(json_object_get(body, "request_id")), "r-1");
    json_decref(body);
    exchange_finish(&exchange);
}

/* --- F04: every request says each thing once --------------------------------------------------------- */

/* All fields that an adapter sends by default and an option may replace. */
#define SOFT                                                                                                           \
    "{\"repetition_penalty\":1.5,\"repeat_penalty\":1.5,\"presence_penalty\":1,\"frequency_penalty\":1,"               \
    "\"ignore_eos\":true,\"min_tokens\":1,\"min_new_tokens\":1,\"skip_special_tokens\":false,"                         \
    "\"separate_reasoning\":true,\"typical_p\":0.5,\"dynatemp_range\":1,\"mirostat\":1,\"cache_prompt\":false,"        \
    "\"samplers\":[],\"chat_template\":\"t\",\"zzz\":7}"

static struct sample_request full_request(int form)
{
    static const uint32_t ids[] = {77};
    struct sample_request request = plain_request();

    if (form > 0) {
        request.prompt_ids = NULL;
        request.prompt_id_count = 0;
    }
    if (form == 1)
        request.prompt = (struct text)TEXT_LITERAL("2+2=");
    if (form == 2) {
        request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"x\"}]");
        request.tools = (struct text)TEXT_LITERAL("[{\"type\":\"function\"}]");
        request.sampling.chat_template_kwargs = (struct text)TEXT_LITERAL("{\"a\":1}");
    }
    request.sampling.stop_token_ids = ids;
    request.sampling.stop_token_id_count = 1;
    request.sampling.top_k = 5;
    request.sampling.min_p = 0.25;
    request.sampling.engine_options = (struct text)TEXT_LITERAL(SOFT);
    request.cache_salt = request.request_id = (struct text)TEXT_LITERAL("r-1");
    return request;
}

/* A field that the service sends must be refused as an option: it would stand there twice. */
static void check_names(const char *who, const json_t *body, const json_t *options)
{
    const char *name;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)body, name, value) {
        struct text offending;
        char *option = xasprintf("{\"%s\":1}", name);

        if (strcmp(name, "sampling_params") == 0)
            check_names(who, value, options);
        if (!json_object_get(options, name) && engine_options_check(text_of(option), &offending))
            fail_msg("%s says %s, and so may engine_options", who, name);
        free(option);
    }
}

static bool asks_for_tokens(const char *path)
{
    return strcmp(path, "/tokenize") != 0 && strcmp(path, "/detokenize") != 0 && strcmp(path, "/apply-template") != 0;
}

/* built_body() refuses names that stand twice. */
static void test_no_request_says_a_thing_twice_whatever_the_options_are(void **state)
{
    static const struct {
        const char *kind;
        int steps[3]; /* of an exchange, beside the first, by the form of the prompt */
    } kinds[] = {
        {"vllm", {0, 0, 2}},     {"vllm_generate", {1, 2, 2}}, {"sglang", {0, 0, 0}},
        {"llamacpp", {0, 1, 2}}, {"openai_compat", {0, 0, 0}},
    };
    json_t *options = json_loads(SOFT, 0, NULL);
    const char *path;

    (void)state;
    for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++)
        for (int form = 0; form < 3; form++) {
            struct sample_request request = full_request(form);
            struct exchange exchange;

            if (strcmp(kinds[k].kind, "llamacpp") == 0)
                request.sampling.stop_token_id_count = 0;
            exchange_init(&exchange, kind(kinds[k].kind), &request);
            for (exchange.step = 0; exchange.step <= kinds[k].steps[form]; exchange.step++) {
                json_t *body = built_body(&exchange, &path);

                if (asks_for_tokens(path))
                    check_names(kinds[k].kind, body, options);
                json_decref(body);
            }
            exchange_finish(&exchange);
        }
    json_decref(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vllm_is_told_every_sampling_parameter),
        cmocka_unit_test(test_seeds_of_63_bits_arrive_exactly),
        cmocka_unit_test(test_a_text_prompt_gets_its_special_tokens_from_vllm),
        cmocka_unit_test(test_a_chat_is_rendered_to_ids_before_vllm_completes_it),
        cmocka_unit_test(test_without_a_tokenize_route_the_chat_route_is_asked),
        cmocka_unit_test(test_llamacpp_renders_tokenizes_and_completes),
        cmocka_unit_test(test_llamacpp_samples_without_filters_unless_asked),
        cmocka_unit_test(test_a_request_beyond_the_engine_is_refused_before_it_is_sent),
        cmocka_unit_test(test_a_request_that_would_be_too_large_is_not_built),
        cmocka_unit_test(test_sglang_has_its_parameters_in_an_object_of_their_own),
        cmocka_unit_test(test_vllm_generate_asks_for_the_text_afterwards),
        cmocka_unit_test(test_engine_options_are_handed_over_and_win_over_our_defaults),
        cmocka_unit_test(test_engine_options_may_not_say_what_the_service_says),
        cmocka_unit_test(test_stops_and_salt_are_sent_where_set),
        cmocka_unit_test(test_no_request_says_a_thing_twice_whatever_the_options_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
