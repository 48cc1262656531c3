#include "server/spec/task.h"
#include "server/base/json_big.h"

#include "server/base/json_write.h"
#include "server/input/input.h"
#include "server/spec/chat_private.h"
#include "server/spec/tags_private.h"
#include "server/store/tags.h"

#include <stdlib.h>

#define PACKED_ROOM_BYTES ((size_t)1 << 20)

const char task_split_train[] = "train";

struct task_fields {
    struct text task;
    struct text split;
    struct text prompt;
    json_t *messages;
    json_t *reference;
    json_t *metadata;
    json_t *tags;
};

#define TASK(field) offsetof(struct task_fields, field)
static const struct field task_table[] = {
    {"task", FIELD_TEXT, FIELD_REQUIRED, TASK(task), 0, TASK_NAME_BYTES, NULL},
    {"split", FIELD_TEXT, 0, TASK(split), 0, STORE_TAG_NAME_BYTES, NULL},
    {"prompt", FIELD_TEXT, 0, TASK(prompt), 0, 0, NULL},
    {"messages", FIELD_ARRAY, 0, TASK(messages), 0, 0, NULL},
    {"reference", FIELD_ANY, 0, TASK(reference), 0, 0, NULL},
    {"metadata", FIELD_OBJECT, FIELD_NULLABLE, TASK(metadata), 0, 0, NULL},
    {"tags", FIELD_OBJECT, FIELD_NULLABLE, TASK(tags), 0, 0, NULL},
};

bool taskset_name_is_valid(struct text set)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (!set.data || set.length_bytes == 0 || set.length_bytes > TASKSET_NAME_BYTES)
        return false;
    for (size_t i = 0; i < set.length_bytes; i++)
        if (!memchr(allowed, set.data[i], sizeof(allowed) - 1))
            return false;
    return true;
}

int chat_check(struct call *call, const json_t *messages, const char *path)
{
    char where[PATH_BYTES];
    size_t index;
    json_t *message;
    path_join(where, path, "messages");
    if (json_array_size(messages) == 0)
        return call_refuse(call, ERR_INVALID_FIELD, where, "a chat has at least one message");
    json_array_foreach (messages, index, message) {
        path_index(where, path, "messages", index);
        if (!json_is_string(json_object_get(message, "role")))
            return call_refuse(call, ERR_INVALID_FIELD, where, "a message is an object with a role");
    }
    return 0;
}

static struct text copy(struct text text)
{
    char *bytes = xcalloc(text.length_bytes + 1, 1);
    memcpy(bytes, text.data, text.length_bytes);
    return (struct text){bytes, text.length_bytes};
}

/* TEXT_NONE for NULL and null. */
static struct text dump(const json_t *value)
{
    bool given = value && !json_is_null(value);
    return text_of(given ? json_big_dump(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL);
}

/* A text as the record has prompts: JSON. */
static struct text quote(struct text text)
{
    struct buffer out;
    struct json_write json;
    struct text quoted = TEXT_NONE;
    buffer_init(&out, 6 * text.length_bytes + 3); /* the longest escape, and the quotes */
    json_write_init(&json, &out);
    json_text(&json, text);
    quoted.data = buffer_steal(&out, &quoted.length_bytes);
    return quoted;
}

/* Takes the plain text. */
static void make_content(struct text plain, struct store_content *ret_content)
{
    struct buffer packed;
    size_t stored_bytes;
    buffer_init(&packed, plain.length_bytes + PACKED_ROOM_BYTES);
    store_content_make(plain, &packed, ret_content);
    if (ret_content->codec != STORE_CODEC_PLAIN) {
        ret_content->stored.data = buffer_steal(&packed, &stored_bytes);
        free((char *)(uintptr_t)plain.data);
    }
    buffer_finish(&packed);
}

static int check(struct call *line, const struct task_fields *fields)
{
    if (fields->task.length_bytes == 0)
        return call_refuse(line, ERR_INVALID_FIELD, "task", "a task has a name");
    if (fields->split.data && !store_tag_name_is_valid(fields->split))
        return call_refuse(line, ERR_INVALID_FIELD, "split", "a split is 1 to %d of A-Z a-z 0-9 . _ -",
                           STORE_TAG_NAME_BYTES);
    if (!fields->prompt.data && !fields->messages)
        return call_refuse(line, ERR_MISSING_FIELD, "prompt", "a task has one of prompt, messages");
    if (fields->prompt.data && fields->messages)
        return call_refuse(line, ERR_INVALID_FIELD, "prompt", "a task has only one of prompt, messages");
    return fields->messages ? chat_check(line, fields->messages, "") : 0;
}

static int fill(struct json_input *input, const struct task_fields *fields, struct store_new_task *task)
{
    char *tags;
    if (tags_read(input, fields->tags, "tags", &tags) < 0)
        return -1;
    task->tags = text_of(tags);
    task->task = copy(fields->task);
    task->split = copy(fields->split.data ? fields->split : text_of(task_split_train));
    task->chat = fields->messages != NULL;
    make_content(task->chat ? dump(fields->messages) : quote(fields->prompt), &task->prompt);
    task->has_reference = fields->reference && !json_is_null(fields->reference);
    if (task->has_reference)
        make_content(dump(fields->reference), &task->reference);
    task->metadata = dump(fields->metadata);
    return 0;
}

int task_read(struct call *line, struct store_new_task *ret_task)
{
    struct json_input input;
    struct task_fields fields = {0};
    *ret_task = (struct store_new_task){0};
    if (json_input_init(&input, line, NULL) < 0)
        return -1;
    int result = json_read_object(&input, input.root, "", task_table, ARRAY_LENGTH(task_table), &fields);
    if (result == 0)
        result = check(line, &fields);
    if (result == 0)
        result = fill(&input, &fields, ret_task);
    json_input_finish(&input);
    return result;
}

void task_finish(struct store_new_task *task)
{
    const struct text texts[] = {task->task,     task->split, task->prompt.stored, task->reference.stored,
                                 task->metadata, task->tags};
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        free((char *)(uintptr_t)texts[i].data);
    *task = (struct store_new_task){0};
}

/* ---- on record --------------------------------------------------------------------------------------------- */

static int refuse_unknown(struct call *call, struct text set, const char *path)
{
    _cleanup_(store_tasksets_finish) struct store_tasksets found = {0};
    char where[PATH_BYTES];
    enum store_status status = store_read_taskset(call->reader, set, &found);
    path_join(where, path, status == STORE_OK ? "task" : "set");
    if (status == STORE_OK)
        return call_refuse(call, ERR_NOT_FOUND, where, "the set has no task of this name");
    return status == STORE_NOT_FOUND ? call_refuse(call, ERR_NOT_FOUND, where, "there is no task set of this name")
                                     : call_refuse_unreadable(call);
}

json_t *task_value(struct text json)
{
    return json_big_load(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

int task_find(struct call *call, struct text set, struct text task, const char *path, struct store_tasks *ret_task)
{
    *ret_task = (struct store_tasks){0};
    enum store_status status = call->reader ? store_find_task(call->reader, set, task, ret_task) : STORE_UNAVAILABLE;
    if (status == STORE_OK)
        return 0;
    return status == STORE_NOT_FOUND ? refuse_unknown(call, set, path) : call_refuse_unreadable(call);
}
