#include "verifiers/judge/hearing.h"

#include <stdio.h>

#include "server/base/words.h"
#include "verifiers/judge/combine_private.h"
#include "verifiers/judge/question.h"
#include "verifiers/judge/reward.h"

#define REPLY_BYTES 4096                  /* of each reply in the detail */
#define REPLIES_BYTES ((size_t)128 << 10) /* of all of them */

/* One verdict with all its replies. */
struct hearing {
    const struct judge_rule *rule;
    const struct verifier_input *input;
    size_t count;
    bool all_steps;                 /* a reward model was told all steps at once */
    struct judge_reading *readings; /* one for each ask */
    double *step_scores;
    struct judge_problem problem; /* the first one */
    json_t *asks;
};

/* --- one reply --- */

/* One reply and what was read from it. */
struct heard {
    struct text shown; /* its text, or its whole body */
    struct judge_reading reading;
    struct judge_problem problem; /* code NULL: it was read */
};

/* Codes that the service gives a call without a reply: those of sampling, and the end of the verdict's time. */
static const char *const known_codes[] = {SAMPLE_FAILURE_WORDS(WORD_TEXT) "verifier_timeout"};

/* Codes are static texts: one that is not known is the engine's error. */
static const char *code_of(struct text code)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_codes); i++)
        if (text_equals(code, known_codes[i]))
            return known_codes[i];
    return "engine_error";
}

static void fail(struct judge_problem *problem, const char *code, struct text message)
{
    problem->code = code;
    snprintf(problem->message, sizeof problem->message, "%.*s", (int)message.length_bytes,
             message.data ? message.data : "");
}

/* False: there is no reply, as the problem says. */
static bool came(const json_t *reply, struct judge_problem *problem)
{
    const json_t *failure = json_object_get(reply, "failure");

    if (json_is_object(failure))
        fail(problem, code_of(json_text_of(json_object_get(failure, "code"))),
             json_text_of(json_object_get(failure, "message")));
    else if (json_integer_value(json_object_get(reply, "status")) != 200)
        fail(problem, "engine_error", TEXT_LITERAL("the engine's reply is no success"));
    return !problem->code;
}

static void hear_content(const struct judge_rule *rule, struct text content, struct heard *heard)
{
    _cleanup_buffer_ struct buffer final;

    buffer_init(&final, content.length_bytes + 1);
    chat_put_final(content, &final);
    if (!judge_read(rule, buffer_text(&final), &heard->reading))
        fail(&heard->problem, JUDGE_UNREADABLE_CODE,
             TEXT_LITERAL("the judge's reply has no verdict in the form that `parse` wants, or not one"));
}

static void hear_chat(const struct judge_rule *rule, const json_t *body, struct heard *heard)
{
    struct text content;

    chat_read(body, &content, &heard->problem);
    if (content.data)
        heard->shown = content;
    if (!heard->problem.code)
        hear_content(rule, content, heard);
}

static void hear_reward(const struct judge_rule *rule, const json_t *body, size_t count, double *ret_scores,
                        struct heard *heard)
{
    char sentence[REWARD_PROBLEM_BYTES];

    if (!body)
        fail(&heard->problem, JUDGE_INVALID_REPLY_CODE,
             TEXT_LITERAL("the reply is no JSON, or a key stands in it twice"));
    else if (!reward_read(rule, body, count, ret_scores, sentence))
        fail(&heard->problem, JUDGE_INVALID_REPLY_CODE, text_of(sentence));
    else
        heard->reading = (struct judge_reading){0, ret_scores[0], ret_scores[0]};
}

/* --- the detail --- */

/* A text of at most so many bytes, cut before a character. */
static json_t *cut_text(struct text text, size_t limit_bytes)
{
    if (!text.data)
        return json_null();
    if (text.length_bytes > limit_bytes) {
        text.length_bytes = limit_bytes;
        while (text.length_bytes > 0 && ((unsigned char)text.data[text.length_bytes] & 0xc0) == 0x80)
            text.length_bytes--;
    }
    return json_stringn(text.data, text.length_bytes);
}

static json_t *scores_json(const double *scores, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(scores[i]));
    return list;
}

static json_t *read_json(const struct hearing *hearing, const struct heard *heard)
{
    struct text name;

    if (heard->problem.code)
        return json_null();
    if (hearing->all_steps)
        return scores_json(hearing->step_scores, hearing->input->piece_count);
    if (hearing->rule->label_count == 0)
        return json_real(heard->reading.number);
    name = hearing->rule->labels[heard->reading.label].name;
    return json_stringn(name.data, name.length_bytes);
}

static void note_ask(struct hearing *hearing, const struct judge_ask *ask, const json_t *reply,
                     const struct heard *heard)
{
    size_t limit_bytes = REPLIES_BYTES / hearing->count < REPLY_BYTES ? REPLIES_BYTES / hearing->count : REPLY_BYTES;
    json_t *entry =
        json_pack("{s:o, s:o}", "reply", cut_text(heard->shown, limit_bytes), "read", read_json(hearing, heard));
    json_t *engine = json_object_get(reply, "engine");

    json_object_set_new(entry, "seed", hearing->rule->payload ? json_null() : json_integer(ask->seed));
    json_object_set_new(entry, "swapped", json_boolean(ask->swapped));
    if (json_is_string(engine))
        json_object_set(entry, "engine", engine);
    if (heard->problem.code)
        json_object_set_new(entry, "failure", json_string(heard->problem.code));
    json_array_append_new(hearing->asks, entry);
}

/* The first reply that names them: a pool whose engines differ shows it in each ask's engine. */
static void note_engine(const struct hearing *hearing, struct verdict *verdict)
{
    static const char *const keys[][2] = {{"model", "engine_model"}, {"version", "engine_version"}};

    for (size_t key = 0; key < ARRAY_LENGTH(keys); key++) {
        const json_t *found = NULL;
        const json_t *reply;
        size_t i;
        json_array_foreach (hearing->input->replies, i, reply)
            if (!found && json_is_string(json_object_get(reply, keys[key][0])))
                found = json_object_get(reply, keys[key][0]);
        json_object_set_new(verdict->detail, keys[key][1], found ? json_deep_copy(found) : json_null());
    }
}

/* --- the verdict --- */

static void hear(struct hearing *hearing, size_t index)
{
    const struct judge_rule *rule = hearing->rule;
    const json_t *reply = json_array_get(hearing->input->replies, index);
    struct text body_text = json_text_of(json_object_get(reply, "body"));
    struct judge_ask ask = judge_ask_at(rule, index);
    struct heard heard = {.shown = body_text};
    size_t flags = JSON_ALLOW_NUL | (rule->payload ? JSON_DECODE_ANY | JSON_REJECT_DUPLICATES : 0);
    json_t *body = NULL;

    if (came(reply, &heard.problem)) {
        body = body_text.data ? json_loadb(body_text.data, body_text.length_bytes, flags, NULL) : NULL;
        if (rule->payload)
            hear_reward(rule, body, hearing->all_steps ? hearing->input->piece_count : 1,
                        hearing->all_steps ? hearing->step_scores : (double[1]){0}, &heard);
        else
            hear_chat(rule, body, &heard);
    }
    hearing->readings[index] = heard.reading;
    if (heard.problem.code && !hearing->problem.code)
        hearing->problem = heard.problem;
    note_ask(hearing, &ask, reply, &heard);
    json_decref(body);
}

/* A label that is worth 1 or 0 is right or wrong; any other score is one. */
static void settle(const struct judge_outcome *outcome, struct verdict *verdict)
{
    if (outcome->label && (outcome->score == 0 || outcome->score == 1))
        verdict_set(verdict, outcome->score == 1, "judged");
    else
        verdict_set_score(verdict, outcome->score, "judged");
    if (outcome->label)
        json_object_set_new(verdict->detail, "label",
                            json_stringn(outcome->label->name.data, outcome->label->name.length_bytes));
}

/* One step, or the whole. False: it has no score, as hearing->problem says. */
static bool conclude(struct hearing *hearing, size_t step, struct judge_outcome *ret_outcome)
{
    const struct judge_reading *readings = &hearing->readings[step * judge_asks_a_step(hearing->rule)];

    if (!hearing->rule->payload)
        return judge_combine(hearing->rule, readings, ret_outcome, &hearing->problem);
    *ret_outcome = (struct judge_outcome){readings->score, NULL};
    return true;
}

static void conclude_all(struct hearing *hearing, struct verdict *verdict)
{
    struct judge_outcome outcome;

    for (size_t i = 0; i < hearing->input->piece_count && !hearing->all_steps; i++) {
        if (!conclude(hearing, i, &outcome)) {
            verdict_fail(verdict, hearing->problem.code, "step %zu: %s", i, hearing->problem.message);
            return;
        }
        hearing->step_scores[i] = outcome.score;
    }
    if (hearing->input->piece_count > 0)
        verdict_set_steps(verdict, hearing->step_scores, hearing->input->piece_count);
    else if (conclude(hearing, 0, &outcome))
        settle(&outcome, verdict);
    else
        verdict_fail(verdict, hearing->problem.code, "%s", hearing->problem.message);
}

void judge_hear(const struct judge_rule *rule, const struct verifier_input *input, struct verdict *verdict)
{
    size_t count = judge_ask_count(rule, input);
    _cleanup_free_ struct judge_reading *readings = xcalloc(count, sizeof *readings);
    _cleanup_free_ double *step_scores = xcalloc(input->piece_count + 1, sizeof *step_scores);
    struct hearing hearing = {.rule = rule,
                              .input = input,
                              .count = count,
                              .all_steps = rule->payload && reward_wants_steps(rule->payload),
                              .readings = readings,
                              .step_scores = step_scores,
                              .asks = json_array()};

    for (size_t i = 0; i < count; i++)
        hear(&hearing, i);
    verdict->detail = json_pack("{s:o}", "asks", hearing.asks);
    note_engine(&hearing, verdict);
    if (hearing.problem.code)
        verdict_fail(verdict, hearing.problem.code, "%s", hearing.problem.message);
    else
        conclude_all(&hearing, verdict);
}
