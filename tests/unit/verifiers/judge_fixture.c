#include "tests/unit/verifiers/judge_fixture.h"

#include <math.h>

const struct piece two_steps[2] = {{{"2+2=4", 5}, 6}, {{"so 5", 4}, 10}};

json_t *fill(const char *options, struct verifier_problem *ret_problem)
{
    _cleanup_free_ char *whole = xasprintf("{\"engine\":\"judges\"%s%s}", *options ? "," : "", options);
    json_t *given = json_loads(whole, JSON_ALLOW_NUL, NULL);
    json_t *filled;

    if (!given)
        fail_msg("no JSON: %s", whole);
    filled = registry_fill_options(registry_find(TEXT_LITERAL("judge")), given, ret_problem);
    json_decref(given);
    return filled;
}

struct verdict run(const struct asked *asked, json_t *calls, const json_t *replies)
{
    const struct verifier *verifier = registry_find(TEXT_LITERAL("judge"));
    struct verifier_problem problem;
    json_t *filled = fill(asked->options, &problem);
    json_t *reference = asked->reference ? json_loads(asked->reference, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    struct verifier_input input = {.completion = text_of(asked->completion),
                                   .prompt = text_of(asked->prompt),
                                   .reference = reference,
                                   .options = filled,
                                   .sandbox_fd = -1,
                                   .replies = replies,
                                   .pieces = asked->pieces,
                                   .piece_count = asked->piece_count};
    struct verdict verdict;

    if (!filled)
        fail_msg("options %s: %s %s", asked->options, problem.name, problem.message);
    if (replies)
        registry_grade(verifier, &input, &verdict);
    else if (registry_plan(verifier, &input, calls, &verdict))
        verdict = (struct verdict){.kind = VERDICT_UNSCORED};
    json_decref(filled);
    json_decref(reference);
    return verdict;
}

json_t *ask(const struct asked *asked)
{
    json_t *calls = json_array();
    struct verdict verdict = run(asked, calls, NULL);

    if (verdict.reason)
        fail_msg("%s: %s in place of calls", asked->options, verdict.reason);
    return calls;
}

json_t *body_of(const json_t *calls, size_t index)
{
    struct text body = json_text_of(json_object_get(json_array_get(calls, index), "body"));
    json_t *value = json_loadb(body.data, body.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

    if (!value)
        fail_msg("no JSON: %.*s", (int)body.length_bytes, body.data);
    return value;
}

struct text content_of(const json_t *body, size_t message)
{
    return json_text_of(json_object_get(json_array_get(json_object_get(body, "messages"), message), "content"));
}

static json_t *with_status(json_t *body)
{
    _cleanup_free_ char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(body);
    return json_pack("{s:i, s:s, s:s, s:s, s:s}", "status", 200, "body", text, "engine", "e1", "model", "m-1",
                     "version", "0.9");
}

json_t *said(const char *content)
{
    return with_status(json_pack("{s:[{s:i, s:s, s:{s:s, s:s}}]}", "choices", "index", 0, "finish_reason", "stop",
                                 "message", "role", "assistant", "content", content));
}

json_t *body_text(const char *body)
{
    return json_pack("{s:i, s:s}", "status", 200, "body", body);
}

struct verdict hear(const char *options, json_t *replies)
{
    struct asked asked = {options, "Q", "C", "\"R\"", NULL, 0};
    struct verdict verdict = run(&asked, NULL, replies);

    json_decref(replies);
    return verdict;
}

void expect_verdict(const char *about, struct verdict verdict, double score, const char *code)
{
    const char *got = verdict.failure_code ? verdict.failure_code : "";

    if (code ? strcmp(got, code) != 0 : verdict.failure_code || fabs(verdict.score - score) > 1e-12)
        fail_msg("%s: score %g, %s %s; expected %g, %s", about, verdict.score, got, verdict.failure_message, score,
                 code ? code : "");
    verdict_finish(&verdict);
}
