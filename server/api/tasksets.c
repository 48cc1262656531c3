/* GET /v1/tasksets, /v1/tasksets/{set}, /v1/tasksets/{set}/tasks and /v1/tasksets/{set}/tasks/{task} */
#include "server/api/tasksets_private.h"

#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/base/cleanup.h"
#include "server/render/list.h"
#include "server/settings/settings.h"
#include "server/spec/task.h"

void taskset_write(struct json_write *json, const struct store_taskset *set)
{
    char sha256[SHA256_HEX_BYTES];
    sha256_hex(set->sha256, sha256);
    json_object_begin(json);
    json_put_text(json, "set", set->set);
    json_put_string(json, "sha256", sha256);
    json_put_int(json, "tasks", set->tasks);
    json_key(json, "splits");
    json_object_begin(json);
    for (size_t i = 0; i < set->split_count; i++) {
        json_key_text(json, set->splits[i].split);
        json_int(json, set->splits[i].tasks);
    }
    json_object_end(json);
    json_object_end(json);
}

int taskset_check_name(struct call *call)
{
    if (taskset_name_is_valid(call->args[0]))
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, "set", "the name of a set is 1 to %d of A-Z a-z 0-9 . _ -",
                       TASKSET_NAME_BYTES);
}

static int check_reader(struct call *call)
{
    return call->reader ? 0 : call_refuse_unreadable(call);
}

static int enter(struct call *call, const char *const *known)
{
    return call_check_query(call, known) < 0 ? -1 : check_reader(call);
}

static int refuse_cursor(struct call *call)
{
    return call_refuse(call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these filters");
}

/* ---- sets -------------------------------------------------------------------------------------------------- */

static int add_sets(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    _cleanup_(store_tasksets_finish) struct store_tasksets page = {0};
    if (store_list_tasksets(reader, record_list_cursor(list), limits->rows, &page) != STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        taskset_write(record_list_item(list), &page.sets[i]);
    record_list_read(list, page.next, page.count, page.count, 0);
    return 0;
}

void list_tasksets(struct call *call)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    struct page page;
    if (enter(call, known) < 0 || query_page(call, &page) < 0)
        return;
    if (!store_tasksets_cursor_fits(page.cursor)) {
        refuse_cursor(call);
        return;
    }
    struct record_list *list = xcalloc(1, sizeof(*list));
    record_list_init(list, page.cursor, page.limit, INT64_MAX);
    list->add = add_sets;
    record_list_answer(call, list);
}

/* 0, or -1 with the call refused. */
static int read_set(struct call *call, struct store_tasksets *ret_set)
{
    enum store_status status = store_read_taskset(call->reader, call->args[0], ret_set);
    if (status == STORE_OK)
        return 0;
    return status == STORE_NOT_FOUND ? call_refuse(call, ERR_NOT_FOUND, "set", "there is no task set of this name")
                                     : call_refuse_unreadable(call);
}

void get_taskset(struct call *call)
{
    _cleanup_(store_tasksets_finish) struct store_tasksets set = {0};
    struct json_write json;
    if (check_reader(call) < 0 || read_set(call, &set) < 0)
        return;
    json_write_init(&json, &call->reply.body);
    taskset_write(&json, set.sets);
    call_answer_json(call, 200);
}

/* ---- tasks ------------------------------------------------------------------------------------------------- */

/* As a line of the body has it. */
static void write_task(struct json_write *json, const struct store_task *task)
{
    json_object_begin(json);
    json_put_text(json, "task", task->task);
    json_put_text(json, "split", task->split);
    json_put_raw(json, task->chat ? "messages" : "prompt", task->prompt);
    json_put_raw(json, "reference", task->reference);
    json_put_raw(json, "metadata", task->metadata);
    json_put_raw(json, "tags", task->tags.data ? task->tags : TEXT_LITERAL("{}"));
    json_object_end(json);
}

struct task_list {
    struct record_list list; /* first */
    struct text set;
    struct text split;
};

static int add_tasks(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    const struct task_list *self = (const struct task_list *)list;
    _cleanup_(store_tasks_finish) struct store_tasks page = {0};
    if (store_list_tasks(reader, self->set, self->split, record_list_cursor(list), limits, &page) != STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        write_task(record_list_item(list), &page.tasks[i]);
    record_list_read(list, page.next, page.count, page.scanned, page.bytes);
    return 0;
}

void list_tasks(struct call *call)
{
    static const char *const known[] = {"split", "limit", "cursor", NULL};
    _cleanup_(store_tasksets_finish) struct store_tasksets set = {0};
    struct text split = call_query(call, "split");
    struct page page;
    if (enter(call, known) < 0 || query_page(call, &page) < 0 || read_set(call, &set) < 0)
        return;
    if (!store_tasks_cursor_fits(call->args[0], split, page.cursor)) {
        refuse_cursor(call);
        return;
    }
    struct task_list *self = xcalloc(1, sizeof(*self));
    record_list_init(&self->list, page.cursor, page.limit, call->settings->scan_budget);
    self->list.add = add_tasks;
    self->set = call->args[0];
    self->split = split;
    record_list_answer(call, &self->list);
}

void get_task(struct call *call)
{
    _cleanup_(store_tasksets_finish) struct store_tasksets set = {0};
    _cleanup_(store_tasks_finish) struct store_tasks task = {0};
    struct json_write json;
    if (check_reader(call) < 0 || read_set(call, &set) < 0)
        return;
    enum store_status status = store_find_task(call->reader, call->args[0], call->args[1], &task);
    if (status == STORE_NOT_FOUND) {
        call_refuse(call, ERR_NOT_FOUND, "task", "the set has no task of this name");
        return;
    }
    if (status != STORE_OK) {
        call_refuse_unreadable(call);
        return;
    }
    json_write_init(&json, &call->reply.body);
    write_task(&json, task.tasks);
    call_answer_json(call, 200);
}
