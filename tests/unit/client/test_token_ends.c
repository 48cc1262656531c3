/* Where the tokens of a sample end in its text, and the question for the text of ids. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "client/adapters/detokenize.h"

/* llama.cpp's reply with three tokens, each with its `bytes`. */
static void parse_llama(const char *text, const char *const bytes[3], bool wanted, struct sample *ret_sample)
{
    struct sample_request request = plain_request();
    struct sample_error error;
    struct exchange exchange;
    char *reply = xasprintf(
        "{\"content\":\"%s\",\"tokens\":[812,13,2],\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":3,"
        "\"tokens_evaluated\":4,\"completion_probabilities\":[{\"id\":812,\"bytes\":%s,\"logprob\":-0.5},"
        "{\"id\":13,\"bytes\":%s,\"logprob\":-1.5},{\"id\":2,\"bytes\":%s,\"logprob\":-0.25}]}",
        text, bytes[0], bytes[1], bytes[2]);

    request.wants_token_ends = wanted;
    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("llamacpp")), &request);
    assert_int_equal(parse_bytes(&exchange, 200, reply, strlen(reply), ret_sample, &error), EXCHANGE_SAMPLE);
    exchange_finish(&exchange);
    free(reply);
}

static void expect_ends(const char *text, const char *const bytes[3], const uint32_t expected[3])
{
    struct sample sample;

    parse_llama(text, bytes, true, &sample);
    assert_non_null(sample.token_ends);
    assert_memory_equal(sample.token_ends, expected, 3 * sizeof *expected);
    sample_finish(&sample);
}

static void expect_none(const char *text, const char *const bytes[3], bool wanted)
{
    struct sample sample;

    parse_llama(text, bytes, wanted, &sample);
    assert_null(sample.token_ends);
    sample_finish(&sample);
}

static void test_tokens_end_behind_their_bytes(void **state)
{
    (void)state;
    expect_ends(" 4.", (const char *[]){"[32,52]", "[46]", "[]"}, (const uint32_t[]){2, 3, 3});
    /* tokens that split a character */
    expect_ends("\xc3\xa9", (const char *[]){"[195]", "[169]", "[]"}, (const uint32_t[]){1, 2, 2});
}

static void test_a_text_that_was_cut_keeps_the_ends_of_all_ids(void **state)
{
    (void)state;
    expect_ends(" 4", (const char *[]){"[32,52]", "[46]", "[]"}, (const uint32_t[]){2, 3, 3});
}

static void test_bytes_that_do_not_spell_the_text_say_nothing(void **state)
{
    (void)state;
    expect_none("4.", (const char *[]){"[32,52]", "[46]", "[]"}, true);
    expect_none(" 4. ", (const char *[]){"[32,52]", "[46]", "[]"}, true);
    expect_none(" 4.", (const char *[]){"[32,52]", "null", "[46]"}, true);
    expect_none(" 4.", (const char *[]){"[32,52]", "[46]", "[256]"}, true);
    expect_none(" 4.", (const char *[]){"[32,52]", "\".\"", "[]"}, true);
    expect_none(" 4.", (const char *[]){"[32,52]", "[46]", "[[]]"}, true);
}

static void test_they_are_read_only_where_they_are_wanted(void **state)
{
    (void)state;
    expect_none(" 4.", (const char *[]){"[32,52]", "[46]", "[]"}, false);
}

static const struct engine_adapter *adapter_of(const char *kind)
{
    return engine_adapter_find(text_of(kind));
}

static void test_each_kind_is_asked_for_the_text_of_ids_in_its_words(void **state)
{
    static const uint32_t ids[] = {812, 13};
    static const struct {
        const char *kind, *body;
    } asked[] = {
        {"vllm", "{\"model\":\"m\",\"tokens\":[812,13]}"},
        {"vllm_generate", "{\"model\":\"m\",\"tokens\":[812,13]}"},
        {"sglang", "{\"model\":\"m\",\"tokens\":[812,13]}"},
        {"llamacpp", "{\"tokens\":[812,13]}"},
    };
    struct engine_call call;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(asked); i++) {
        assert_true(detokenize_build(adapter_of(asked[i].kind), (struct text)TEXT_LITERAL("m"), ids, 2, &call));
        assert_string_equal(call.path, "/detokenize");
        assert_true(text_equals(buffer_text(&call.body), asked[i].body));
        engine_call_finish(&call);
    }
    assert_false(detokenize_build(adapter_of("openai_compat"), TEXT_NONE, ids, 2, &call));
}

static bool reads(const char *kind, const char *body, const char *expected)
{
    struct body copy = body_of(body, strlen(body));
    struct buffer text;

    buffer_init(&text, 64);
    bool found = detokenize_read(adapter_of(kind), (struct text){copy.data, copy.length_bytes}, &text);
    if (found)
        assert_true(text_equals(buffer_text(&text), expected));
    buffer_finish(&text);
    free(copy.data);
    return found;
}

static void test_the_text_is_read_from_its_place_or_not_at_all(void **state)
{
    (void)state;
    assert_true(reads("vllm", "{\"prompt\":\"ok\\n\"}", "ok\n"));
    assert_true(reads("llamacpp", "{\"more\":[1],\"content\":\"\"}", ""));
    assert_true(reads("sglang", "{\"text\":\"a\"}", "a"));
    assert_false(reads("vllm", "{\"content\":\"ok\"}", NULL));
    assert_false(reads("vllm", "{\"prompt\":7}", NULL));
    assert_false(reads("vllm", "{\"prompt\":\"a\"", NULL));
    assert_false(reads("vllm", "", NULL));
    assert_false(
        reads("vllm", "{\"prompt\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_end_behind_their_bytes),
        cmocka_unit_test(test_a_text_that_was_cut_keeps_the_ends_of_all_ids),
        cmocka_unit_test(test_bytes_that_do_not_spell_the_text_say_nothing),
        cmocka_unit_test(test_they_are_read_only_where_they_are_wanted),
        cmocka_unit_test(test_each_kind_is_asked_for_the_text_of_ids_in_its_words),
        cmocka_unit_test(test_the_text_is_read_from_its_place_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
