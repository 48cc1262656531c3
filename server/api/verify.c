/* The parts of POST /v1/verify that run on worker threads, and GET /v1/verifiers. */
#include "server/api/verify.h"
#include "server/base/json_big.h"

#include <stdio.h>

#include "server/api/routes.h"
#include "server/api/verify_private.h"
#include "server/base/blocks.h"
#include "server/input/input.h"
#include "server/spec/task.h"
#include "verifiers/registry.h"

#define ITEM_ID_BYTES 256
#define VERDICTS_BYTES 512        /* of an item, as they come from a text worker */
#define OWN_LIST_BYTES 1024       /* of an item with verifiers of its own */
#define UNREAD_BYTES (256 * 1024) /* verdicts of a list that could not be read; longer ones are left out */

/* --- reading --- */

struct request_fields {
    json_t *verifiers;
    json_t *items;
    int missing;
};

static const struct field request_fields[] = {
    {"verifiers", FIELD_ARRAY, 0, offsetof(struct request_fields, verifiers), 0, 0, NULL},
    {"items", FIELD_ARRAY, FIELD_REQUIRED, offsetof(struct request_fields, items), 0, 0, NULL},
    {"missing", FIELD_CHOICE, 0, offsetof(struct request_fields, missing), 0, 0, reward_missing_names},
};

struct item_fields {
    struct text id;
    struct text completion;
    struct text prompt;
    json_t *reference;
    int64_t completion_tokens;
    json_t *verifiers;
    struct text set;
    struct text task;
    json_t *metadata;
};

static const struct field item_fields[] = {
    {"id", FIELD_TEXT, 0, offsetof(struct item_fields, id), 0, ITEM_ID_BYTES, NULL},
    {"completion", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct item_fields, completion), 0, 0, NULL},
    {"prompt", FIELD_TEXT, FIELD_NULLABLE, offsetof(struct item_fields, prompt), 0, 0, NULL},
    {"reference", FIELD_ANY, 0, offsetof(struct item_fields, reference), 0, 0, NULL},
    {"completion_tokens", FIELD_INT, FIELD_NULLABLE, offsetof(struct item_fields, completion_tokens), 0, 0x1p53, NULL},
    {"verifiers", FIELD_ARRAY, 0, offsetof(struct item_fields, verifiers), 0, 0, NULL},
    {"set", FIELD_TEXT, 0, offsetof(struct item_fields, set), 0, 0, NULL},
    {"task", FIELD_TEXT, 0, offsetof(struct item_fields, task), 0, 0, NULL},
    {"metadata", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct item_fields, metadata), 0, 0, NULL},
};

void verify_item_fail(struct verify_item *item, const char *code, const char *message, bool retryable)
{
    item->failed = true;
    item->failure = (struct verdict_record){.kind = VERDICT_UNSCORED, .retryable = retryable};
    snprintf(item->failure.failure_code, sizeof item->failure.failure_code, "%s", code);
    snprintf(item->failure.failure_message, sizeof item->failure.failure_message, "%s", message);
}

/* The error of an item's own verifiers stands in the envelope that its refusal wrote. */
static void fail_from_envelope(struct verify_item *item, const struct call *refused)
{
    struct text body = buffer_text(&refused->reply.body);
    json_t *root = json_loadb(body.data, body.length_bytes, JSON_ALLOW_NUL, NULL);
    const json_t *error = json_object_get(root, "error");
    const char *path = json_string_value(json_object_get(error, "path"));
    const char *message = json_string_value(json_object_get(error, "message"));
    char shown[VERDICT_MESSAGE_BYTES];

    snprintf(shown, sizeof shown, "%s%s%s", path ? path : "", path ? ": " : "", message ? message : "");
    verify_item_fail(item, error ? json_string_value(json_object_get(error, "code")) : "verifier_options", shown,
                     false);
    json_decref(root);
}

/* Verdicts for a list that could not be read: what is known of each entry, and the failure. */
static void write_unread_verdicts(const json_t *list, struct verify_item *item)
{
    struct json_write json;
    size_t i;
    const json_t *entry;

    buffer_init(&item->unread_verdicts, UNREAD_BYTES);
    json_write_init(&json, &item->unread_verdicts);
    json_array_begin(&json);
    json_array_foreach (list, i, entry) {
        struct text name = json_text_of(json_object_get(entry, "name"));
        struct text id = json_text_of(json_object_get(entry, "id"));
        json_object_begin(&json);
        json_put_text(&json, "id", id.data ? id : name);
        json_put_text(&json, "name", name);
        json_put_null(&json, "version");
        json_put_null(&json, "options_sha256");
        json_put_null(&json, "score");
        json_put_string(&json, "verdict", verdict_kind_names[VERDICT_UNSCORED]);
        json_put_string(&json, "reason", item->failure.failure_code);
        json_put_null(&json, "detail");
        json_key(&json, "failure");
        verify_failure_write(&json, &item->failure);
        json_put_int(&json, "duration_us", 0);
        json_object_end(&json);
    }
    json_array_end(&json);
}

void verify_item_read_list(const struct json_input *input, const json_t *value, const char *path,
                           struct verify_item *item)
{
    struct json_input own = *input;
    struct call scratch;

    call_init(&scratch);
    scratch.request_id = input->call->request_id;
    own.call = &scratch;
    item->list = verifier_list_read(&own, value, path);
    if (!item->list) {
        fail_from_envelope(item, &scratch);
        write_unread_verdicts(value, item);
    }
    call_finish(&scratch);
}

void verify_item_build(struct verify_item *item, const struct verify_subject *subject, const json_t *reference)
{
    struct verify_subject whole = *subject;
    bool has_reference = reference && !json_is_null(reference);
    _cleanup_free_ char *text = has_reference ? json_big_dump(reference, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    buffer_init(&item->frame, verifier_list_frame_limit_bytes(item->list) + FRAME_SLACK_BYTES);
    whole.reference_json = text_of(text);
    if (verify_request_build(item->list, &whole, &item->frame) < 0) {
        buffer_finish(&item->frame);
        verify_item_fail(item, "verifier_input_too_large",
                         "the completion and its reference are larger than a worker reads", false);
    }
}

static int refuse_item(struct call *call, const char *path, const char *name, enum error_code code, const char *message)
{
    char where[PATH_BYTES];
    path_join(where, path, name);
    return call_refuse(call, code, where, "%s", message);
}

/* The fields that an item takes from a task of a set. */
struct item_task {
    json_t *prompt;
    json_t *reference;
    struct text messages_json; /* owned, as the next one */
    struct text metadata_json;
};

static void item_task_finish(struct item_task *task)
{
    json_decref(task->prompt);
    json_decref(task->reference);
    free((char *)(uintptr_t)task->messages_json.data);
    free((char *)(uintptr_t)task->metadata_json.data);
}

static struct text copy_text(struct text text)
{
    return text.data ? (struct text){xstrndup(text.data, text.length_bytes), text.length_bytes} : TEXT_NONE;
}

static int take_task(struct call *call, const char *path, struct item_fields *read, struct item_task *ret_task)
{
    _cleanup_(store_tasks_finish) struct store_tasks found = {0};
    if (!read->set.data && !read->task.data)
        return 0;
    if (!read->set.data || !read->task.data)
        return refuse_item(call, path, read->set.data ? "task" : "set", ERR_MISSING_FIELD,
                           "`set` and `task` name a task together");
    if (read->prompt.data || read->reference)
        return refuse_item(call, path, read->prompt.data ? "prompt" : "reference", ERR_INVALID_FIELD,
                           "the task of the set has it");
    if (read->metadata)
        return refuse_item(call, path, "metadata", ERR_INVALID_FIELD, "the task of the set has it");
    if (task_find(call, read->set, read->task, path, &found) < 0)
        return -1;
    ret_task->prompt = task_value(found.tasks[0].prompt);
    if (found.tasks[0].chat)
        ret_task->messages_json = copy_text(found.tasks[0].prompt);
    else
        read->prompt = json_text_of(ret_task->prompt);
    ret_task->metadata_json = copy_text(found.tasks[0].metadata);
    if (found.tasks[0].reference.data)
        read->reference = ret_task->reference = task_value(found.tasks[0].reference);
    return 0;
}

static void build_item(struct verify_item *item, const struct item_fields *read, const struct item_task *task)
{
    _cleanup_free_ char *metadata = read->metadata ? json_big_dump(read->metadata, JSON_COMPACT) : NULL;

    verify_item_build(item,
                      &(struct verify_subject){.completion = read->completion,
                                               .prompt = read->prompt,
                                               .completion_tokens = read->completion_tokens,
                                               .id = read->id,
                                               .task = read->task,
                                               .messages_json = task->messages_json,
                                               .metadata_json = metadata ? text_of(metadata) : task->metadata_json},
                      read->reference);
}

static int read_item(struct json_input *input, const json_t *value, size_t index, struct verify_request *request)
{
    struct verify_item *item = &request->items[index];
    struct item_fields read = {.completion_tokens = -1};
    _cleanup_(item_task_finish) struct item_task task = {0};
    char path[PATH_BYTES];
    char own[PATH_BYTES];

    path_index(path, "", "items", index);
    path_join(own, path, "verifiers");
    if (json_read_object(input, value, path, item_fields, ARRAY_LENGTH(item_fields), &read) < 0)
        return -1;
    if (!read.verifiers && !request->shared)
        return call_refuse(input->call, ERR_MISSING_FIELD, own,
                           "the request has no `verifiers` of its own, so every item needs some");
    if (read.id.data)
        item->id = (struct text){xstrndup(read.id.data, read.id.length_bytes), read.id.length_bytes};
    if (read.verifiers)
        verify_item_read_list(input, read.verifiers, own, item);
    else
        item->list = verifier_list_ref(request->shared);
    if (take_task(input->call, path, &read, &task) < 0)
        return -1;
    if (item->list)
        build_item(item, &read, &task);
    return 0;
}

static int read_items(struct json_input *input, const json_t *items, struct verify_request *request)
{
    size_t count = json_array_size(items);
    size_t i;
    const json_t *value;

    if (count > VERIFY_ITEMS_MAX)
        return call_refuse(input->call, ERR_INVALID_FIELD, "items", "expected at most %d items", VERIFY_ITEMS_MAX);
    request->items = xcalloc(count ? count : 1, sizeof request->items[0]);
    request->count = count;
    json_array_foreach (items, i, value)
        if (read_item(input, value, i, request) < 0)
            return -1;
    return 0;
}

static int read_request(struct json_input *input, struct verify_request *request)
{
    struct request_fields read = {.missing = REWARD_MISSING_NULL};

    if (json_read_object(input, input->root, "", request_fields, ARRAY_LENGTH(request_fields), &read) < 0)
        return -1;
    request->missing = (enum reward_missing)read.missing;
    if (read.verifiers) {
        request->shared = verifier_list_read(input, read.verifiers, "verifiers");
        if (!request->shared)
            return -1;
    }
    return read_items(input, read.items, request);
}

void verify_request_drop_items(struct verify_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        struct verify_item *item = &request->items[i];
        free((char *)(uintptr_t)item->id.data);
        verifier_list_unref(item->list);
        buffer_finish(&item->frame);
        buffer_finish(&item->unread_verdicts);
        verify_job_finish(&item->job);
    }
    free(TAKE_PTR(request->items));
    request->count = 0;
}

void verify_request_destroy(void *parsed)
{
    struct verify_request *request = parsed;

    verify_request_drop_items(request);
    verifier_list_unref(request->shared);
    if (request->about)
        request->about_destroy(request->about);
    free(request);
}

void verify_parse(struct call *call)
{
    struct verify_request *request;
    struct json_input input;

    if (json_input_init(&input, call, NULL) < 0)
        return;
    request = xcalloc(1, sizeof *request);
    request->write = verify_render;
    if (read_request(&input, request) < 0) {
        verify_request_destroy(request);
    } else {
        call->parsed = request;
        call->parsed_destroy = verify_request_destroy;
    }
    json_input_finish(&input);
    block_give(TAKE_PTR(call->body)); /* the frames have what is needed of it */
}

size_t verify_bytes(const struct verify_request *request)
{
    size_t bytes = sizeof(*request) + request->about_bytes;

    for (size_t i = 0; i < request->count; i++) {
        const struct verify_item *item = &request->items[i];
        bool own_list = item->list && item->list != request->shared;
        bytes += sizeof(*item) + item->frame.capacity_bytes + item->unread_verdicts.capacity_bytes + VERDICTS_BYTES +
                 (own_list ? OWN_LIST_BYTES : 0);
    }
    return bytes;
}

/* --- rendering --- */

void verify_item_verdicts(const struct verify_item *item, struct verdict_set *ret_set)
{
    const struct verify_job *job = &item->job;

    if (item->failed)
        verdict_set_fail(item->list, item->failure.failure_code, item->failure.failure_message, item->failure.retryable,
                         ret_set);
    else
        verdict_set_read(job, ret_set);
}

static void write_judged(struct json_write *json, const struct verify_item *item, enum reward_missing missing)
{
    struct verdict_set set;
    struct reward reward;

    verify_item_verdicts(item, &set);
    verdict_set_count(&set, item->list);
    reward = reward_combine(item->list, &set, missing);
    json_put_double(json, "reward", reward.value);
    json_key(json, "rewards");
    rewards_write(json, item->list, &set);
    json_key(json, "heldout");
    heldout_write(json, item->list, &set);
    json_key(json, "verdicts");
    verdict_set_write(json, item->list, &set);
    json_key(json, "failure");
    verify_failure_write(json, reward.failure);
    verdict_set_finish(&set);
}

static void write_unread(struct json_write *json, const struct verify_item *item)
{
    bool whole = item->unread_verdicts.length_bytes && !item->unread_verdicts.failed;

    json_put_null(json, "reward");
    json_put_raw(json, "rewards", TEXT_LITERAL("{}"));
    json_put_raw(json, "heldout", TEXT_LITERAL("{}"));
    json_put_raw(json, "verdicts", whole ? buffer_text(&item->unread_verdicts) : TEXT_LITERAL("[]"));
    json_key(json, "failure");
    verify_failure_write(json, &item->failure);
}

void verify_render(const struct verify_request *request, struct call *call)
{
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < request->count; i++) {
        const struct verify_item *item = &request->items[i];
        json_object_begin(&json);
        json_put_text(&json, "id", item->id);
        if (item->list)
            write_judged(&json, item, request->missing);
        else
            write_unread(&json, item);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    call_answer_json(call, 200);
}
