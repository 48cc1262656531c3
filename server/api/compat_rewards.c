/* POST /compat/openrlhf/get_reward, /compat/slime/rm, /compat/nemo_gym/seed_session and /compat/nemo_gym/verify. */
#include "server/api/compat_rewards.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/routes.h"
#include "server/api/verify_private.h"
#include "server/base/blocks.h"
#include "server/base/json_big.h"
#include "server/input/input.h"
#include "server/settings/settings.h"
#include "verifiers/registry.h"

#define REFUSE "refuse" /* the value of compat.failed that is no number */

/* One completion that is to be judged. Its texts are the request's. */
struct sample {
    struct text completion;
    struct text prompt;
    const json_t *label; /* NULL: none */
};

struct protocol {
    const char *setting; /* its name */
    size_t offset;       /* of its value in the settings, a text */
    /* Reads the body; adds the samples by add_sample(). 0, or -1 with the call refused. */
    int (*read)(struct json_input *input, struct verify_request *request);
    void (*write)(const struct verify_request *request, struct call *call);
};

/* The members of a reply beside the verdicts. */
struct rewards {
    json_t *body; /* NEMO_GYM says again what it was asked; NULL: nothing */
    bool is_one;  /* OPENRLHF: a number is asked for, not a list */
    json_t *own;  /* labels that were texts of JSON, alive until the items are built */
};

static void rewards_destroy(void *about)
{
    struct rewards *rewards = about;

    json_decref(rewards->body);
    json_decref(rewards->own);
    free(rewards);
}

/* --- verifiers --- */

/* The list behind ?verifiers=NAME, or the route's own. NULL with the call refused. A new reference. */
static json_t *named_verifiers(struct call *call, const struct protocol *protocol)
{
    static const char *const known[] = {"verifiers", NULL};
    const char *own = *(char *const *)(const void *)((const char *)call->settings + protocol->offset);
    struct text name = call_query(call, "verifiers");

    if (call_check_query(call, known) < 0)
        return NULL;
    if (!own || !*own) {
        call_refuse(call, ERR_NOT_FOUND, NULL, "%s of the settings is empty: this route is off", protocol->setting);
        return NULL;
    }
    if (!name.data)
        return json_loads(own, JSON_ALLOW_NUL, NULL);
    json_t *sets = call->settings->verifier_sets ? json_loads(call->settings->verifier_sets, 0, NULL) : NULL;
    json_t *found = json_incref(json_object_getn(sets, name.data, name.length_bytes));
    json_decref(sets);
    if (!found)
        call_refuse(call, ERR_NOT_FOUND, "verifiers", "verifier_sets of the settings has no such list");
    return found;
}

/* {"verifiers", "reference"}, and nothing else. */
static bool brings_verifiers(const json_t *label)
{
    size_t known = (json_object_get(label, "verifiers") != NULL) + (json_object_get(label, "reference") != NULL);

    return json_is_array(json_object_get(label, "verifiers")) && json_object_size(label) == known;
}

/* Trainers whose labels are texts write such a label as JSON. Anything else is what it is. */
static const json_t *label_of(const json_t *label, struct rewards *rewards)
{
    if (!json_is_string(label) || *json_string_value(label) != '{')
        return label;
    json_t *read = json_loadb(json_string_value(label), json_string_length(label), JSON_ALLOW_NUL, NULL);
    if (!brings_verifiers(read)) {
        json_decref(read);
        return label;
    }
    if (!rewards->own)
        rewards->own = json_array();
    json_array_append_new(rewards->own, read);
    return read;
}

static void add_sample(struct json_input *input, struct verify_request *request, const struct sample *sample)
{
    struct verify_item *item = &request->items[request->count++];
    const json_t *label = label_of(sample->label, request->about);

    if (brings_verifiers(label)) {
        verify_item_read_list(input, json_object_get(label, "verifiers"), "label.verifiers", item);
        label = json_object_get(label, "reference");
    } else {
        item->list = verifier_list_ref(request->shared);
    }
    if (item->list)
        verify_item_build(item,
                          &(struct verify_subject){
                              .completion = sample->completion, .prompt = sample->prompt, .completion_tokens = -1},
                          label);
}

static void make_items(struct verify_request *request, size_t count)
{
    request->items = xcalloc(count ? count : 1, sizeof request->items[0]);
}

/* --- verdicts --- */

/* Of one item. value: NAN: it has no reward; then `failure` says why. */
struct outcome {
    double value;
    struct verdict_record failure;
    struct verdict_set set;
};

static void outcome_finish(struct outcome *outcome)
{
    verdict_set_finish(&outcome->set);
}

static void find_outcome(const struct verify_item *item, struct outcome *ret_outcome)
{
    *ret_outcome = (struct outcome){.value = NAN, .failure = item->failure};
    if (!item->list)
        return;
    verify_item_verdicts(item, &ret_outcome->set);
    verdict_set_count(&ret_outcome->set, item->list);
    struct reward reward = reward_combine(item->list, &ret_outcome->set, REWARD_MISSING_NULL);
    ret_outcome->value = reward.value;
    if (reward.failure)
        ret_outcome->failure = *reward.failure;
    else if (isnan(reward.value))
        snprintf(ret_outcome->failure.failure_code, VERIFY_CODE_BYTES, "no_reward");
}

/* The number of a completion without a reward, where the protocol has no word for it. False: refused. */
static bool settle(struct call *call, struct outcome *outcome, size_t *failed)
{
    const char *number = call->settings->compat_failed;

    if (!isnan(outcome->value))
        return true;
    ++*failed;
    if (strcmp(number, REFUSE) == 0) {
        const struct verdict_record *failure = &outcome->failure;
        call_refuse_as(call, ERR_NOT_JUDGED, failure->failure_code, "%s", failure->failure_message);
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

static int read_openrlhf(struct json_input *input, struct verify_request *request)
{
    struct openrlhf_fields read = {0};
    char path[PATH_BYTES];

    if (json_read_object(input, input->root, "", openrlhf_fields, ARRAY_LENGTH(openrlhf_fields), &read) < 0)
        return -1;
    size_t count = size_of(read.query);
    if (check_openrlhf(input->call, &read, count) < 0)
        return -1;
    ((struct rewards *)request->about)->is_one = count == 1;
    make_items(request, count);
    for (size_t i = 0; i < count; i++) {
        struct text query = json_text_of(value_at(read.query, i));
        struct text prompt = json_text_of(value_at(read.prompts, i));
        path_index(path, "", "query", i);
        if (!query.data || !prompt.data)
            return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected texts in query and prompts");
        if (!begins_with(query, prompt))
            return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected a text that begins with its prompt");
        add_sample(input, request,
                   &(struct sample){.completion = (struct text){query.data + prompt.length_bytes,
                                                                query.length_bytes - prompt.length_bytes},
                                    .prompt = prompt,
                                    .label = value_at(read.labels, i)});
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

static void write_openrlhf(const struct verify_request *request, struct call *call)
{
    const struct rewards *rewards = request->about;
    _cleanup_free_ double *values = xcalloc(request->count ? request->count : 1, sizeof *values);
    size_t failed = 0;
    struct json_write json;

    for (size_t i = 0; i < request->count; i++) {
        _cleanup_(outcome_finish) struct outcome outcome;
        find_outcome(&request->items[i], &outcome);
        if (!settle(call, &outcome, &failed))
            return;
        values[i] = outcome.value;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    put_numbers(&json, "rewards", values, request->count, rewards->is_one);
    put_numbers(&json, "scores", values, request->count, rewards->is_one);
    json_key(&json, "extra_logs");
    json_object_begin(&json);
    json_put_double(&json, "rolloutd_failed", request->count ? (double)failed / (double)request->count : 0);
    json_object_end(&json);
    json_object_end(&json);
    call_answer_json(call, 200);
}

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

static int read_slime(struct json_input *input, struct verify_request *request)
{
    struct slime_fields read = {0};

    if (json_read_object(input, input->root, "", slime_fields, ARRAY_LENGTH(slime_fields), &read) < 0)
        return -1;
    make_items(request, 1);
    add_sample(input, request,
               &(struct sample){.completion = read.response, .prompt = json_text_of(read.prompt), .label = read.label});
    return 0;
}

static void write_slime(const struct verify_request *request, struct call *call)
{
    _cleanup_(outcome_finish) struct outcome outcome;
    size_t failed = 0;
    struct json_write json;

    find_outcome(&request->items[0], &outcome);
    if (!settle(call, &outcome, &failed))
        return;
    if (failed)
        snprintf(call->reply.failed, sizeof call->reply.failed, "%s", outcome.failure.failure_code);
    json_write_init(&json, &call->reply.body);
    json_double(&json, outcome.value);
    call_answer_json(call, 200);
}

/* --- NeMo Gym: {"response": {"output": [{"type": "message", "content": [{"type": "output_text", "text"}]}]},
 * "expected_answer", …} -> the same with the reward; a failure is masked --- */

static bool is_type(const json_t *object, const char *type)
{
    return text_equals(json_text_of(json_object_get(object, "type")), type);
}

/* The text of all messages of the model. False: there is no such text. */
static bool said(const json_t *body, struct buffer *ret_text)
{
    const json_t *outputs = json_object_get(json_object_get(body, "response"), "output");
    const json_t *output;
    const json_t *part;
    size_t found = 0;
    size_t i;
    size_t j;

    json_array_foreach (outputs, i, output) {
        if (!is_type(output, "message"))
            continue;
        json_array_foreach (json_object_get(output, "content"), j, part) {
            struct text text = json_text_of(json_object_get(part, "text"));
            found += is_type(part, "output_text") && text.data;
            if (is_type(part, "output_text"))
                buffer_append(ret_text, text.data, text.length_bytes);
        }
    }
    return json_is_array(outputs) && (found || json_array_size(outputs) == 0);
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

static int read_nemo_gym(struct json_input *input, struct verify_request *request)
{
    struct rewards *rewards = request->about;
    _cleanup_buffer_ struct buffer text;

    buffer_init(&text, VERIFIER_PROGRAM_FRAME_LIMIT_BYTES);
    if (!json_is_object(input->root))
        return call_refuse(input->call, ERR_INVALID_FIELD, NULL, "expected an object");
    if (!said(input->root, &text))
        return call_refuse(input->call, ERR_INVALID_FIELD, "response.output",
                           "expected messages with texts of type output_text");
    rewards->body = json_incref(input->root);
    make_items(request, 1);
    add_sample(input, request,
               &(struct sample){.completion = buffer_text(&text),
                                .prompt = asked(input->root),
                                .label = json_object_get(input->root, "expected_answer")});
    return 0;
}

static json_t *components_of(const struct verify_item *item, const struct outcome *outcome)
{
    json_t *components = json_object();

    for (size_t i = 0; item->list && i < item->list->count; i++) {
        const struct verdict_record *verdict = &outcome->set.verdicts[i];
        bool scored = verdict->kind != VERDICT_UNSCORED;
        json_object_set_new(components, item->list->specs[i].id, scored ? json_real(verdict->score) : json_null());
    }
    return components;
}

static void write_nemo_gym(const struct verify_request *request, struct call *call)
{
    const struct rewards *rewards = request->about;
    _cleanup_(outcome_finish) struct outcome outcome;
    json_t *reply = json_copy(rewards->body);

    find_outcome(&request->items[0], &outcome);
    bool failed = isnan(outcome.value) != 0;
    json_object_set_new(reply, "reward", json_real(failed ? 0 : outcome.value)); /* masked: a number is needed */
    json_object_set_new(reply, "reward_components", components_of(&request->items[0], &outcome));
    json_object_set_new(reply, "mask_sample", json_boolean(failed));
    json_object_set_new(reply, "failure_kind", failed ? json_string(outcome.failure.failure_code) : json_null());
    json_object_set_new(reply, "failure_reason", failed ? json_string(outcome.failure.failure_message) : json_null());
    _cleanup_free_ char *text = json_big_dump(reply, JSON_COMPACT);
    json_decref(reply);
    buffer_append_string(&call->reply.body, text);
    call_answer_json(call, 200);
}

/* --- the routes --- */

static const struct protocol openrlhf = {"compat.openrlhf", offsetof(struct settings, compat_openrlhf), read_openrlhf,
                                         write_openrlhf};
static const struct protocol slime = {"compat.slime", offsetof(struct settings, compat_slime), read_slime, write_slime};
static const struct protocol nemo_gym = {"compat.nemo_gym", offsetof(struct settings, compat_nemo_gym), read_nemo_gym,
                                         write_nemo_gym};

static int read_request(struct json_input *input, const struct protocol *protocol, struct verify_request *request)
{
    json_t *list = named_verifiers(input->call, protocol);
    struct json_input from_settings = *input;
    int result = -1;

    if (list)
        request->shared = verifier_list_read(&from_settings, list, protocol->setting);
    if (request->shared)
        result = protocol->read(input, request);
    json_decref(list);
    return result;
}

static void parse(struct call *call, const struct protocol *protocol)
{
    struct json_input input;

    if (json_input_init(&input, call, NULL) < 0)
        return;
    struct verify_request *request = xcalloc(1, sizeof *request);
    request->write = protocol->write;
    request->about = xcalloc(1, sizeof(struct rewards));
    request->about_destroy = rewards_destroy;
    if (read_request(&input, protocol, request) < 0) {
        verify_request_destroy(request);
    } else {
        request->about_bytes = sizeof(struct rewards) + call->body_bytes;
        call->parsed = request;
        call->parsed_destroy = verify_request_destroy;
    }
    json_input_finish(&input);
    block_give(TAKE_PTR(call->body));
}

void openrlhf_parse(struct call *call)
{
    parse(call, &openrlhf);
}

void slime_parse(struct call *call)
{
    parse(call, &slime);
}

void nemo_gym_parse(struct call *call)
{
    parse(call, &nemo_gym);
}

/* There is nothing to be made ready. */
void nemo_gym_seed(struct call *call)
{
    json_t *list = named_verifiers(call, &nemo_gym);

    if (!list)
        return;
    json_decref(list);
    buffer_append_string(&call->reply.body, "{}");
    call_answer_json(call, 200);
}

/* --- at the start --- */

/* The refusal of a list, in one line. */
static int check_list(const struct settings *settings, const char *name, const json_t *list, char *ret_message)
{
    struct call scratch;
    struct verifier_list *read;

    call_init(&scratch);
    scratch.settings = settings;
    scratch.request_id = "";
    struct json_input input = {.call = &scratch};
    read = verifier_list_read(&input, list, name);
    if (!read)
        snprintf(ret_message, COMPAT_MESSAGE_BYTES, "%.150s: %.300s", scratch.reply.path ? scratch.reply.path : name,
                 scratch.reply.message ? scratch.reply.message : "expected a list of verifiers");
    verifier_list_unref(read);
    call_finish(&scratch);
    return read ? 0 : -1;
}

static int check_text(const struct settings *settings, const char *name, const char *text, char *ret_message)
{
    json_error_t error;
    json_t *list;

    if (!text || !*text)
        return 0;
    list = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_array(list)) {
        snprintf(ret_message, COMPAT_MESSAGE_BYTES, "%s: expected a list of verifiers as JSON%s%s", name,
                 list ? "" : ": ", list ? "" : error.text);
        json_decref(list);
        return -1;
    }
    int result = check_list(settings, name, list, ret_message);
    json_decref(list);
    return result;
}

static int check_sets(const struct settings *settings, char *ret_message)
{
    const char *text = settings->verifier_sets;
    json_t *sets = json_loads(text && *text ? text : "{}", JSON_REJECT_DUPLICATES, NULL);
    char path[PATH_BYTES];
    const char *name;
    json_t *list;
    int result = 0;

    if (!json_is_object(sets)) {
        snprintf(ret_message, COMPAT_MESSAGE_BYTES, "verifier_sets: expected lists of verifiers by name as JSON");
        result = -1;
    }
    json_object_foreach (sets, name, list) {
        snprintf(path, sizeof path, "verifier_sets.%.100s", name);
        if (result == 0)
            result = check_list(settings, path, list, ret_message);
    }
    json_decref(sets);
    return result;
}

static int check_failed(const char *failed, char *ret_message)
{
    char *end;

    if (strcmp(failed, REFUSE) == 0 || (isfinite(strtod(failed, &end)) && *failed && !*end))
        return 0;
    snprintf(ret_message, COMPAT_MESSAGE_BYTES, "compat.failed: \"%.100s\": expected " REFUSE " or a number", failed);
    return -1;
}

int compat_rewards_check(const struct settings *settings, char ret_message[COMPAT_MESSAGE_BYTES])
{
    static const struct protocol *const protocols[] = {&openrlhf, &slime, &nemo_gym};

    for (size_t i = 0; i < ARRAY_LENGTH(protocols); i++)
        if (check_text(settings, protocols[i]->setting,
                       *(char *const *)(const void *)((const char *)settings + protocols[i]->offset), ret_message) < 0)
            return -1;
    if (check_sets(settings, ret_message) < 0)
        return -1;
    return check_failed(settings->compat_failed, ret_message);
}
