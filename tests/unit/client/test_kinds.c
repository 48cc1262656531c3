/* The table of kinds, and what a probe asks each of them. */
#include "client/probe/dialogue.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

static const struct engine_adapter *kind_of(const char *name)
{
    return engine_adapter_find(text_of(name));
}

static void test_each_name_of_the_table_finds_the_adapter_of_its_row(void **state)
{
    size_t count = 0;

    (void)state;
    for (; engine_kinds[count]; count++) {
        assert_string_equal(engine_adapters[count]->kind, engine_kinds[count]);
        assert_ptr_equal(kind_of(engine_kinds[count]), engine_adapters[count]);
    }
    assert_null(engine_adapters[count]);
    assert_null(kind_of("vll"));
}

static void test_a_scorer_alone_samples_nothing(void **state)
{
    struct sample_request request = {.prompt = TEXT_LITERAL("x"), .sampling = {.max_tokens = 1, .temperature = 1}};
    struct exchange exchange;
    struct engine_call call;
    struct sample_error error;

    (void)state;
    for (size_t i = 0; engine_kinds[i]; i++)
        assert_int_equal(engine_kind_samples(engine_kinds[i]), strcmp(engine_kinds[i], "scorer") != 0);
    assert_true(engine_kind_samples(NULL));
    exchange_init(&exchange, kind_of("scorer"), &request);
    assert_false(exchange_build(&exchange, &call, &error));
    assert_int_equal(error.code, SAMPLE_ENGINE_ERROR);
    assert_false(error.retryable);
    assert_string_equal(error.message, "an engine of kind scorer samples nothing");
    exchange_finish(&exchange);
}

/* --- GETs ----------------------------------------------------------------------------------------- */

/* The requests to a server that knows one path alone: their paths, with a blank between. */
static void ask(const char *kind, const char *known_path, const char *body, char *ret_paths, size_t size)
{
    struct probe_rules rules = {.adapter = kind ? kind_of(kind) : NULL, .url = "http://a"};
    struct engine_call call;
    struct probe probe;
    bool more = true;

    ret_paths[0] = '\0';
    probe_init(&probe, &rules);
    while (more && probe_build(&probe, &call)) {
        bool known = known_path && strcmp(call.path, known_path) == 0;
        struct engine_reply reply = {.status = known ? 200 : 404, .body = text_of(known ? body : "{}")};

        assert_string_equal(call.method, "GET");
        strncat(ret_paths, ret_paths[0] ? " " : "", size - strlen(ret_paths) - 1);
        strncat(ret_paths, call.path, size - strlen(ret_paths) - 1);
        engine_call_finish(&call);
        more = probe_take(&probe, &reply, NULL);
    }
    probe_finish(&probe);
}

static void test_a_kind_is_asked_its_own_gets_until_none_is_left(void **state)
{
    static const struct {
        const char *kind, *paths;
    } rows[] = {
        {"vllm", "/version /v1/models /weight_info /health"},
        {"vllm_generate", "/version /v1/models /weight_info /health"},
        {"sglang", "/model_info /v1/models /get_model_info /health"},
        {"llamacpp", "/props /v1/models /health"},
        {"openai_compat", "/v1/models /health"},
        {NULL, "/version /model_info /props /v1/models"},
    };
    char paths[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        ask(rows[i].kind, NULL, NULL, paths, sizeof(paths));
        assert_string_equal(paths, rows[i].paths);
    }
}

static void test_an_engine_that_has_shown_its_kind_is_spared_the_last_resorts(void **state)
{
    static const struct {
        const char *path, *body, *paths;
    } rows[] = {
        {"/version", "{\"version\":\"0.32.0\"}", "/version /v1/models /weight_info"},
        {"/model_info", "{\"model_path\":\"m\"}", "/version /model_info /v1/models"},
        {"/props", "{\"total_slots\":4}", "/version /model_info /props"},
        {"/v1/models", "{\"object\":\"list\",\"data\":[]}", "/version /model_info /props /v1/models"},
        /* many services have a version beside something else */
        {"/version", "{\"version\":\"7\",\"name\":\"shop\"}", "/version /v1/models /weight_info /health"},
    };
    char paths[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        ask(NULL, rows[i].path, rows[i].body, paths, sizeof(paths));
        assert_string_equal(paths, rows[i].paths);
    }
}

/* --- POSTs ---------------------------------------------------------------------------------------- */

struct asked {
    char first_path[64], last_path[64]; /* of the POSTs; "": there was none */
    json_t *first, *last;
};

static void keep(json_t **kept, char path[64], const struct engine_call *call)
{
    json_decref(*kept);
    *kept = json_loadb(call->body.data, call->body.length_bytes, 0, NULL);
    assert_non_null(*kept);
    snprintf(path, 64, "%s", call->path);
}

/* Every GET is a list of models, which shows an engine of any kind; every POST gives tokens and a text, and no sample
 * that can be read. So the probe puts all its questions. */
static struct asked ask_for_samples(const char *kind)
{
    struct probe_rules rules = {.adapter = kind_of(kind), .url = "http://a", .ask_tokens = true, .ask_samples = true};
    struct asked asked = {.first = NULL};
    struct engine_call call;
    struct probe probe;
    bool more = true;

    probe_init(&probe, &rules);
    while (more && probe_build(&probe, &call)) {
        bool is_get = strcmp(call.method, "GET") == 0;
        struct engine_reply reply = {.status = 200,
                                     .body = text_of(is_get ? "{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}"
                                                            : "{\"tokens\":[5,6,7],\"prompt\":\"x\"}")};

        if (!is_get && !asked.first)
            keep(&asked.first, asked.first_path, &call);
        if (!is_get)
            keep(&asked.last, asked.last_path, &call);
        engine_call_finish(&call);
        more = probe_take(&probe, &reply, NULL);
    }
    engine_call_finish(&call);
    probe_finish(&probe);
    return asked;
}

static void finish(struct asked *asked)
{
    json_decref(asked->first);
    json_decref(asked->last);
}

static void test_a_kind_with_a_tokenizer_is_asked_for_tokens_without_special_ones(void **state)
{
    static const struct {
        const char *kind, *text_key, *special_key;
    } rows[] = {
        {"vllm", "prompt", "add_special_tokens"},
        {"vllm_generate", "prompt", "add_special_tokens"},
        {"sglang", "prompt", "add_special_tokens"},
        {"llamacpp", "content", "add_special"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct asked asked = ask_for_samples(rows[i].kind);

        assert_string_equal(asked.first_path, "/tokenize");
        assert_true(json_is_string(json_object_get(asked.first, rows[i].text_key)));
        assert_true(json_is_false(json_object_get(asked.first, rows[i].special_key)));
        assert_int_equal(json_object_size(asked.first), 3);
        assert_string_equal(json_string_value(json_object_get(asked.first, "model")), "m");
        finish(&asked);
    }
    struct asked asked = ask_for_samples("openai_compat");
    assert_string_equal(asked.first_path, "/v1/completions");
    finish(&asked);
}

static void test_the_last_question_asks_for_two_samples_in_the_words_of_the_kind(void **state)
{
    static const struct {
        const char *kind, *path, *prompt_key, *max_tokens_key;
        bool nested;
    } rows[] = {
        {"vllm", "/v1/completions", "prompt", "max_tokens", false},
        {"openai_compat", "/v1/completions", "prompt", "max_tokens", false},
        {"sglang", "/generate", "text", "max_new_tokens", true},
        {"llamacpp", "/completion", "prompt", "n_predict", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct asked asked = ask_for_samples(rows[i].kind);
        json_t *sampling = rows[i].nested ? json_object_get(asked.last, "sampling_params") : asked.last;

        assert_string_equal(asked.last_path, rows[i].path);
        assert_true(json_is_string(json_object_get(asked.last, rows[i].prompt_key)));
        assert_string_equal(json_string_value(json_object_get(asked.last, "model")), "m");
        assert_int_equal(json_integer_value(json_object_get(sampling, "n")), 2);
        assert_int_equal(json_integer_value(json_object_get(sampling, rows[i].max_tokens_key)), 1);
        assert_true(json_number_value(json_object_get(sampling, "temperature")) == 1);
        assert_int_equal(json_object_size(asked.last) + (rows[i].nested ? json_object_size(sampling) : 0),
                         rows[i].nested ? 6 : 5);
        finish(&asked);
    }
}

static void test_a_kind_that_gives_one_sample_a_request_is_not_asked_for_two(void **state)
{
    struct asked asked = ask_for_samples("vllm_generate");

    (void)state;
    assert_string_equal(asked.last_path, "/inference/v1/generate");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(asked.last, "sampling_params"), "n")), 1);
    finish(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_name_of_the_table_finds_the_adapter_of_its_row),
        cmocka_unit_test(test_a_scorer_alone_samples_nothing),
        cmocka_unit_test(test_a_kind_is_asked_its_own_gets_until_none_is_left),
        cmocka_unit_test(test_an_engine_that_has_shown_its_kind_is_spared_the_last_resorts),
        cmocka_unit_test(test_a_kind_with_a_tokenizer_is_asked_for_tokens_without_special_ones),
        cmocka_unit_test(test_the_last_question_asks_for_two_samples_in_the_words_of_the_kind),
        cmocka_unit_test(test_a_kind_that_gives_one_sample_a_request_is_not_asked_for_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
