/* judge: a score that a language model or a reward model gives a completion.
 *
 * plan() writes the questions (judge/question.h); the service asks the pool of the option `engine`; grade() reads
 * the replies (judge/hearing.h). A judge that fails, answers off the form, contradicts itself or breaks off has given no verdict:
 * there is no default. Its words are in the detail. */
#include "verifiers/judge/hearing.h"
#include "verifiers/judge/question.h"
#include "verifiers/judge/reward.h"
#include "verifiers/registry.h"
#include "verifiers/rows.h"
#include "verifiers/text/characters.h"

#define NAME_BYTES 64
#define TEMPLATE_BYTES 65536
#define MESSAGES_MAX 32
#define ENDPOINT_BYTES 256
#define TIMEOUT_BYTES 32
#define TOKENS_MAX 1048576

static const char *const values_names[] = {"json", "raw", NULL};
static const char *const combine_names[] = {"majority", "mean", NULL};
static const char *const disagree_names[] = {"unscored", "mean", "min", NULL};

static const struct verifier_option options[] = {
    {"engine", OPTION_TEXT, NULL, NULL, 1, NAME_BYTES, "the judge's pool; never the one that samples the completions"},
    {"template", OPTION_MESSAGES, "null", NULL, 1, TEMPLATE_BYTES,
     "a text (one user message) or messages with {prompt}, {completion}, {reference}, {step}; null: the built-in one"},
    {"parse", OPTION_OBJECT, "{\"kind\": \"yes_no\"}", NULL, 0, 0,
     "kind yes_no, letter, brackets, json_score, rating or reward_model, and the keys of that kind"},
    {"values", OPTION_CHOICE, "\"json\"", values_names, 0, 0,
     "how values stand in the template: as JSON texts, or raw"},
    {"temperature", OPTION_NUMBER, "0", NULL, 0, 2, "of the judge"},
    {"seed", OPTION_INT, "0", NULL, 0, JUDGE_SEED_MAX, "of the first vote; each further one has the next"},
    {"max_tokens", OPTION_INT, "null", NULL, 1, TOKENS_MAX, "of a reply; null: what the engine allows"},
    {"votes", OPTION_INT, "1", NULL, 1, JUDGE_VOTES_MAX, "how often the judge is asked"},
    {"combine", OPTION_CHOICE, "\"majority\"", combine_names, 0, 0,
     "of several votes: most votes for a label, or the mean"},
    {"swap", OPTION_SWITCH, "false", NULL, 0, 0,
     "ask again with completion and reference exchanged; an object says what labels mean in that order"},
    {"disagree", OPTION_CHOICE, "\"unscored\"", disagree_names, 0, 0,
     "what two orders with different verdicts are worth"},
    {"timeout", OPTION_TEXT, "\"60s\"", NULL, 1, TIMEOUT_BYTES, "of the verdict: all calls and repeats together"},
    {"endpoint", OPTION_TEXT, "null", NULL, 2, ENDPOINT_BYTES,
     "path at the engine; null: /v1/chat/completions, for a reward model that of its payload"},
};

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    struct judge_rule rule;

    return judge_rule_read(filled, &rule, ret_problem);
}

static bool read_rule(const struct verifier_input *input, struct judge_rule *ret_rule, struct verdict *verdict)
{
    struct verifier_problem problem;

    if (judge_rule_read(input->options, ret_rule, &problem) == 0)
        return true;
    verdict_fail(verdict, "verifier_options", "%s: %.120s", problem.name, problem.message);
    return false;
}

/* Nothing but space, and characters that take no room: U+200B to U+200D, U+2060, U+FEFF. */
static bool is_blank(struct text text)
{
    while (text.length_bytes > 0) {
        uint32_t point = character_take(&text);
        bool has_no_width = (point >= 0x200b && point <= 0x200d) || point == 0x2060 || point == 0xfeff;
        if (!has_no_width && !(character_classes(point) & CHARACTER_SPACE))
            return false;
    }
    return true;
}

static bool add_call(const struct judge_rule *rule, const struct verifier_input *input, size_t index, json_t *calls)
{
    _cleanup_buffer_ struct buffer body;
    struct judge_ask ask = judge_ask_at(rule, index);

    buffer_init(&body, VERIFIER_CALLS_BYTES);
    judge_put_body(rule, input, &ask, &body);
    if (body.failed)
        return false;
    return json_array_append_new(calls, json_pack("{s:s%, s:s%, s:b}", "path", rule->endpoint.data,
                                                  rule->endpoint.length_bytes, "body", body.data, body.length_bytes,
                                                  "model", !rule->payload || reward_says_model(rule->payload))) == 0;
}

static bool plan(const struct verifier_input *input, json_t *calls, struct verdict *ret_verdict)
{
    struct judge_problem problem;
    struct judge_rule rule;
    size_t count;

    if (!read_rule(input, &rule, ret_verdict))
        return false;
    if (judge_lacks_a_value(&rule, input, &problem)) {
        verdict_fail(ret_verdict, problem.code, "%s", problem.message);
        return false;
    }
    if (!rule.payload && is_blank(input->completion)) {
        verdict_set(ret_verdict, false, "no_answer");
        return false;
    }
    count = judge_ask_count(&rule, input);
    for (size_t i = 0, bytes = 0; i < count; i++) {
        if (count <= VERIFIER_CALLS_MAX && bytes <= VERIFIER_CALLS_BYTES && add_call(&rule, input, i, calls)) {
            bytes += json_string_length(json_object_get(json_array_get(calls, i), "body"));
            continue;
        }
        verdict_fail(ret_verdict, "verifier_input_too_large", "the judge would have to be asked %zu times, or too much",
                     count);
        return false;
    }
    return true;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct judge_rule rule;
    size_t count;

    if (!read_rule(input, &rule, ret_verdict))
        return;
    count = judge_ask_count(&rule, input);
    if (json_array_size(input->replies) == count)
        judge_hear(&rule, input, ret_verdict);
    else
        verdict_fail(ret_verdict, "verifier_crashed", "%zu replies to %zu questions", json_array_size(input->replies),
                     count);
}

const struct verifier verifier_judge = {
    .name = "judge",
    .version = "1",
    .help = "what a language model says of the completion, or the score of a reward model",
    .asks_engine = true,
    .grades_pieces = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .plan = plan,
    .grade = grade,
};
