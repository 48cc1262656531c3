/* The groups of a batch: each falls back to the batch's sampling and verifiers. */
#include "server/spec/batch.h"

#include "server/settings/settings.h"
#include "server/spec/chat_private.h"
#include "server/spec/tags_private.h"
#include "server/spec/task.h"

#include <stdio.h>
#include <uthash.h>

struct group_fields {
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    struct text set;
    json_t *tools;
    struct text prompt;
    json_t *messages;
    struct numbers prompt_ids;
    json_t *reference;
    json_t *sampling;
    json_t *verifiers;
    json_t *metadata;
    json_t *tags;
    json_t *completions;
};

#define GROUP(field) offsetof(struct group_fields, field)
#define GROUP_FIELDS(BOTH, SAMPLED, GIVEN)                                                                             \
    BOTH("task", FIELD_TEXT, FIELD_REQUIRED, GROUP(task), 0, 1024, NULL)                                               \
    BOTH("draw", FIELD_INT, 0, GROUP(draw), 0, 2147483647, NULL)                                                       \
    SAMPLED("first_sample_index", FIELD_INT, 0, GROUP(first_sample_index), 0, 90000, NULL)                             \
    BOTH("set", FIELD_TEXT, 0, GROUP(set), 0, 0, NULL)                                                                 \
    BOTH("tools", FIELD_ARRAY, 0, GROUP(tools), 0, 0, NULL)                                                            \
    BOTH("prompt", FIELD_TEXT, 0, GROUP(prompt), 0, 0, NULL)                                                           \
    BOTH("messages", FIELD_ARRAY, 0, GROUP(messages), 0, 0, NULL)                                                      \
    BOTH("prompt_ids", FIELD_NUMBERS, 0, GROUP(prompt_ids), 0, 0, NULL)                                                \
    BOTH("reference", FIELD_ANY, 0, GROUP(reference), 0, 0, NULL)                                                      \
    SAMPLED("sampling", FIELD_OBJECT, 0, GROUP(sampling), 0, 0, NULL)                                                  \
    BOTH("verifiers", FIELD_ARRAY, 0, GROUP(verifiers), 0, 0, NULL)                                                    \
    BOTH("metadata", FIELD_OBJECT, FIELD_NULLABLE, GROUP(metadata), 0, 0, NULL)                                        \
    BOTH("tags", FIELD_OBJECT, FIELD_NULLABLE, GROUP(tags), 0, 0, NULL)                                                \
    GIVEN("completions", FIELD_ARRAY, FIELD_REQUIRED | FIELD_LIFTED, GROUP(completions), 0, 0, NULL)

static const struct field group_table[] = {GROUP_FIELDS(FIELD_ROW, FIELD_ROW, FIELD_NO_ROW)};

static const struct field score_group_table[] = {GROUP_FIELDS(FIELD_ROW, FIELD_NO_ROW, FIELD_ROW)};

/* One draw of one task, for finding doubles. */
struct seen_task {
    char *key;
    UT_hash_handle hh;
};

static int refuse(struct batch_spec *spec, const char *path, const char *name, enum error_code code,
                  const char *message)
{
    char where[PATH_BYTES];
    path_join(where, path, name);
    return call_refuse(spec->input.call, code, where, "%s", message);
}

static int check_prompt(struct batch_spec *spec, const char *path, const struct group_fields *fields)
{
    int given = (fields->prompt.data != NULL) + (fields->messages != NULL) + (fields->prompt_ids.values != NULL);
    if (given == 0 && spec->origin == BATCH_SAMPLED) /* what is only judged may come without its prompt */
        return refuse(spec, path, "prompt", ERR_MISSING_FIELD, "a group has one of prompt, messages, prompt_ids");
    if (given > 1)
        return refuse(spec, path, fields->prompt.data ? "prompt" : "messages", ERR_INVALID_FIELD,
                      "a group has only one of prompt, messages, prompt_ids");
    if (fields->prompt_ids.values && fields->prompt_ids.count == 0)
        return refuse(spec, path, "prompt_ids", ERR_INVALID_FIELD, "a prompt has at least one token id");
    if (fields->tools && !fields->messages)
        return refuse(spec, path, "tools", ERR_INVALID_FIELD, "tools go with messages: the chat template shows them");
    if (fields->tools && spec->origin == BATCH_GIVEN)
        return refuse(spec, path, "tools", ERR_INVALID_FIELD, "nothing is sampled here that tools could be shown to");
    return 0;
}

static int read_prompt(struct batch_spec *spec, const char *path, const struct group_fields *fields,
                       struct group_spec *group)
{
    char where[PATH_BYTES];
    size_t index;
    json_t *message;

    group->prompt = fields->prompt;
    if (fields->messages && chat_check(spec->input.call, fields->messages, path) < 0)
        return -1;
    group->messages = batch_spec_dump(spec, fields->messages);
    json_array_foreach (fields->tools, index, message) {
        path_index(where, path, "tools", index);
        if (!json_is_object(message))
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, where, "a tool is an object");
    }
    group->tools = batch_spec_dump(spec, fields->tools);
    if (!fields->prompt_ids.values)
        return 0;
    path_join(where, path, "prompt_ids");
    group->prompt_id_count = fields->prompt_ids.count;
    return batch_spec_read_ids(spec, &fields->prompt_ids, where, &group->prompt_ids);
}

static struct text own_text(struct batch_spec *spec, struct text text)
{
    if (!text.data)
        return TEXT_NONE;
    char *copy = batch_spec_own(spec, xcalloc(text.length_bytes + 1, 1));
    memcpy(copy, text.data, text.length_bytes);
    spec->set_bytes += text.length_bytes;
    return (struct text){copy, text.length_bytes};
}

/* The fields that a group takes from a task of a set, parsed like those of a request. */
struct set_values {
    json_t *prompt;
    json_t *reference;
};

static void set_values_finish(struct set_values *values)
{
    json_decref(values->prompt);
    json_decref(values->reference);
}

static int check_set(struct batch_spec *spec, const char *path, const struct group_fields *fields)
{
    const struct {
        const char *name;
        bool given;
    } doubles[] = {{"prompt", fields->prompt.data != NULL},
                   {"messages", fields->messages != NULL},
                   {"prompt_ids", fields->prompt_ids.values != NULL},
                   {"reference", fields->reference != NULL}};
    for (size_t i = 0; i < ARRAY_LENGTH(doubles); i++)
        if (doubles[i].given)
            return refuse(spec, path, doubles[i].name, ERR_INVALID_FIELD, "the task of the set has it");
    return 0;
}

static void fill_from_set(struct batch_spec *spec, const struct store_task *task, struct group_fields *fields,
                          struct group_spec *group, struct set_values *ret_values)
{
    group->set_task_seq = task->seq;
    group->source = (struct store_data_source){
        .set = fields->set, .sha256 = own_text(spec, task->set_sha256), .split = own_text(spec, task->split)};
    if (!fields->metadata)
        group->metadata_json = own_text(spec, task->metadata);
    if (!fields->tags)
        group->tags_json = own_text(spec, task->tags);
    if (task->reference.data)
        fields->reference = ret_values->reference = task_value(task->reference);
    ret_values->prompt = task_value(task->prompt);
    if (task->chat)
        fields->messages = ret_values->prompt;
    else
        fields->prompt = own_text(spec, json_text_of(ret_values->prompt));
    spec->set_bytes += task->reference.length_bytes + (task->chat ? task->prompt.length_bytes : 0);
}

/* A set never changes, so that the batch is the same whenever its request is read again. */
static int take_from_set(struct batch_spec *spec, const char *path, struct group_fields *fields,
                         struct group_spec *group, struct set_values *ret_values)
{
    struct call *call = spec->input.call;
    _cleanup_(store_tasks_finish) struct store_tasks found = {0};
    if (!fields->set.data)
        return 0;
    if (check_set(spec, path, fields) < 0 || task_find(call, fields->set, fields->task, path, &found) < 0)
        return -1;
    if (spec->purpose == STORE_TRAIN && !text_equals(found.tasks[0].split, task_split_train))
        return refuse(spec, path, "task", ERR_HELDOUT_TASK,
                      "a task whose split is not `train` is not trained on; `purpose` eval may use it");
    fill_from_set(spec, &found.tasks[0], fields, group, ret_values);
    if (spec->set_bytes > (size_t)call->settings->body_limit_bytes && !call->resumed)
        return refuse(spec, path, "task", ERR_BODY_TOO_LARGE,
                      "the prompts and references of the batch's sets are larger than body_limit");
    return 0;
}

static int read_tags(struct batch_spec *spec, const char *path, const struct group_fields *fields,
                     struct group_spec *group)
{
    char where[PATH_BYTES];
    char *json;
    path_join(where, path, "tags");
    if (tags_read(&spec->input, fields->tags, where, &json) < 0)
        return -1;
    if (json)
        group->tags_json = text_of(batch_spec_own(spec, json));
    return 0;
}

static int read_verifiers(struct batch_spec *spec, const char *path, const struct group_fields *fields,
                          struct group_spec *group)
{
    char where[PATH_BYTES];
    if (!fields->verifiers) {
        group->verifiers = verifier_list_ref(spec->verifiers);
        return 0;
    }
    path_join(where, path, "verifiers");
    group->verifiers = verifier_list_read(&spec->input, fields->verifiers, where);
    group->verifiers_json = batch_spec_dump(spec, fields->verifiers);
    return group->verifiers ? 0 : -1;
}

static int check_references(struct batch_spec *spec, const char *path, const struct group_fields *fields,
                            const struct group_spec *group)
{
    for (size_t i = 0; i < group->verifiers->count; i++)
        if (!fields->reference && verifier_needs_reference(&group->verifiers->specs[i]))
            return refuse(spec, path, "reference", ERR_MISSING_FIELD, "a verifier of this group needs a reference");
    struct verifier_problem problem;
    size_t index;
    if (!spec->strict_references ||
        verifier_list_check_reference(group->verifiers, fields->reference, &index, &problem) == 0)
        return 0;
    return refuse(spec, path, "reference", ERR_REFERENCE_UNREADABLE, problem.message);
}

bool sampling_has_template_options(const struct sampling *sampling)
{
    return sampling->chat_template_kwargs.data && !text_equals(sampling->chat_template_kwargs, "{}");
}

/* A template renders messages. Options of the batch are meant for its groups with messages; a group without messages cannot have
 * options of its own. */
static int check_template_options(struct batch_spec *spec, const char *path, const struct group_fields *fields,
                                  struct group_spec *group)
{
    if (fields->messages || !sampling_has_template_options(&group->sampling))
        return 0;
    const json_t *kwargs = json_object_get(fields->sampling, "chat_template_kwargs");
    if (kwargs && !json_is_null(kwargs) && !spec->input.call->resumed)
        return refuse(spec, path, "sampling.chat_template_kwargs", ERR_INVALID_FIELD,
                      "a chat template is used for messages, and this group has none");
    group->sampling.chat_template_kwargs = TEXT_NONE;
    return 0;
}

static int check_template_of_batch(struct batch_spec *spec)
{
    bool has_messages = false;
    for (size_t g = 0; g < spec->group_count; g++)
        has_messages |= spec->groups[g].messages.data != NULL;
    if (has_messages || !sampling_has_template_options(&spec->sampling) || spec->input.call->resumed)
        return 0;
    return call_refuse(spec->input.call, ERR_INVALID_FIELD, "sampling.chat_template_kwargs",
                       "a chat template is used for messages, and no group has any");
}

static int read_group(struct batch_spec *spec, const json_t *object, const char *path, struct group_spec *group)
{
    struct group_fields fields = {0};
    _cleanup_(set_values_finish) struct set_values taken = {0};
    char where[PATH_BYTES];

    bool given = spec->origin == BATCH_GIVEN;
    if (json_read_object(&spec->input, object, path, given ? score_group_table : group_table,
                         given ? ARRAY_LENGTH(score_group_table) : ARRAY_LENGTH(group_table), &fields) < 0)
        return -1;
    if (fields.task.length_bytes == 0)
        return refuse(spec, path, "task", ERR_INVALID_FIELD, "a task has a name");
    group->task = fields.task;
    group->draw = fields.draw;
    group->first_sample_index = fields.first_sample_index;
    group->n = spec->n;
    group->sampling = spec->sampling;
    group->metadata_json = batch_spec_dump(spec, fields.metadata);
    if (json_is_null(fields.reference))
        fields.reference = NULL;
    if (take_from_set(spec, path, &fields, group, &taken) < 0)
        return -1;
    group->reference_json = batch_spec_dump(spec, fields.reference);
    group->sampling_json = batch_spec_dump(spec, fields.sampling);
    path_join(where, path, "sampling");
    if (fields.sampling && batch_spec_read_sampling(spec, fields.sampling, where, &group->sampling, &group->n) < 0)
        return -1;
    if (check_prompt(spec, path, &fields) < 0 || read_prompt(spec, path, &fields, group) < 0)
        return -1;
    if (read_tags(spec, path, &fields, group) < 0 || check_template_options(spec, path, &fields, group) < 0)
        return -1;
    if (read_verifiers(spec, path, &fields, group) < 0)
        return -1;
    if (check_references(spec, path, &fields, group) < 0)
        return -1;
    return given ? score_read_completions(spec, fields.completions, path, group) : 0;
}

static int note_task(struct batch_spec *spec, const char *path, const struct group_spec *group, struct seen_task **seen)
{
    struct seen_task *found;
    _cleanup_free_ char *key = xcalloc(1, group->task.length_bytes + 24);
    memcpy(key, group->task.data, group->task.length_bytes);
    size_t key_bytes = group->task.length_bytes +
                       (size_t)snprintf(key + group->task.length_bytes, 24, "/%lld", (long long)group->draw);

    HASH_FIND(hh, *seen, key, key_bytes, found);
    if (found)
        return refuse(spec, path, "task", ERR_DUPLICATE_TASK, "this task with this draw is in the batch already");
    found = xcalloc(1, sizeof(*found));
    found->key = TAKE_PTR(key);
    HASH_ADD_KEYPTR(hh, *seen, found->key, key_bytes, found);
    return 0;
}

static void forget_tasks(struct seen_task **seen)
{
    struct seen_task *one;
    struct seen_task *next;
    HASH_ITER(hh, *seen, one, next)
    {
        HASH_DEL(*seen, one);
        free(one->key);
        free(one);
    }
}

static int read_list(struct batch_spec *spec, const char *name, json_t *groups, struct seen_task **seen)
{
    size_t limit = (size_t)spec->input.call->settings->max_rollouts_per_batch;
    size_t count = json_array_size(groups);
    char path[PATH_BYTES];

    for (size_t i = 0; i < count; i++) {
        struct group_spec *group = &spec->groups[spec->group_count++];
        path_index(path, "", name, i);
        if (read_group(spec, json_array_get(groups, i), path, group) < 0 || note_task(spec, path, group, seen) < 0)
            return -1;
        spec->rollout_count += (size_t)group->n;
        if (spec->rollout_count > limit)
            return call_refuse(spec->input.call, ERR_INVALID_FIELD, name,
                               "more than max_rollouts_per_batch (%zu) rollouts", limit);
    }
    return 0;
}

int batch_spec_read_groups(struct batch_spec *spec, json_t *groups, json_t *reserve)
{
    _cleanup_(forget_tasks) struct seen_task *seen = NULL;
    size_t limit = (size_t)spec->input.call->settings->max_rollouts_per_batch;
    size_t count = json_array_size(groups);
    size_t all = count + json_array_size(reserve);

    if (all > limit || all > 99999)
        return call_refuse(spec->input.call, ERR_INVALID_FIELD, count > limit || count > 99999 ? "groups" : "reserve",
                           "%zu groups are more than one batch takes", all);
    spec->groups = xcalloc(all, sizeof(struct group_spec));
    if (read_list(spec, "groups", groups, &seen) < 0)
        return -1;
    spec->first_group_count = spec->group_count;
    if (read_list(spec, "reserve", reserve, &seen) < 0)
        return -1;
    return check_template_of_batch(spec);
}
