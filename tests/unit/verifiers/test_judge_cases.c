/* judge on the cases of tests/cases: what it asks, and its verdicts on scripted replies, without a service. */
#include "tests/unit/verifiers/grade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES_MAX ((size_t)16 << 20)

/* A text, or {"prefix", "unit", "times", "suffix"}. */
static json_t *expand(const json_t *value)
{
    const json_t *unit = json_object_get(value, "unit");
    _cleanup_buffer_ struct buffer text;

    buffer_init(&text, TEXT_BYTES_MAX);
    if (!unit)
        return json_deep_copy(value);
    for (const char *key = "prefix"; key; key = strcmp(key, "prefix") == 0 ? "suffix" : NULL) {
        struct text part = json_text_of(json_object_get(value, key));
        for (json_int_t i = json_integer_value(json_object_get(value, "times")); i > 0 && key[0] == 's'; i--)
            buffer_append(&text, json_string_value(unit), json_string_length(unit));
        if (part.data)
            buffer_append(&text, part.data, part.length_bytes);
    }
    return json_stringn(buffer_text(&text).data, text.length_bytes);
}

static json_t *chat_body(const json_t *reply)
{
    static const char *const beside[] = {"reasoning_content", "refusal"};
    json_t *message = json_pack("{s:s}", "role", "assistant");
    const json_t *reason = json_object_get(reply, "finish_reason");

    json_object_set_new(message, "content",
                        json_is_string(reply) ? json_deep_copy(reply) : expand(json_object_get(reply, "text")));
    for (size_t i = 0; i < ARRAY_LENGTH(beside); i++)
        if (json_object_get(reply, beside[i]))
            json_object_set(message, beside[i], json_object_get(reply, beside[i]));
    return json_pack("{s:[{s:i, s:o, s:s}]}", "choices", "index", 0, "message", message, "finish_reason",
                     reason ? json_string_value(reason) : "stop");
}

/* The reply of the service to one call. */
static json_t *reply_to_call(const json_t *reply)
{
    const json_t *raw = json_object_get(reply, "raw");
    json_t *body = raw ? NULL : chat_body(reply);
    _cleanup_free_ char *text = raw ? strdup(json_string_value(raw)) : json_dumps(body, JSON_COMPACT);

    json_decref(body);
    return json_pack("{s:i, s:s, s:s, s:s, s:n}", "status", 200, "body", text, "engine", "e1", "model", "judge",
                     "version");
}

static const json_t *scripted(const json_t *replies, size_t number)
{
    if (json_is_object(replies))
        return json_object_get(replies, number % 2 ? "swapped" : "straight");
    return json_array_get(replies, number < json_array_size(replies) ? number : json_array_size(replies) - 1);
}

static json_t *options_of(const json_t *line)
{
    json_t *options = json_deep_copy(json_object_get(line, "options"));

    if (!options) { /* of judge.jsonl */
        json_t *parse = json_deep_copy(json_object_get(line, "params"));
        json_object_set(parse, "kind", json_object_get(line, "kind"));
        options = json_pack("{s:o}", "parse", parse);
    }
    if (!json_is_true(json_object_get(line, "no_engine")))
        json_object_set_new(options, "engine", json_string("judge"));
    return options;
}

static json_t *replies_of(const json_t *line)
{
    const json_t *reply = json_object_get(line, "reply");

    if (!reply)
        return json_deep_copy(json_object_get(line, "replies"));
    if (strcmp(json_string_value(json_object_get(line, "kind")), "reward_model") == 0)
        return json_pack("[{s:O}]", "raw", reply);
    return json_pack("[O]", reply);
}

/* Its verdict, and how many calls it made. */
static struct verdict judge_line(const json_t *line, const json_t *filled, size_t *ret_calls)
{
    static const char *const usual[] = {"prompt", "completion", "reference"};
    json_t *values[3];
    json_t *script = replies_of(line);
    json_t *calls = json_array();
    json_t *replies = json_array();
    struct verdict verdict;

    for (size_t i = 0; i < 3; i++)
        values[i] = json_object_get(line, "options") ? expand(json_object_get(line, usual[i])) : json_string(usual[i]);
    struct verifier_input input = {.completion = json_text_of(values[1]),
                                   .prompt = json_text_of(values[0]),
                                   .reference = values[2],
                                   .options = filled,
                                   .sandbox_fd = -1};
    if (registry_plan(registry_find(TEXT_LITERAL("judge")), &input, calls, &verdict)) {
        for (size_t i = 0; i < json_array_size(calls); i++)
            json_array_append_new(replies, reply_to_call(scripted(script, i)));
        input.replies = replies;
        registry_grade(registry_find(TEXT_LITERAL("judge")), &input, &verdict);
        *ret_calls = json_array_size(calls);
    } else {
        *ret_calls = 0;
    }
    for (size_t i = 0; i < 3; i++)
        json_decref(values[i]);
    json_decref(script);
    json_decref(calls);
    json_decref(replies);
    return verdict;
}

/* "refused", "unscored", "error", "no_answer" or a score. */
static bool is_expected(const json_t *expected, const struct verdict *verdict)
{
    struct text word = json_text_of(expected);

    if (text_equals(word, "unscored") || text_equals(word, "error"))
        return verdict->kind == VERDICT_UNSCORED;
    if (text_equals(word, "no_answer"))
        return verdict->kind == VERDICT_INCORRECT && strcmp(verdict->reason, "no_answer") == 0;
    return verdict->kind != VERDICT_UNSCORED && fabs(verdict->score - json_number_value(expected)) < 1e-12;
}

static bool is_listed(const json_t *codes, const char *code)
{
    size_t i;
    const json_t *one;

    json_array_foreach (codes, i, one)
        if (code && strcmp(json_string_value(one), code) == 0)
            return true;
    return !codes;
}

static bool made_calls(const json_t *line, size_t count)
{
    const json_t *calls = json_object_get(line, "calls");

    if (json_is_array(calls)) /* repeats of the service count, too */
        return count <= (size_t)json_integer_value(json_array_get(calls, 1));
    return !calls || (size_t)json_integer_value(calls) == count;
}

static void check_line(const json_t *line)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    const json_t *expected = json_object_get(line, "expected");
    json_t *options = options_of(line);
    struct verifier_problem problem;
    json_t *filled = registry_fill_options(registry_find(TEXT_LITERAL("judge")), options, &problem);
    struct verdict verdict = {.kind = VERDICT_UNSCORED};
    size_t calls = 0;

    if (!filled != text_equals(json_text_of(expected), "refused"))
        fail_msg("%s: options %s: %s", id, filled ? "taken" : problem.name, filled ? "" : problem.message);
    if (filled) {
        verdict = judge_line(line, filled, &calls);
        if (!is_expected(expected, &verdict) ||
            (verdict.kind == VERDICT_UNSCORED && !is_listed(json_object_get(line, "failure"), verdict.failure_code)))
            fail_msg("%s: %s %g %s %s", id, verdict_kind_names[verdict.kind], verdict.score, verdict.reason,
                     verdict.failure_code ? verdict.failure_message : "");
        if (!made_calls(line, calls))
            fail_msg("%s: %zu calls", id, calls);
        assert_true(calls == 0 || json_array_size(json_object_get(verdict.detail, "asks")) == calls);
    }
    verdict_finish(&verdict);
    json_decref(filled);
    json_decref(options);
}

/* Cases that need a service: repeats, time, the pool of a batch. */
static bool needs_a_service(const json_t *line)
{
    return json_is_true(json_object_get(line, "own_engine")) ||
           text_equals(json_text_of(json_object_get(line, "category")), "own_pool");
}

static void check_file(const char *name, size_t least)
{
    char path[512];
    char *line = NULL;
    size_t room = 0;
    size_t count = 0;
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s.jsonl", getenv("CASES"), name);
    stream = fopen(path, "r");
    assert_non_null(stream);
    while (getline(&line, &room, stream) > 0) {
        json_t *root = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(root);
        if (!needs_a_service(root)) {
            check_line(root);
            count++;
        }
        json_decref(root);
    }
    assert_true(count >= least);
    free(line);
    fclose(stream);
}

static void test_the_cases_of_judges(void **state)
{
    (void)state;
    check_file("judge", 30);
}

static void test_the_cases_of_attacks_on_judges(void **state)
{
    (void)state;
    check_file("judge_injection", 170);
}

static void test_our_own_cases(void **state)
{
    (void)state;
    check_file("own/judge_injection", 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cases_of_judges),
        cmocka_unit_test(test_the_cases_of_attacks_on_judges),
        cmocka_unit_test(test_our_own_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
