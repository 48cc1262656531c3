/* Replies that real servers gave (tests/fixtures/recorded). By default status 200 is a trainable sample and 400 and
 * above the engine's refusal; the table says what is otherwise, decided by reading each reply. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *path, *kind;
} kinds[] = {
    {"/completion", "llamacpp"},
    {"/v1/completions", "openai_compat"}, /* vLLM's own folder: vllm */
    {"/v1/chat/completions", "openai_compat"},
    {"/inference/v1/generate", "vllm_generate"},
};

enum special { NONE, TEXT_ONLY, FAILS };

static const struct {
    const char *name;
    enum special special;
    enum sample_failure code;
} specials[] = {
    /* several samples, where one is asked for */
    {"llama_server/n4_busy.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm/batch.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm/n4.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm/n16.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm_fp32/inference_generate.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm_processed/generate_n4_kind_2.json", FAILS, SAMPLE_INVALID_REPLY},
    {"vllm_processed/generate_n4_kind_None.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/batch.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/n4.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/n4_busy.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/v1_completions_n2.json", FAILS, SAMPLE_INVALID_REPLY},
    /* ids and log-probabilities part */
    {"llama_server/utf8_copy.json", FAILS, SAMPLE_INVALID_REPLY},
    {"llama_server/utf8_forced_plain.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/utf8_copy.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/utf8_gap_natural.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/finish_stop_me-i.json", FAILS, SAMPLE_INVALID_REPLY},
    {"xllamacpp/finish_stop_name-is.json", FAILS, SAMPLE_INVALID_REPLY},
    /* an empty prompt, answered with nothing */
    {"llama_server/err_empty_str.json", FAILS, SAMPLE_EMPTY_COMPLETION},
    /* aborted from outside */
    {"vllm_fp32/aborted_by_id.json", FAILS, SAMPLE_ENGINE_ERROR},
    {"vllm_fp32/inflight_abort.json", FAILS, SAMPLE_ENGINE_ERROR},
    /* the prompt fills the context */
    {"vllm_fp32/err_exact_ctx.json", FAILS, SAMPLE_CONTEXT_OVERFLOW},
    {"vllm_fp32/err_too_long.json", FAILS, SAMPLE_CONTEXT_OVERFLOW},
    {"vllm/finish_max_tokens0.json", FAILS,
     SAMPLE_CONTEXT_OVERFLOW}, /* what an engine that has no room for one token says */
    {"xllamacpp/err_exact_ctx.json", FAILS, SAMPLE_CONTEXT_OVERFLOW},
    /* a server that gives neither ids nor log-probabilities */
    {"transformers_serve/chat_lp.json", TEXT_ONLY, 0},
    {"transformers_serve/completion32.json", TEXT_ONLY, 0},
    {"transformers_serve/completion_lp.json", TEXT_ONLY, 0},
    {"transformers_serve/completion_text.json", TEXT_ONLY, 0},
    {"transformers_serve/completion_text2.json", TEXT_ONLY, 0},
};

/* --- one exchange -------------------------------------------------------------------------------- */

struct recorded {
    char *name; /* "vllm/n4.json" */
    json_t *json;
    const struct engine_adapter *adapter;
    int status;
    struct sample_request request;
    uint32_t *prompt_ids;
    struct body body;
    size_t special; /* place in the table, or its length */
};

static const struct engine_adapter *adapter_of(const char *name, const char *path)
{
    if (strcmp(path, "/v1/completions") == 0 && strncmp(name, "vllm", 4) == 0)
        return engine_adapter_find((struct text)TEXT_LITERAL("vllm"));
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(path, kinds[i].path) == 0)
            return engine_adapter_find(text_of(kinds[i].kind));
    return NULL;
}

/* Some recordings do not say, and one asked for none, which the service never does. */
static int64_t asked_tokens(const json_t *asked)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens", "n_predict"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (json_integer_value(json_object_get(asked, names[i])) > 0)
            return json_integer_value(json_object_get(asked, names[i]));
    return 128;
}

static void read_prompt(struct recorded *recorded, const json_t *asked)
{
    const json_t *prompt =
        json_object_get(asked, "prompt") ? json_object_get(asked, "prompt") : json_object_get(asked, "token_ids");
    size_t count = json_array_size(prompt);

    recorded->request.prompt_ids = NULL;
    recorded->request.prompt = (struct text)TEXT_LITERAL("x");
    if (!count || !json_is_integer(json_array_get(prompt, 0)))
        return;
    recorded->prompt_ids = xcalloc(count, sizeof(*recorded->prompt_ids));
    for (size_t i = 0; i < count; i++)
        recorded->prompt_ids[i] = (uint32_t)json_integer_value(json_array_get(prompt, i));
    recorded->request.prompt_ids = recorded->prompt_ids;
    recorded->request.prompt_id_count = count;
}

static void read_recorded(struct recorded *recorded, const char *path)
{
    const json_t *request, *asked, *reply;
    char *dumped;

    recorded->name = xstrdup(path + strlen(RECORDED_DIR) + 1);
    recorded->json = load_json(path);
    request = json_object_get(recorded->json, "request");
    asked = json_object_get(request, "body");
    reply = json_object_get(recorded->json, "reply");
    recorded->adapter = adapter_of(recorded->name, json_string_value(json_object_get(request, "path")));
    recorded->status = (int)json_integer_value(json_object_get(reply, "status"));
    recorded->request = plain_request();
    recorded->request.sampling.max_tokens = asked_tokens(asked);
    recorded->request.seed = (uint64_t)json_integer_value(json_object_get(asked, "seed"));
    read_prompt(recorded, asked);
    if (json_is_true(json_object_get(asked, "post_sampling_probs")))
        recorded->request.sampling.engine_options = (struct text)TEXT_LITERAL("{\"post_sampling_probs\":true}");
    dumped = json_dumps(json_object_get(reply, "body"), JSON_ENCODE_ANY | JSON_COMPACT);
    recorded->body = body_of(dumped, strlen(dumped));
    free(dumped);
    while (recorded->special < ARRAY_LENGTH(specials) && strcmp(specials[recorded->special].name, recorded->name) != 0)
        recorded->special++;
}

static enum exchange_outcome parse(const struct recorded *recorded, size_t length_bytes, struct sample *ret_sample,
                                   struct sample_error *ret_error)
{
    struct exchange exchange;
    enum exchange_outcome outcome;

    exchange_init(&exchange, recorded->adapter, &recorded->request);
    if (exchange_is_preparing(&exchange))
        exchange.step = 1; /* its prompt was tokenized elsewhere */
    outcome = parse_bytes(&exchange, recorded->status, recorded->body.data, length_bytes, ret_sample, ret_error);
    if (outcome == EXCHANGE_NEXT)
        outcome = parse_bytes(&exchange, 200, "{\"prompt\":\"x\"}", 14, ret_sample, ret_error);
    exchange_finish(&exchange);
    return outcome;
}

/* --- tests --------------------------------------------------------------------------------------- */

static void test_it_is_read_as_decided(void **state)
{
    const struct recorded *recorded = *state;
    enum special special = recorded->special < ARRAY_LENGTH(specials) ? specials[recorded->special].special : NONE;
    enum sample_failure code = special == FAILS ? specials[recorded->special].code : SAMPLE_ENGINE_ERROR;
    struct sample sample;
    struct sample_error error;
    enum exchange_outcome outcome = parse(recorded, recorded->body.length_bytes, &sample, &error);

    if (special == FAILS || recorded->status >= 400) {
        assert_int_equal(outcome, EXCHANGE_ERROR);
        if (error.code != code)
            fail_msg("%s: %s", sample_failure_names[error.code], error.message);
        return;
    }
    if (outcome != EXCHANGE_SAMPLE)
        fail_msg("%s: %s", sample_failure_names[error.code], error.message);
    assert_int_equal(sample.trainable, special != TEXT_ONLY);
    assert_int_equal(sample.id_count > 0, special != TEXT_ONLY);
    for (size_t i = 0; i < sample.id_count; i++)
        assert_true(sample.logprobs[i] <= 0 && sample.logprobs[i] > -9999);
    if (strcmp(recorded->name, "vllm_fp32/inflight_keep.json") == 0) /* its weights were swapped on the way */
        assert_int_equal(sample.segment_count, 2);
    sample_finish(&sample);
}

static void test_cut_anywhere_it_is_an_error(void **state)
{
    const struct recorded *recorded = *state;
    struct sample sample;
    struct sample_error error;
    size_t step = recorded->body.length_bytes / 400 + 1;

    for (size_t length = 0; length < recorded->body.length_bytes; length += step)
        assert_int_equal(parse(recorded, length, &sample, &error), EXCHANGE_ERROR);
}

static void forget_recorded(struct recorded *recorded)
{
    free(recorded->name);
    free(recorded->prompt_ids);
    free(recorded->body.data);
    json_decref(recorded->json);
}

static size_t read_folder(const char *folder, struct recorded *recorded, size_t used)
{
    size_t count;
    char *path = xasprintf("%s/%s", RECORDED_DIR, folder), **names = list_files(path, ".json", &count);

    for (size_t i = 0; i < count; i++) {
        recorded[used] = (struct recorded){.name = NULL};
        read_recorded(&recorded[used], names[i]);
        if (recorded[used].adapter &&
            json_is_object(json_object_get(json_object_get(recorded[used].json, "request"), "body")))
            used++;
        else
            forget_recorded(&recorded[used]);
        free(names[i]);
    }
    free(names);
    free(path);
    return used;
}

int main(void)
{
    static const char *const folders[] = {"llama_server", "transformers_serve", "vllm",
                                          "vllm_fp32",    "vllm_processed",     "xllamacpp"};
    static struct recorded recorded[256];
    static struct CMUnitTest tests[2 * ARRAY_LENGTH(recorded)];
    size_t count = 0;
    int failed;

    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++)
        count = read_folder(folders[i], recorded, count);
    for (size_t i = 0; i < count; i++) {
        tests[2 * i] = (struct CMUnitTest){.name = xasprintf("%s is read as decided", recorded[i].name),
                                           .test_func = test_it_is_read_as_decided,
                                           .initial_state = &recorded[i]};
        tests[2 * i + 1] = (struct CMUnitTest){.name = xasprintf("%s cut anywhere is an error", recorded[i].name),
                                               .test_func = test_cut_anywhere_it_is_an_error,
                                               .initial_state = &recorded[i]};
    }
    failed = _cmocka_run_group_tests("recorded", tests, 2 * count, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)tests[2 * i].name);
        free((char *)(uintptr_t)tests[2 * i + 1].name);
        forget_recorded(&recorded[i]);
    }
    return failed;
}
