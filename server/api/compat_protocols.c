/* The protocols of OpenRLHF, slime and NeMo Gym: their requests as samples, and their replies. */
#include "server/api/compat_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/base/json_big.h"
#include "server/settings/settings.h"
#include "server/verify/pool.h"
#include "verifiers/registry.h"

#define REFUSE "refuse" /* the value of compat.failed that is no number */

/* The number of a completion without a reward, where the protocol has no word for it. False: refused. */
static bool settle(struct call *call, struct outcome *outcome, size_t *failed)
{
    const char *number = call->settings->compat_failed;

    if (!isnan(outcome->value))
        return true;
    ++*failed;
    if (strcmp(number, REFUSE) == 0) {
        call_refuse_as(call, ERR_NOT_JUDGED, outcome->code, "%s", outcome->message);
        return false;
    }
    outcome->value = strtod(number, NULL);
    return true;
}

/* --- OpenRLHF: {"query": [prompt + completion], "prompts": […], "labels": […]} --- */

struct openrlhf_fields {
    json_t *query;
    json_t *prompts;
    json_t *labels;
};

static const struct field openrlhf_fields[] = {
    {"query", FIELD_ANY, FIELD_REQUIRED, offsetof(struct openrlhf_fields, query), 0, 0, NULL},
    {"prompts", FIELD_ANY, FIELD_REQUIRED, offsetof(struct openrlhf_fields, prompts), 0, 0, NULL},
    {"labels", FIELD_ANY, 0, offsetof(struct openrlhf_fields, labels), 0, 0, NULL},
};

/* One value counts as a list of one. NULL: it is none. */
static const json_t *value_at(const json_t *values, size_t index)
{
    return json_is_array(values) ? json_array_get(values, index) : index == 0 ? values : NULL;
}

static size_t size_of(const json_t *values)
{
    return json_is_array(values) ? json_array_size(values) : values ? 1 : 0;
}

static bool begins_with(struct text text, struct text beginning)
{
    return text.length_bytes >= beginning.length_bytes &&
           memcmp(text.data, beginning.data, beginning.length_bytes) == 0;
}

static int check_openrlhf(struct call *call, const struct openrlhf_fields *read, size_t count)
{
    if (count > VERIFY_ITEMS_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "query", "expected at most %d texts", VERIFY_ITEMS_MAX);
    if (size_of(read->prompts) != count)
        return call_refuse(call, ERR_INVALID_FIELD, "prompts", "expected as many as in query, %zu", count);
    if (read->labels && size_of(read->labels) != count)
        return call_refuse(call, ERR_INVALID_FIELD, "labels", "expected as many as in query, %zu", count);
    return 0;
}

static int read_openrlhf(struct intake *intake)
{
    struct json_input *input = intake->input;
    struct openrlhf_fields read = {0};
    char path[PATH_BYTES];

    if (json_read_object(input, input->root, "", openrlhf_fields, ARRAY_LENGTH(openrlhf_fields), &read) < 0)
        return -1;
    size_t count = size_of(read.query);
    if (check_openrlhf(input->call, &read, count) < 0)
        return -1;
    intake->rewards->is_one = count == 1;
    intake_begin(intake, count);
    for (size_t i = 0; i < count; i++) {
        struct text query = json_text_of(value_at(read.query, i));
        struct text prompt = json_text_of(value_at(read.prompts, i));
        path_index(path, "", "query", i);
        if (!query.data || !prompt.data)
            return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected texts in query and prompts");
        if (!begins_with(query, prompt))
            return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected a text that begins with its prompt");
        if (intake_add(intake,
                       &(struct compat_sample){.completion = (struct text){query.data + prompt.length_bytes,
                                                                           query.length_bytes - prompt.length_bytes},
                                               .prompt = prompt,
                                               .asked = value_at(read.prompts, i)},
                       value_at(read.labels, i)) < 0)
            return -1;
    }
    return 0;
}

static void put_numbers(struct json_write *json, const char *name, const double *values, size_t count, bool is_one)
{
    json_key(json, name);
    if (!is_one)
        json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        json_double(json, values[i]);
    if (!is_one)
        json_array_end(json);
}

static void write_openrlhf(const struct graded *graded)
{
    const struct rewards *rewards = graded->rewards;
    struct call *call = graded->call;
    size_t count = rewards->count;
    _cleanup_free_ double *values = xcalloc(count ? count : 1, sizeof *values);
    size_t failed = 0;
    struct json_write json;

    for (size_t i = 0; i < count; i++) {
        _cleanup_(outcome_finish) struct outcome outcome;
        if (!graded->find(graded, i, &outcome) || !settle(call, &outcome, &failed))
            return;
        values[i] = outcome.value;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    put_numbers(&json, "rewards", values, count, rewards->is_one);
    put_numbers(&json, "scores", values, count, rewards->is_one);
    json_key(&json, "extra_logs");
    json_object_begin(&json);
    json_put_double(&json, "rolloutd_failed", count ? (double)failed / (double)count : 0);
    json_object_end(&json);
    json_object_end(&json);
    call_answer_json(call, 200);
}

const struct protocol compat_openrlhf = {.setting = "compat.openrlhf",
                                         .path = "/compat/openrlhf/get_reward",
                                         .offset = offsetof(struct settings, compat_openrlhf),
                                         .read = read_openrlhf,
                                         .write = write_openrlhf};

/* --- slime: {"prompt", "response", "label"} -> the number --- */

struct slime_fields {
    json_t *prompt;
    struct text response;
    json_t *label;
};

static const struct field slime_fields[] = {
    {"prompt", FIELD_ANY, 0, offsetof(struct slime_fields, prompt), 0, 0, NULL},
    {"response", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct slime_fields, response), 0, 0, NULL},
    {"label", FIELD_ANY, 0, offsetof(struct slime_fields, label), 0, 0, NULL},
};

static int read_slime(struct intake *intake)
{
    struct json_input *input = intake->input;
    struct slime_fields read = {0};

    if (json_read_object(input, input->root, "", slime_fields, ARRAY_LENGTH(slime_fields), &read) < 0)
        return -1;
    intake_begin(intake, 1);
    return intake_add(
        intake,
        &(struct compat_sample){.completion = read.response, .prompt = json_text_of(read.prompt), .asked = read.prompt},
        read.label);
}

static void write_slime(const struct graded *graded)
{
    _cleanup_(outcome_finish) struct outcome outcome;
    struct call *call = graded->call;
    size_t failed = 0;
    struct json_write json;

    if (!graded->find(graded, 0, &outcome) || !settle(call, &outcome, &failed))
        return;
    if (failed)
        snprintf(call->reply.failed, sizeof call->reply.failed, "%s", outcome.code);
    json_write_init(&json, &call->reply.body);
    json_double(&json, outcome.value);
    call_answer_json(call, 200);
}

const struct protocol compat_slime = {.setting = "compat.slime",
                                      .path = "/compat/slime/rm",
                                      .offset = offsetof(struct settings, compat_slime),
                                      .read = read_slime,
                                      .write = write_slime};

/* --- NeMo Gym: {"response": {"output": [{"type": "message", "content": [{"type": "output_text", "text"}]}]},
 * "expected_answer", …} -> the same with the reward; a failure is masked --- */

static bool is_type(const json_t *object, const char *type)
{
    return text_equals(json_text_of(json_object_get(object, "type")), type);
}

/* The texts of a message; its other parts, a refusal for example, have none. False: it is none. */
static bool read_message(const json_t *message, struct buffer *text_out)
{
    const json_t *content = json_object_get(message, "content");
    const json_t *part;
    size_t i;

    json_array_foreach (content, i, part) {
        struct text text = json_text_of(json_object_get(part, "text"));
        if (!is_type(part, "output_text"))
            continue;
        if (!text.data)
            return false;
        buffer_append(text_out, text.data, text.length_bytes);
    }
    return json_is_array(content);
}

/* The text of all messages of the model: none where it was cut off in its reasoning, or called a tool. False: the output has
 * another form. */
static bool said(const json_t *body, struct buffer *ret_text)
{
    const json_t *outputs = json_object_get(json_object_get(body, "response"), "output");
    const json_t *output;
    size_t i;

    json_array_foreach (outputs, i, output)
        if (!json_is_string(json_object_get(output, "type")) ||
            (is_type(output, "message") && !read_message(output, ret_text)))
            return false;
    return json_is_array(outputs);
}

/* The user's question: a text, or the last message of the user that is one. */
static struct text asked(const json_t *body)
{
    const json_t *input = json_object_get(json_object_get(body, "responses_create_params"), "input");
    struct text found = json_text_of(input);
    const json_t *message;
    size_t i;

    json_array_foreach (input, i, message)
        if (text_equals(json_text_of(json_object_get(message, "role")), "user"))
            found = json_text_of(json_object_get(message, "content"));
    return found;
}

static int read_nemo_gym(struct intake *intake)
{
    struct json_input *input = intake->input;

    if (!json_is_object(input->root))
        return call_refuse(input->call, ERR_INVALID_FIELD, NULL, "expected an object");
    if (!said(input->root, &intake->text))
        return call_refuse(input->call, ERR_INVALID_FIELD, "response.output",
                           "expected a list of items with a type, messages with texts of type output_text among them");
    intake->rewards->body = json_incref(input->root);
    intake_begin(intake, 1);
    return intake_add(intake,
                      &(struct compat_sample){
                          .completion = buffer_text(&intake->text),
                          .prompt = asked(input->root),
                          .asked = json_object_get(json_object_get(input->root, "responses_create_params"), "input")},
                      json_object_get(input->root, "expected_answer"));
}

/* The members that Gym's own servers give a sample without a reward: Gym keeps it out of its rollouts and metrics, and asks
 * again. Kinds outside of Gym's list have a prefix. Older trainers look into instance_config. */
static void set_failure(json_t *reply, const struct outcome *outcome)
{
    char kind[VERIFY_CODE_BYTES + 16];
    char whole[VERIFY_CODE_BYTES + VERDICT_MESSAGE_BYTES + 2];
    json_t *config = json_copy(json_object_get(reply, "instance_config"));

    if (!json_is_object(config)) {
        json_decref(config);
        config = json_object();
    }
    snprintf(kind, sizeof kind, "rolloutd:%s", outcome->code);
    snprintf(whole, sizeof whole, "%s: %s", outcome->code, outcome->message);
    json_object_set_new(config, "mask_sample", json_true());
    json_object_set_new(reply, "instance_config", config);
    json_object_set_new(reply, "failure_kind", json_string(kind));
    json_object_set_new(reply, "failure_reason", json_string(whole));
    json_object_set_new(reply, "_ng_failure_class", json_string("judge_failed"));
    json_object_set_new(reply, "_ng_failure_judge_error", json_string(whole));
}

/* A request may be a reply of before: the failure in it is over. */
static void set_success(json_t *reply)
{
    json_object_set_new(reply, "failure_kind", json_null());
    json_object_set_new(reply, "failure_reason", json_null());
    json_object_del(reply, "_ng_failure_class");
    json_object_del(reply, "_ng_failure_judge_error");
}

static void write_nemo_gym(const struct graded *graded)
{
    _cleanup_(outcome_finish) struct outcome outcome;
    struct call *call = graded->call;

    if (!graded->find(graded, 0, &outcome))
        return;
    bool failed = isnan(outcome.value) != 0;
    json_t *reply = json_copy(graded->rewards->body);
    json_object_set_new(reply, "reward", json_real(failed ? 0 : outcome.value)); /* masked: a number is needed */
    json_object_set(reply, "reward_components", outcome.components);
    json_object_set_new(reply, "mask_sample", json_boolean(failed));
    if (failed)
        set_failure(reply, &outcome);
    else
        set_success(reply);
    _cleanup_free_ char *text = json_big_dump(reply, JSON_COMPACT);
    json_decref(reply);
    buffer_append_string(&call->reply.body, text);
    call_answer_json(call, 200);
}

const struct protocol compat_nemo_gym = {.setting = "compat.nemo_gym",
                                         .path = "/compat/nemo_gym/verify",
                                         .offset = offsetof(struct settings, compat_nemo_gym),
                                         .read = read_nemo_gym,
                                         .write = write_nemo_gym};
