/* The table of verifiers with two more, for tests of what no verifier of the service's own does. `endless` judges a text
 * of 100 times "a" and more for ever, any other one is incorrect. `asker` asks the pool of engines that it names about
 * the completion, and pays for answers. */
#include <stdio.h>
#include <string.h>

#include "verifiers/registry.h"
#include "verifiers/rows.h"

#define ENDLESS_BYTES 100

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    size_t count = 0;

    while (count < input->completion.length_bytes && input->completion.data[count] == 'a')
        count++;
    for (volatile bool forever = true; count >= ENDLESS_BYTES && forever;)
        continue;
    verdict_set(ret_verdict, false, "different");
}

static const struct verifier verifier_endless = {
    .name = "endless", .version = "1", .help = "does not end on a text of many a", .grade = grade};

/* --- asker --- */

static bool plan(const struct verifier_input *input, json_t *calls, struct verdict *ret_verdict)
{
    json_t *object = json_pack("{s:[{s:s, s:s#}]}", "messages", "role", "user", "content", input->completion.data,
                               input->completion.length_bytes);
    _cleanup_free_ char *body = json_dumps(object, JSON_COMPACT);

    (void)ret_verdict;
    for (double i = 0; i < option_number(input->options, "calls", 1); i++)
        json_array_append_new(
            calls, json_pack("{s:s, s:s, s:b}", "path", "/v1/chat/completions", "body", body, "model", true));
    json_decref(object);
    return true;
}

static void grade_replies(const struct verifier_input *input, struct verdict *ret_verdict)
{
    const json_t *reply;
    size_t i;

    json_array_foreach (input->replies, i, reply) {
        const json_t *failure = json_object_get(reply, "failure");
        if (failure) {
            verdict_fail(ret_verdict, "asker_failed", "%s: %s", json_string_value(json_object_get(failure, "code")),
                         json_string_value(json_object_get(failure, "message")));
            return;
        }
        json_decref(ret_verdict->detail);
        ret_verdict->detail = json_copy((json_t *)(uintptr_t)reply);
    }
    verdict_set(ret_verdict, true, "answered");
}

static const struct verifier_option asker_options[] = {
    {"engine", OPTION_TEXT, NULL, NULL, 1, 64, "the pool"},
    {"timeout", OPTION_TEXT, "null", NULL, 1, 32, "of the verdict"},
    {"calls", OPTION_INT, "1", NULL, 1, 64, "that it makes"},
};

static const struct verifier verifier_asker = {.name = "asker",
                                               .version = "1",
                                               .help = "asks a pool of engines",
                                               .asks_engine = true,
                                               .options = asker_options,
                                               .option_count = ARRAY_LENGTH(asker_options),
                                               .plan = plan,
                                               .grade = grade_replies};

#define VERIFIER(name) &verifier_##name,
const struct verifier *const verifiers[] = {
#include "verifiers/rows.def"
    &verifier_endless, &verifier_asker};
#undef VERIFIER
const size_t verifier_count = ARRAY_LENGTH(verifiers);
