/* A judge's questions and what is read from its replies. Input: options as JSON, the prompt, the reference as JSON, the
 * completion and a reply, each ended by the separator. The reply is taken twice: as what the judge says, and as the body
 * of its engine. */
#include "server/base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/judge/template.h"
#include "verifiers/registry.h"

#include <math.h>

static const struct verifier *judge_row(void)
{
    return registry_find(TEXT_LITERAL("judge"));
}

static size_t count_of(struct text text, char byte)
{
    size_t count = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        count += text.data[i] == byte;
    return count;
}

/* A message that is filled with JSON texts has no '<' but the template's own. */
static void check_message(const struct verifier_input *input, const json_t *body)
{
    struct text template = json_text_of(json_object_get(input->options, "template"));
    const json_t *messages = json_object_get(body, "messages");
    struct text content = json_text_of(json_object_get(json_array_get(messages, 0), "content"));

    if (!template.data || !option_is(input->options, "values", "json"))
        return;
    FUZZ_CHECK(json_array_size(messages) == 1 && content.data);
    FUZZ_CHECK(count_of(content, '<') == count_of(template, '<'));
    FUZZ_CHECK(count_of(content, '\n') == count_of(template, '\n'));
}

static void check_calls(const struct verifier_input *input, const json_t *calls)
{
    const json_t *call;
    size_t i;

    FUZZ_CHECK(json_array_size(calls) > 0 && json_array_size(calls) <= VERIFIER_CALLS_MAX);
    json_array_foreach (calls, i, call) {
        struct text body_text = json_text_of(json_object_get(call, "body"));
        json_t *body =
            json_loadb(body_text.data, body_text.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
        FUZZ_CHECK(json_is_object(body));
        FUZZ_CHECK(json_is_string(json_object_get(call, "path")) && json_is_boolean(json_object_get(call, "model")));
        check_message(input, body);
        json_decref(body);
    }
}

/* A label's score is what the rule says; a number is scaled to 0 to 1; a failure has a code. */
static void check_verdict(const struct verifier_input *input, struct verdict *verdict)
{
    struct text kind = json_text_of(json_object_get(json_object_get(input->options, "parse"), "kind"));
    bool scaled = text_equals(kind, "json_score") || text_equals(kind, "rating");

    FUZZ_CHECK(verdict->reason && (verdict->kind == VERDICT_UNSCORED) == (verdict->failure_code != NULL));
    FUZZ_CHECK(verdict->kind == VERDICT_UNSCORED || isfinite(verdict->score));
    FUZZ_CHECK(verdict->kind == VERDICT_UNSCORED || !scaled || (verdict->score >= 0 && verdict->score <= 1));
    FUZZ_CHECK(json_array_size(json_object_get(verdict->detail, "asks")) == json_array_size(input->replies));
    verdict_finish(verdict);
}

static json_t *reply_with(json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    json_t *reply = json_pack("{s:i, s:s}", "status", 200, "body", text);

    json_decref(body);
    free(text);
    return reply;
}

/* The same reply to every question. */
static void hear(struct verifier_input *input, json_t *reply, size_t count)
{
    json_t *replies = json_array();
    struct verdict verdict;

    for (size_t i = 0; i < count; i++)
        json_array_append(replies, reply);
    input->replies = replies;
    registry_grade(judge_row(), input, &verdict);
    check_verdict(input, &verdict);
    json_decref(replies);
    json_decref(reply);
}

static void grade(struct verifier_input *input, struct text said)
{
    json_t *calls = json_array();
    struct verdict verdict;

    if (registry_plan(judge_row(), input, calls, &verdict)) {
        json_t *content = json_stringn(said.data, said.length_bytes); /* NULL: it is no UTF-8 */
        check_calls(input, calls);
        if (content) {
            hear(input, json_pack("{s:i, s:O}", "status", 200, "body", content), json_array_size(calls));
            hear(input, reply_with(json_pack("{s:[{s:{s:o}}]}", "choices", "message", "content", content)),
                 json_array_size(calls));
        }
    } else {
        FUZZ_CHECK(verdict.reason);
        verdict_finish(&verdict);
    }
    json_decref(calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    struct verifier_problem problem = {"", ""};
    size_t bytes[5];
    char *parts[5];
    json_t *given, *options, *reference;

    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        parts[i] = fuzz_take_part(&rest, &bytes[i]);
    given = json_loadb(parts[0], bytes[0], JSON_ALLOW_NUL, NULL);
    reference = json_loadb(parts[2], bytes[2], JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    options = registry_fill_options(judge_row(), given, &problem);
    FUZZ_CHECK(options || problem.message[0]);
    /* Texts of a request are UTF-8. */
    if (options && utf8_is_valid((struct text){parts[1], bytes[1]}, NULL) &&
        utf8_is_valid((struct text){parts[3], bytes[3]}, NULL)) {
        struct verifier_input input = {.completion = {parts[3], bytes[3]},
                                       .prompt = {parts[1], bytes[1]},
                                       .reference = reference,
                                       .options = options,
                                       .completion_tokens = -1,
                                       .sandbox_fd = -1};
        grade(&input, (struct text){parts[4], bytes[4]});
    }
    json_decref(given);
    json_decref(reference);
    json_decref(options);
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        free(parts[i]);
    return 0;
}
