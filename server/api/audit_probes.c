/* POST /v1/audits with `kind: adversarial`: the probes of each task go to the text workers as the items of a verify. */
#include "server/api/audits_private.h"
#include "server/base/json_big.h"

#include "server/api/verify_private.h"
#include "server/base/cleanup.h"
#include "server/reports/audit.h"
#include "server/reports/probes.h"

#include <math.h>
#include <stdio.h>

#define TASKS_MAX 1024
#define BYTES_MAX ((size_t)64 << 20) /* prompt and reference of a task are in the frame of each probe */
#define PROBE_BYTES_MAX ((size_t)16 << 20)

/* One probe of one task; the item of the same index has its frame. */
struct probed {
    size_t task;
    enum probe probe;
    struct buffer completion;
    const char *left_out; /* why there is none; NULL: there is one */
};

struct probed_task {
    char *name;
    size_t name_bytes;
    const char *unreadable; /* id of the first verifier that cannot grade by its reference; NULL: all can */
    char message[VERDICT_MESSAGE_BYTES];
};

struct audit_probes {
    struct probed_task *tasks;
    size_t task_count;
    struct probed *probes; /* [task_count * PROBE_COUNT] */
    size_t bytes;          /* of completions and frames */
};

/* --- reading --- */

struct probes_fields {
    struct text kind;
    json_t *verifiers;
    json_t *tasks;
    int missing;
};

static const struct field probes_fields[] = {
    {"kind", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct probes_fields, kind), 0, 0, NULL},
    {"verifiers", FIELD_ARRAY, FIELD_REQUIRED, offsetof(struct probes_fields, verifiers), 0, 0, NULL},
    {"tasks", FIELD_ARRAY, FIELD_REQUIRED, offsetof(struct probes_fields, tasks), 0, 0, NULL},
    {"missing", FIELD_CHOICE, 0, offsetof(struct probes_fields, missing), 0, 0, reward_missing_names},
};

struct task_fields {
    struct text task;
    struct text prompt;
    json_t *reference;
    json_t *answer;
};

static const struct field task_fields[] = {
    {"task", FIELD_TEXT, FIELD_REQUIRED, offsetof(struct task_fields, task), 0, AUDIT_TASK_BYTES, NULL},
    {"prompt", FIELD_TEXT, FIELD_NULLABLE, offsetof(struct task_fields, prompt), 0, 0, NULL},
    {"reference", FIELD_ANY, 0, offsetof(struct task_fields, reference), 0, 0, NULL},
    {"answer", FIELD_ANY, 0, offsetof(struct task_fields, answer), 0, 0, NULL},
};

static void destroy(void *pointer)
{
    struct audit_probes *probes = pointer;

    for (size_t t = 0; t < probes->task_count; t++)
        free(probes->tasks[t].name);
    for (size_t i = 0; i < probes->task_count * PROBE_COUNT; i++)
        buffer_finish(&probes->probes[i].completion);
    free(probes->tasks);
    free(probes->probes);
    free(probes);
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!text.data[i] || !strchr(" \t\r\n", text.data[i]))
            return false;
    return true;
}

static bool is_empty(const json_t *reference)
{
    if (json_is_string(reference) && !is_blank(json_text_of(reference)))
        return false;
    return !reference || json_is_null(reference) || json_is_string(reference) ||
           ((json_is_array(reference) || json_is_object(reference)) && json_array_size(reference) == 0 &&
            json_object_size(reference) == 0);
}

/* The reason that fails every completion of the task. */
static void check_reference(const struct verifier_list *list, const json_t *reference, struct probed_task *task)
{
    struct verifier_problem problem;
    size_t index;

    for (size_t i = 0; i < list->count && is_empty(reference); i++) {
        if (!verifier_needs_reference(&list->specs[i]))
            continue;
        task->unreadable = list->specs[i].id;
        snprintf(task->message, sizeof task->message, "there is no reference, or it is empty");
        return;
    }
    if (verifier_list_check_reference(list, reference, &index, &problem) == 0)
        return;
    task->unreadable = list->specs[index].id;
    snprintf(task->message, sizeof task->message, "%.*s", (int)sizeof task->message - 1, problem.message);
}

/* A text as it is, anything else as JSON. The caller frees *ret_owned. */
static struct text text_of_value(const json_t *value, char **ret_owned)
{
    *ret_owned = NULL;
    if (!value || json_is_null(value))
        return TEXT_NONE;
    if (json_is_string(value))
        return json_text_of(value);
    *ret_owned = json_big_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
    return text_of(*ret_owned);
}

static struct text answer_of(const struct task_fields *read, char **ret_owned)
{
    const json_t *first = json_is_array(read->reference) ? json_array_get(read->reference, 0) : read->reference;

    *ret_owned = NULL;
    struct text answer = TEXT_NONE;
    if (read->answer && !json_is_null(read->answer))
        answer = text_of_value(read->answer, ret_owned);
    else if (json_is_string(first) || json_is_number(first))
        answer = text_of_value(first, ret_owned);
    return is_blank(answer) ? TEXT_NONE : answer;
}

static int add_probe(struct call *call, struct verify_request *request, const struct task_fields *read,
                     const struct probe_task *task, size_t index)
{
    struct audit_probes *probes = request->about;
    struct probed *probed = &probes->probes[index];
    struct verify_item *item = &request->items[index];

    *probed = (struct probed){.task = index / PROBE_COUNT, .probe = (enum probe)(index % PROBE_COUNT)};
    buffer_init(&probed->completion, PROBE_BYTES_MAX);
    probed->left_out = probe_write(probed->probe, task, &probed->completion);
    item->list = verifier_list_ref(request->shared);
    if (probed->left_out || probed->completion.failed) {
        verify_item_fail(item, "verifier_input_too_large", "the probe is larger than a worker reads", false);
        return 0;
    }
    verify_item_build(item,
                      &(struct verify_subject){.completion = buffer_text(&probed->completion),
                                               .prompt = read->prompt,
                                               .completion_tokens = -1},
                      read->reference);
    request->about_bytes += probed->completion.capacity_bytes;
    probes->bytes += probed->completion.capacity_bytes + item->frame.capacity_bytes;
    if (probes->bytes <= BYTES_MAX)
        return 0;
    return call_refuse(call, ERR_BODY_TOO_LARGE, "tasks",
                       "with their prompts and references the probes take more than %zu MiB; send fewer tasks at once",
                       BYTES_MAX >> 20);
}

static int read_task(struct json_input *input, struct verify_request *request, size_t index, const json_t *value)
{
    struct audit_probes *probes = request->about;
    struct probed_task *task = &probes->tasks[index];
    struct task_fields read = {0};
    char path[PATH_BYTES];
    int result = 0;

    path_index(path, "", "tasks", index);
    if (json_read_object(input, value, path, task_fields, ARRAY_LENGTH(task_fields), &read) < 0)
        return -1;
    task->name = xstrndup(read.task.data, read.task.length_bytes);
    task->name_bytes = read.task.length_bytes;
    check_reference(request->shared, read.reference, task);
    char *reference;
    char *answer;
    struct probe_task texts = {.prompt = read.prompt,
                               .reference = text_of_value(read.reference, &reference),
                               .answer = answer_of(&read, &answer)};
    for (size_t p = 0; result == 0 && p < PROBE_COUNT; p++)
        result = add_probe(input->call, request, &read, &texts, index * PROBE_COUNT + p);
    free(reference);
    free(answer);
    return result;
}

static int read_tasks(struct json_input *input, struct verify_request *request, const json_t *tasks)
{
    struct audit_probes *probes = request->about;
    size_t count = json_array_size(tasks);
    size_t i;
    const json_t *value;

    if (count == 0 || count > TASKS_MAX)
        return call_refuse(input->call, ERR_INVALID_FIELD, "tasks", "expected 1 to %d tasks", TASKS_MAX);
    probes->tasks = xcalloc(count, sizeof *probes->tasks);
    probes->probes = xcalloc(count * PROBE_COUNT, sizeof *probes->probes);
    probes->task_count = count;
    request->items = xcalloc(count * PROBE_COUNT, sizeof *request->items);
    request->count = count * PROBE_COUNT;
    json_array_foreach (tasks, i, value)
        if (read_task(input, request, i, value) < 0)
            return -1;
    return 0;
}

static int read_request(struct json_input *input, struct verify_request *request)
{
    struct probes_fields read = {.missing = REWARD_MISSING_NULL};

    if (json_read_object(input, input->root, "", probes_fields, ARRAY_LENGTH(probes_fields), &read) < 0)
        return -1;
    request->missing = (enum reward_missing)read.missing;
    if (json_array_size(read.verifiers) == 0)
        return call_refuse(input->call, ERR_INVALID_FIELD, "verifiers", "expected at least one verifier");
    request->shared = verifier_list_read(input, read.verifiers, "verifiers");
    return request->shared ? read_tasks(input, request, read.tasks) : -1;
}

/* --- the reply --- */

static void write_scores(struct json_write *json, const struct verifier_list *list, const struct verdict_set *set)
{
    json_key(json, "scores");
    json_object_begin(json);
    for (size_t i = 0; i < set->count; i++)
        json_put_double(json, list->specs[i].id, set->verdicts[i].score);
    json_object_end(json);
}

static void write_unmade(struct json_write *json, const struct probed *probed)
{
    json_put_null(json, "completion");
    json_put_null(json, "reward");
    json_put_raw(json, "scores", TEXT_LITERAL("{}"));
    json_put_bool(json, "paid", false);
    json_put_null(json, "failure");
    json_put_string(json, "note", probed->left_out);
}

/* How many it adds to what was paid, and to what could not be judged. */
static void write_judged(struct json_write *json, const struct verify_request *request, size_t index, size_t *paid,
                         size_t *failed)
{
    const struct verify_item *item = &request->items[index];
    const struct probed *probed = &((const struct audit_probes *)request->about)->probes[index];
    struct verdict_set set;

    verify_item_verdicts(item, &set);
    struct reward reward = reward_combine(item->list, &set, request->missing);
    bool is_paid = probe_is_paid(probed->probe, item->list, &set, request->missing);
    *paid += is_paid;
    *failed += reward.failure != NULL;
    json_put_text(json, "completion", buffer_text(&probed->completion));
    json_put_double(json, "reward", reward.value);
    write_scores(json, item->list, &set);
    json_put_bool(json, "paid", is_paid);
    json_key(json, "failure");
    verify_failure_write(json, reward.failure);
    json_put_null(json, "note");
    verdict_set_finish(&set);
}

static void write_references(struct json_write *json, const struct audit_probes *probes)
{
    json_key(json, "references");
    json_array_begin(json);
    for (size_t t = 0; t < probes->task_count; t++) {
        const struct probed_task *task = &probes->tasks[t];
        if (!task->unreadable)
            continue;
        json_object_begin(json);
        json_put_text(json, "task", (struct text){task->name, task->name_bytes});
        json_put_string(json, "verifier", task->unreadable);
        json_put_string(json, "code", "reference_unreadable");
        json_put_string(json, "message", task->message);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_reply(const struct verify_request *request, struct call *call)
{
    const struct audit_probes *probes = request->about;
    struct json_write json;
    size_t paid = 0;
    size_t failed = 0;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < request->count; i++) {
        const struct probed *probed = &probes->probes[i];
        const struct probed_task *task = &probes->tasks[probed->task];
        json_object_begin(&json);
        json_put_text(&json, "task", (struct text){task->name, task->name_bytes});
        json_put_string(&json, "probe", probe_names[probed->probe]);
        if (probed->left_out)
            write_unmade(&json, probed);
        else
            write_judged(&json, request, i, &paid, &failed);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_put_int(&json, "paid", (int64_t)paid);
    json_put_int(&json, "failed", (int64_t)failed);
    write_references(&json, probes);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void audit_probes_parse(struct json_input *input)
{
    struct verify_request *request = xcalloc(1, sizeof *request);

    request->about = xcalloc(1, sizeof(struct audit_probes));
    request->about_destroy = destroy;
    request->write = write_reply;
    if (read_request(input, request) < 0) {
        verify_request_destroy(request);
        return;
    }
    input->call->parsed = request;
    input->call->parsed_destroy = verify_request_destroy;
}
