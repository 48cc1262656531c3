/* Every fixture of tests/cases/engines that belongs to a kind we have: whole, cut at every byte, and with a sample too
 * many. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *engine, *path, *kind;
} kinds[] = {
    {"vllm", "/v1/completions", "vllm"},
    {"vllm", "/v1/chat/completions", "openai_compat"},
    {"vllm", "/inference/v1/generate", "vllm_generate"},
    {"proxy", "/v1/completions", "vllm"},
    {"sglang", "/generate", "sglang"},
    {"sglang", "/v1/completions", "openai_compat"},
    {"llamacpp", "/completion", "llamacpp"},
    {"llamacpp", "/v1/completions", "openai_compat"},
    {"llamacpppy", "/v1/completions", "openai_compat"},
    {"openai", "/v1/chat/completions", "openai_compat"},
};

/* The codes that each class of error and each defect of a sample may become. */
static const struct {
    const char *word;
    enum sample_failure code;
} meanings[] = {
    {"too_long", SAMPLE_CONTEXT_OVERFLOW},
    {"bad_request", SAMPLE_ENGINE_ERROR},
    {"auth", SAMPLE_ENGINE_ERROR},
    {"not_found", SAMPLE_ENGINE_ERROR},
    {"quota", SAMPLE_ENGINE_ERROR},
    {"overloaded", SAMPLE_ENGINE_OVERLOADED},
    {"not_ready", SAMPLE_ENGINE_OVERLOADED},
    {"engine_fault", SAMPLE_ENGINE_ERROR},
    {"ids_logprobs_length", SAMPLE_INVALID_REPLY},
    {"logprobs_all_zero", SAMPLE_INVALID_REPLY},
    {"tokens_lost", SAMPLE_INVALID_REPLY},
    {"logprob_null", SAMPLE_NON_FINITE_LOGPROB},
    {"logprob_floor", SAMPLE_NON_FINITE_LOGPROB},
    {"nan_replaced", SAMPLE_NON_FINITE_LOGPROB},
    {"aborted", SAMPLE_ENGINE_ERROR},
};

static const struct engine_adapter *adapter_of(const json_t *fixture)
{
    const char *engine = json_string_value(json_object_get(fixture, "engine")),
               *path = json_string_value(json_object_get(fixture, "path"));

    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(engine, kinds[i].engine) == 0 && strcmp(path, kinds[i].path) == 0)
            return engine_adapter_find(text_of(kinds[i].kind));
    return NULL;
}

static bool is_stream(const json_t *fixture)
{
    const char *type = json_string_value(json_object_get(json_object_get(fixture, "headers"), "content-type"));

    return type && strncmp(type, "text/event-stream", 17) == 0;
}

static bool belongs_here(const json_t *fixture)
{
    return adapter_of(fixture) && strcmp(json_string_value(json_object_get(fixture, "method")), "POST") == 0;
}

/* --- the bytes ----------------------------------------------------------------------------------- */

static json_t *choices_of(json_t *body)
{
    return json_is_array(body) ? body : json_object_get(body, "choices");
}

/* Only the sample at `place`, as one asked for alone would have come. */
static json_t *pick(const json_t *fixture, size_t place)
{
    json_t *body = json_deep_copy(json_object_get(fixture, "body"));
    json_t *chosen = json_deep_copy(json_array_get(choices_of(body), place));
    const json_t *samples = json_object_get(json_object_get(fixture, "expect"), "samples");
    json_t *usage = json_object_get(body, "usage");

    if (json_is_array(body)) {
        json_decref(body);
        return chosen;
    }
    json_object_set_new(chosen, "index", json_integer(0));
    json_array_clear(json_object_get(body, "choices"));
    json_array_append_new(json_object_get(body, "choices"), chosen);
    if (usage)
        json_object_set_new(
            usage, "completion_tokens",
            json_integer((json_int_t)json_array_size(json_object_get(json_array_get(samples, place), "token_ids"))));
    return body;
}

static struct body bytes_of(const json_t *fixture, json_t *value)
{
    const json_t *text = json_object_get(fixture, "body_text");
    struct body body;
    char *dumped;

    if (!value && text)
        return body_of(json_string_value(text), json_string_length(text));
    dumped = json_dumps(value ? value : json_object_get(fixture, "body"), JSON_ENCODE_ANY | JSON_COMPACT);
    body = body_of(dumped, strlen(dumped));
    free(dumped);
    return body;
}

/* --- the exchange -------------------------------------------------------------------------------- */

/* Its prompt is known, so there is one step, but where the text comes from another. */
static enum exchange_outcome ask(const json_t *fixture, struct body body, struct exchange *exchange,
                                 struct sample_request *request, struct sample *ret_sample,
                                 struct sample_error *ret_error)
{
    const char *path = json_string_value(json_object_get(fixture, "path"));
    int status = (int)json_integer_value(json_object_get(fixture, "status"));
    enum exchange_outcome outcome;

    *request = plain_request();
    if (strstr(path, "chat")) {
        request->prompt_ids = NULL;
        request->messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"2+2?\"}]");
    } else if (strcmp(json_string_value(json_object_get(fixture, "engine")), "llamacpppy") == 0) {
        request->prompt_ids = NULL;
        request->prompt = (struct text)TEXT_LITERAL("2+2=");
    }
    if (json_object_get(json_object_get(fixture, "request"), "post_sampling_probs"))
        request->sampling.engine_options = (struct text)TEXT_LITERAL("{\"post_sampling_probs\":true}");
    exchange_init(exchange, adapter_of(fixture), request);
    outcome = parse_bytes(exchange, status, body.data, body.length_bytes, ret_sample, ret_error);
    if (outcome == EXCHANGE_NEXT)
        outcome = parse_bytes(exchange, 200, "{\"prompt\":\"4.\"}", 15, ret_sample, ret_error);
    return outcome;
}

static void check_code(const char *word, const struct sample_error *error)
{
    for (size_t i = 0; i < ARRAY_LENGTH(meanings); i++) {
        if (strcmp(word, meanings[i].word) == 0) {
            if (error->code != meanings[i].code)
                fail_msg("%s became %s: %s", word, sample_failure_names[error->code], error->message);
            return;
        }
    }
    fail_msg("no meaning for %s", word);
}

static void check_numbers(const json_t *want, const struct sample *sample)
{
    const json_t *ids = json_object_get(want, "token_ids"), *logprobs = json_object_get(want, "logprobs");

    assert_int_equal(sample->id_count, json_array_size(ids));
    for (size_t i = 0; i < sample->id_count; i++) {
        assert_int_equal(sample->ids[i], json_integer_value(json_array_get(ids, i)));
        assert_true(fabs((double)sample->logprobs[i] - json_number_value(json_array_get(logprobs, i))) < 1e-6);
    }
}

static void check_text(const json_t *want, const struct sample *sample)
{
    const json_t *text = json_object_get(want, "text"), *hex = json_object_get(want, "text_hex");

    if (json_is_string(text)) {
        assert_int_equal(sample->text.length_bytes, json_string_length(text));
        assert_memory_equal(sample->text.data, json_string_value(text), json_string_length(text));
    }
    for (size_t i = 0; hex && i < json_string_length(hex) / 2; i++) {
        char pair[3] = {json_string_value(hex)[2 * i], json_string_value(hex)[2 * i + 1], '\0'};

        assert_int_equal((unsigned char)sample->text.data[i], strtol(pair, NULL, 16));
    }
}

static void check_usable(const json_t *want, const struct sample *sample)
{
    const json_t *revision = json_object_get(want, "weight_version");

    assert_true(sample->trainable);
    check_numbers(want, sample);
    check_text(want, sample);
    assert_string_equal(finish_reason_names[sample->finish], json_string_value(json_object_get(want, "finish")));
    if (json_is_string(revision))
        assert_true(text_equals(sample->engine_revision, json_string_value(revision)));
    else
        assert_null(sample->engine_revision.data);
}

static bool is_text_only(const json_t *want)
{
    const json_t *defects = json_object_get(want, "defects");

    for (size_t i = 0; i < json_array_size(defects); i++)
        if (!strstr("no_token_ids no_logprobs eos_missing seed_unknown", json_string_value(json_array_get(defects, i))))
            return false;
    return true;
}

static void check_sample(const json_t *fixture, const json_t *want, struct body body)
{
    const json_t *defects = json_object_get(want, "defects");
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;
    enum exchange_outcome outcome = ask(fixture, body, &exchange, &request, &sample, &error);

    if (json_is_true(json_object_get(want, "usable")) || is_text_only(want)) {
        if (outcome != EXCHANGE_SAMPLE)
            fail_msg("%s: %s", sample_failure_names[error.code], error.message);
        if (json_is_true(json_object_get(want, "usable")))
            check_usable(want, &sample);
        else
            assert_false(sample.trainable);
        sample_finish(&sample);
    } else {
        assert_int_equal(outcome, EXCHANGE_ERROR);
        check_code(json_string_value(json_array_get(defects, json_array_size(defects) - 1)), &error);
        assert_true(*error.message);
    }
    exchange_finish(&exchange);
}

/* --- tests --------------------------------------------------------------------------------------- */

static void check_error(const json_t *fixture, const json_t *expect)
{
    struct body body = bytes_of(fixture, NULL);
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;

    assert_int_equal(ask(fixture, body, &exchange, &request, &sample, &error), EXCHANGE_ERROR);
    check_code(json_string_value(json_object_get(expect, "error_class")), &error);
    assert_int_equal(error.retryable, json_is_true(json_object_get(expect, "retryable")));
    assert_false(error.resample);
    exchange_finish(&exchange);
    free(body.data);
}

static void check_refused(const json_t *fixture)
{
    struct body body = bytes_of(fixture, NULL);
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;

    assert_int_equal(ask(fixture, body, &exchange, &request, &sample, &error), EXCHANGE_ERROR);
    assert_null(sample.memory);
    exchange_finish(&exchange);
    free(body.data);
}

static void test_whole(void **state)
{
    json_t *fixture = *state;
    const json_t *expect = json_object_get(fixture, "expect"), *samples = json_object_get(expect, "samples");
    const char *outcome = json_string_value(json_object_get(expect, "outcome"));

    if (is_stream(fixture)) { /* never asked for there, and not half believed */
        check_refused(fixture);
        return;
    }
    if (strcmp(outcome, "error") == 0)
        check_error(fixture, expect);
    for (size_t i = 0; i < json_array_size(samples); i++) {
        json_t *part = json_array_size(samples) > 1 ? pick(fixture, i) : NULL;
        struct body body = bytes_of(fixture, part);

        check_sample(fixture, json_array_get(samples, i), body);
        free(body.data);
        json_decref(part);
    }
}

/* A reply that another JSON library cannot read at all: an empty name and NUL as keys. */
static void test_unreadable_elsewhere(void **state)
{
    json_t *fixture = *state;
    struct body body;
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;

    if (strcmp(json_string_value(json_object_get(json_object_get(fixture, "expect"), "outcome")), "parse_error") != 0)
        return;
    body = bytes_of(fixture, NULL);
    assert_int_equal(ask(fixture, body, &exchange, &request, &sample, &error), EXCHANGE_SAMPLE);
    assert_int_equal(sample.id_count, 2);
    assert_int_equal(sample.ids[0], 188);
    assert_int_equal(sample.ids[1], 3);
    sample_finish(&sample);
    exchange_finish(&exchange);
    free(body.data);
}

static void test_cut_at_every_byte_it_is_an_error(void **state)
{
    json_t *fixture = *state;
    struct body whole = bytes_of(fixture, NULL);
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;

    for (size_t length = 0; length < whole.length_bytes; length++) {
        assert_int_equal(ask(fixture, (struct body){whole.data, length}, &exchange, &request, &sample, &error),
                         EXCHANGE_ERROR);
        assert_false(error.resample && json_integer_value(json_object_get(fixture, "status")) == 200);
        exchange_finish(&exchange);
    }
    free(whole.data);
}

static void test_more_samples_than_asked_for_are_refused(void **state)
{
    json_t *fixture = *state, *body = json_deep_copy(json_object_get(fixture, "body"));
    struct body bytes;
    struct exchange exchange;
    struct sample_request request;
    struct sample sample;
    struct sample_error error;

    if (json_integer_value(json_object_get(fixture, "status")) == 200 && choices_of(body)) {
        json_array_append(choices_of(body), json_array_get(choices_of(body), 0));
        bytes = bytes_of(fixture, body);
        assert_int_equal(ask(fixture, bytes, &exchange, &request, &sample, &error), EXCHANGE_ERROR);
        assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
        assert_true(error.retryable && error.resample);
        exchange_finish(&exchange);
        free(bytes.data);
    }
    json_decref(body);
}

static const struct {
    const char *name;
    CMUnitTestFunction test;
} claims[] = {
    {"is read as expected", test_whole},
    {"is read where other parsers give up", test_unreadable_elsewhere},
    {"cut at every byte is an error", test_cut_at_every_byte_it_is_an_error},
    {"with a sample too many is refused", test_more_samples_than_asked_for_are_refused},
};

int main(void)
{
    size_t count, used = 0;
    char **paths = list_files(CASES_DIR, ".json", &count);
    json_t **fixtures = xcalloc(count, sizeof(*fixtures));
    struct CMUnitTest *tests = xcalloc(count * ARRAY_LENGTH(claims), sizeof(*tests));
    int failed;

    for (size_t i = 0; i < count; i++) {
        fixtures[i] = load_json(paths[i]);
        for (size_t k = 0; belongs_here(fixtures[i]) && k < ARRAY_LENGTH(claims); k++)
            tests[used++] = (struct CMUnitTest){
                .name = xasprintf("%s %s", json_string_value(json_object_get(fixtures[i], "name")), claims[k].name),
                .test_func = claims[k].test,
                .initial_state = fixtures[i],
            };
    }
    failed = _cmocka_run_group_tests("fixtures", tests, used, NULL, NULL);
    for (size_t i = 0; i < used; i++)
        free((char *)(uintptr_t)tests[i].name);
    for (size_t i = 0; i < count; i++) {
        json_decref(fixtures[i]);
        free(paths[i]);
    }
    free(tests);
    free(fixtures);
    free(paths);
    return failed;
}
