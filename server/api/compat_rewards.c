/* The routes under /compat/openrlhf, /compat/slime and /compat/nemo_gym: their verifiers, and the outcomes of samples that are
 * graded only. The protocols are in compat_protocols.c. */
#include "server/api/compat_rewards.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/api/batches.h"
#include "server/api/compat_private.h"
#include "server/api/routes.h"
#include "server/api/verify_private.h"
#include "server/base/blocks.h"
#include "server/base/json_big.h"
#include "server/input/memory.h"
#include "server/settings/settings.h"
#include "verifiers/registry.h"

#define REFUSE "refuse" /* the value of compat.failed that is no number */

void rewards_destroy(void *about)
{
    struct rewards *rewards = about;

    json_decref(rewards->body);
    free(rewards);
}

/* --- verifiers --- */

/* The list behind ?verifiers=NAME, or the route's own. NULL with the call refused. A new reference. */
static json_t *named_verifiers(struct call *call, const struct protocol *protocol)
{
    static const char *const known[] = {"verifiers", "run", NULL};
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

/* A text of JSON as a tree within the memory of trees. NULL: it is none. *ret_fits: false: there is no memory for it. */
static json_t *load_label(struct intake *intake, const json_t *label, bool *ret_fits)
{
    struct text text = json_text_of(label);
    size_t held_bytes;

    json_memory_begin();
    json_t *read = json_big_load(text, JSON_ALLOW_NUL, NULL);
    *ret_fits = json_memory_end(&held_bytes) == JSON_MEMORY_FITS;
    if (brings_verifiers(read)) {
        intake->own_bytes += held_bytes;
        return read;
    }
    json_decref(read);
    json_memory_give(held_bytes);
    return NULL;
}

/* Trainers whose labels are texts write such a label as JSON. Anything else is what it is. NULL with the call refused. */
static const json_t *label_of(struct intake *intake, const json_t *label)
{
    bool fits;

    if (!json_is_string(label) || *json_string_value(label) != '{')
        return label;
    json_t *read = load_label(intake, label, &fits);
    if (!fits)
        call_refuse(intake->input->call, ERR_QUEUE_FULL, "label", "other requests use up memory_budget; try again");
    if (!read)
        return fits ? label : NULL;
    if (!intake->own)
        intake->own = json_array();
    json_array_append_new(intake->own, read);
    return read;
}

void intake_begin(struct intake *intake, size_t count)
{
    intake->samples = xcalloc(count ? count : 1, sizeof intake->samples[0]);
}

int intake_add(struct intake *intake, const struct compat_sample *sample, const json_t *label)
{
    struct compat_sample *added = &intake->samples[intake->rewards->count++];
    const json_t *read = label ? label_of(intake, label) : NULL;

    *added = *sample;
    if (label && !read)
        return -1;
    if (brings_verifiers(read)) {
        added->verifiers = json_object_get(read, "verifiers");
        read = json_object_get(read, "reference");
    }
    added->reference = json_is_null(read) ? NULL : read;
    return 0;
}

/* --- samples that are graded only --- */

static void grade(struct verify_request *request, struct json_input *input, const struct compat_sample *sample)
{
    struct verify_item *item = &request->items[request->count++];

    if (sample->verifiers)
        verify_item_read_list(input, sample->verifiers, "label.verifiers", item);
    else
        item->list = verifier_list_ref(request->shared);
    if (item->list)
        verify_item_build(item,
                          &(struct verify_subject){
                              .completion = sample->completion, .prompt = sample->prompt, .completion_tokens = -1},
                          sample->reference);
}

void outcome_finish(struct outcome *outcome)
{
    json_decref(outcome->components);
}

void outcome_settle(struct outcome *outcome)
{
    if (isnan(outcome->value) && !outcome->code[0]) {
        snprintf(outcome->code, sizeof outcome->code, "no_reward");
        snprintf(outcome->message, sizeof outcome->message, "no verifier gives a reward");
    }
}

static void take_failure(struct outcome *outcome, const struct verdict_record *failure)
{
    snprintf(outcome->code, sizeof outcome->code, "%s", failure->failure_code);
    snprintf(outcome->message, sizeof outcome->message, "%s", failure->failure_message);
}

static void add_components(struct outcome *outcome, const struct verifier_list *list, const struct verdict_set *set)
{
    for (size_t i = 0; i < list->count; i++) {
        bool scored = set->verdicts[i].kind != VERDICT_UNSCORED;
        json_object_set_new(outcome->components, list->specs[i].id,
                            scored ? json_real(set->verdicts[i].score) : json_null());
    }
}

static bool find_item(const struct graded *graded, size_t index, struct outcome *ret_outcome)
{
    const struct verify_request *request = graded->of;
    const struct verify_item *item = &request->items[index];
    struct verdict_set set;

    *ret_outcome = (struct outcome){.value = NAN, .components = json_object()};
    take_failure(ret_outcome, &item->failure);
    if (item->list) {
        verify_item_verdicts(item, &set);
        verdict_set_count(&set, item->list);
        struct reward reward = reward_combine(item->list, &set, REWARD_MISSING_NULL);
        ret_outcome->value = reward.value;
        if (reward.failure)
            take_failure(ret_outcome, reward.failure);
        add_components(ret_outcome, item->list, &set);
        verdict_set_finish(&set);
    }
    outcome_settle(ret_outcome);
    return true;
}

static void write_items(const struct verify_request *request, struct call *call)
{
    const struct rewards *rewards = request->about;

    rewards->protocol->write(&(struct graded){.rewards = rewards, .call = call, .find = find_item, .of = request});
}

static struct verify_request *make_request(struct intake *intake, struct verifier_list *shared)
{
    struct verify_request *request = xcalloc(1, sizeof *request);

    request->write = write_items;
    request->about = intake->rewards;
    request->about_destroy = rewards_destroy;
    request->about_bytes = sizeof(struct rewards) + intake->input->call->body_bytes;
    request->shared = verifier_list_ref(shared);
    request->items = xcalloc(intake->rewards->count ? intake->rewards->count : 1, sizeof request->items[0]);
    for (size_t i = 0; i < intake->rewards->count; i++)
        grade(request, intake->input, &intake->samples[i]);
    return request;
}

/* --- the routes --- */

/* The samples become the call's `parsed`, or the body of a score. */
static void take_samples(struct intake *intake, const json_t *list, struct verifier_list *shared, char **ret_score)
{
    struct call *call = intake->input->call;
    struct text run = call_query(call, "run");

    if (run.data) {
        *ret_score = compat_score_body(intake, run, list, shared);
        return;
    }
    call->parsed = make_request(intake, shared);
    call->parsed_destroy = verify_request_destroy;
}

/* 0: the samples have become something, and the rewards are theirs. -1: the call is refused. */
static int read_request(struct intake *intake, char **ret_score)
{
    struct call *call = intake->input->call;
    const struct protocol *protocol = intake->rewards->protocol;
    struct json_input from_settings = *intake->input;
    json_t *list = named_verifiers(call, protocol);
    struct text run = call_query(call, "run");
    int result = -1;

    if (list && (!run.data || compat_check_run(call, run) == 0)) {
        struct verifier_list *shared = verifier_list_read(&from_settings, list, protocol->setting);
        result = shared ? protocol->read(intake) : -1;
        if (result == 0)
            take_samples(intake, list, shared, ret_score);
        verifier_list_unref(shared);
    }
    json_decref(list);
    return result;
}

static void parse(struct call *call, const struct protocol *protocol)
{
    struct json_input input;
    struct intake intake = {.input = &input};
    char *score = NULL;

    if (json_input_init(&input, call, NULL) < 0)
        return;
    intake.rewards = xcalloc(1, sizeof *intake.rewards);
    intake.rewards->protocol = protocol;
    buffer_init(&intake.text, VERIFIER_PROGRAM_FRAME_LIMIT_BYTES);
    if (read_request(&intake, &score) < 0)
        rewards_destroy(intake.rewards);
    buffer_finish(&intake.text);
    free(intake.samples);
    json_decref(intake.own);
    json_memory_give(intake.own_bytes);
    json_input_finish(&input);
    block_give(TAKE_PTR(call->body));
    if (score)
        compat_record(call, score, intake.rewards);
}

void openrlhf_parse(struct call *call)
{
    parse(call, &compat_openrlhf);
}

void slime_parse(struct call *call)
{
    parse(call, &compat_slime);
}

void nemo_gym_parse(struct call *call)
{
    parse(call, &compat_nemo_gym);
}

void rewards_on_loop(void *owner, struct request *client)
{
    if (request_call(client)->answer_batch)
        create_batch(owner, client);
    else
        verify_on_loop(owner, client);
}

/* Sessions hold nothing here: a request that names one gets its name back. */
void nemo_gym_session(struct call *call)
{
    struct json_input input;
    json_t *list = named_verifiers(call, &compat_nemo_gym);
    struct text run = call_query(call, "run");
    bool known = list && (!run.data || compat_check_run(call, run) == 0);

    json_decref(list);
    if (!known || json_input_init(&input, call, NULL) < 0)
        return;
    struct text session = json_text_of(json_object_get(input.root, "resources_session_id"));
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    if (session.data)
        json_put_text(&json, "resources_session_id", session);
    json_object_end(&json);
    json_input_finish(&input);
    call_answer_json(call, 200);
}

/* The same request is judged the same way at any time. */
void nemo_gym_reverify_mode(struct call *call)
{
    json_t *list = named_verifiers(call, &compat_nemo_gym);

    if (!list)
        return;
    json_decref(list);
    buffer_append_string(&call->reply.body, "\"stateless\"");
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
    static const struct protocol *const protocols[] = {&compat_openrlhf, &compat_slime, &compat_nemo_gym};

    for (size_t i = 0; i < ARRAY_LENGTH(protocols); i++)
        if (check_text(settings, protocols[i]->setting,
                       *(char *const *)(const void *)((const char *)settings + protocols[i]->offset), ret_message) < 0)
            return -1;
    if (check_sets(settings, ret_message) < 0)
        return -1;
    return check_failed(settings->compat_failed, ret_message);
}
