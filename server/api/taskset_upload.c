/* PUT /v1/tasksets/{set}: a body of any size, read line by line as it arrives, into a draft that is frozen at its end. */
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/api/tasksets_private.h"
#include "server/base/blocks.h"
#include "server/http/http.h"
#include "server/input/input.h"
#include "server/spec/task.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define REST_BYTES_MAX (LINE_BYTES_MAX + (size_t)4 * 1024 * 1024) /* with a piece behind it */
#define STEP_TASKS ((size_t)1024)                                 /* of one operation, at most */
#define STEP_BYTES ((size_t)1024 * 1024)
#define SPLITS_MAX ((size_t)100)

struct upload {
    struct store_wait wait; /* first */
    struct server *server;  /* NULL: no loop part has seen it */
    char *set;
    struct sha256 *sha256;
    struct store_tasksets recorded; /* the set of this name, if there is one: then only the digest counts */
    struct buffer rest;             /* a line whose end has not arrived */
    int64_t line;                   /* how many were read */
    struct store_new_task *tasks;   /* of this piece */
    size_t count;
    size_t capacity;
    size_t stored;
    struct store_split *splits;
    size_t split_count;
    int64_t set_seq; /* of the draft; 0: none yet, or none any more */
    bool busy;       /* the store has its operation */
    bool abandoned;  /* its client has hung up */
};

/* ---- its life ---------------------------------------------------------------------------------------------- */

static void drop_tasks(struct upload *upload)
{
    for (size_t i = 0; i < upload->count; i++)
        task_finish(&upload->tasks[i]);
    upload->count = upload->stored = 0;
}

static void upload_destroy(struct upload *upload)
{
    if (upload->set_seq && upload->server)
        drafts_drop(upload->server, upload->set_seq, upload->set_seq);
    drop_tasks(upload);
    free(upload->tasks);
    for (size_t i = 0; i < upload->split_count; i++)
        free((char *)(uintptr_t)upload->splits[i].split.data);
    free(upload->splits);
    sha256_destroy(upload->sha256);
    store_tasksets_finish(&upload->recorded);
    buffer_finish(&upload->rest);
    free(upload->set);
    free(upload);
}

/* The request has ended. */
static void upload_release(void *parsed)
{
    struct upload *upload = parsed;
    if (upload->busy)
        upload->abandoned = true;
    else
        upload_destroy(upload);
}

/* ---- a worker: lines --------------------------------------------------------------------------------------- */

/* The split's counter, or NULL: it would be one too many. */
static struct store_split *find_split(struct upload *upload, struct text name)
{
    for (size_t i = 0; i < upload->split_count; i++)
        if (text_same(upload->splits[i].split, name))
            return &upload->splits[i];
    if (upload->split_count == SPLITS_MAX)
        return NULL;
    upload->splits = xrealloc(upload->splits, (upload->split_count + 1) * sizeof(*upload->splits));
    struct store_split *split = &upload->splits[upload->split_count++];
    *split = (struct store_split){{xstrndup(name.data, name.length_bytes), name.length_bytes}, 0};
    return split;
}

static enum error_code code_of(const char *code)
{
    int i = 0;
    while (i < ERR_COUNT - 1 && error_rows[i].code != code)
        i++;
    return (enum error_code)i;
}

/* The refusal of a line alone becomes that of the line in its body. */
static int refuse_line(struct call *call, int64_t line, const struct reply *said)
{
    char path[PATH_BYTES];
    static const char first[] = "line 1, ";
    bool has_column = strncmp(said->message, first, sizeof(first) - 1) == 0;
    snprintf(path, sizeof(path), "line[%" PRId64 "]", line);
    if (said->path)
        path_join(path, path, said->path);
    return call_refuse(call, code_of(said->code), path, "line %" PRId64 "%s%s", line, has_column ? ", " : ": ",
                       said->message + (has_column ? sizeof(first) - 1 : 0));
}

static struct store_new_task *next_place(struct upload *upload)
{
    if (upload->count == upload->capacity) {
        upload->capacity = upload->capacity ? 2 * upload->capacity : 64;
        upload->tasks = xrealloc(upload->tasks, upload->capacity * sizeof(*upload->tasks));
    }
    return &upload->tasks[upload->count++];
}

static int read_task(struct call *call, struct upload *upload, struct text text)
{
    struct call line;
    call_init(&line);
    line.settings = call->settings;
    line.body = (char *)(uintptr_t)text.data; /* without lifted arrays it is only read */
    line.body_bytes = text.length_bytes;
    struct store_new_task *task = next_place(upload);
    int result = task_read(&line, task);
    task->line = upload->line;
    struct store_split *split = result == 0 ? find_split(upload, task->split) : NULL;
    if (split)
        split->tasks++;
    else if (result == 0)
        result = call_refuse(&line, ERR_INVALID_FIELD, "split", "a set has at most %zu splits", SPLITS_MAX);
    if (result < 0)
        refuse_line(call, upload->line, &line.reply);
    line.body = NULL;
    call_finish(&line);
    return result;
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!strchr(" \t\r", text.data[i]) || !text.data[i])
            return false;
    return true;
}

static int read_line(struct call *call, struct upload *upload, struct text text)
{
    upload->line++;
    if (text.length_bytes > LINE_BYTES_MAX) {
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "line[%" PRId64 "]", upload->line);
        return call_refuse(call, ERR_BODY_TOO_LARGE, path, "line %" PRId64 " has more than %zu bytes", upload->line,
                           LINE_BYTES_MAX);
    }
    return is_blank(text) ? 0 : read_task(call, upload, text);
}

/* All lines that are whole; without `more` the last one is, whether or not it has an end. */
static int read_lines(struct call *call, struct upload *upload, size_t seen_bytes, bool more)
{
    const struct buffer *rest = &upload->rest;
    size_t begin = 0;
    for (size_t at = seen_bytes; at < rest->length_bytes;) {
        const char *end = memchr(rest->data + at, '\n', rest->length_bytes - at);
        if (!end)
            break;
        at = (size_t)(end - rest->data) + 1;
        if (read_line(call, upload, (struct text){rest->data + begin, at - 1 - begin}) < 0)
            return -1;
        begin = at;
    }
    struct text last = {rest->data + begin, rest->length_bytes - begin};
    if ((!more || last.length_bytes > LINE_BYTES_MAX) && last.length_bytes && read_line(call, upload, last) < 0)
        return -1;
    buffer_drop_front(&upload->rest, more ? begin : rest->length_bytes);
    return 0;
}

static int read_piece(struct call *call, struct upload *upload)
{
    size_t seen_bytes = upload->rest.length_bytes;
    sha256_add(upload->sha256, call->body, call->body_bytes);
    if (!upload->recorded.count)
        buffer_append(&upload->rest, call->body, call->body_bytes);
    block_give(TAKE_PTR(call->body));
    if (upload->recorded.count)
        return 0;
    if (upload->rest.failed)
        return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this body now");
    if (read_lines(call, upload, seen_bytes, call->body_more) < 0)
        return -1;
    if (!call->body_more && upload->line == 0)
        return call_refuse(call, ERR_INVALID_FIELD, NULL, "a set has at least one task");
    return 0;
}

static int begin(struct call *call)
{
    if (taskset_check_name(call) < 0)
        return -1;
    struct upload *upload = xcalloc(1, sizeof(*upload));
    call->parsed = upload;
    call->parsed_destroy = upload_release;
    upload->set = xstrndup(call->args[0].data, call->args[0].length_bytes);
    upload->sha256 = sha256_create();
    buffer_init(&upload->rest, REST_BYTES_MAX);
    enum store_status status =
        call->reader ? store_read_taskset(call->reader, call->args[0], &upload->recorded) : STORE_UNAVAILABLE;
    return status == STORE_OK || status == STORE_NOT_FOUND ? 0 : call_refuse_unreadable(call);
}

void parse_taskset(struct call *call)
{
    if (!call->parsed && begin(call) < 0)
        return;
    read_piece(call, call->parsed);
}

/* ---- the loop: one operation after the other ---------------------------------------------------------------- */

static void answer(struct request *request, int status, const struct store_taskset *set)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    taskset_write(&json, set);
    call_answer_json(call, status);
    request_answer(request);
}

static void refuse_content(struct request *request, const char *set)
{
    request_refuse(
        request, ERR_STATE_CONFLICT, "set",
        "the set %.100s is frozen with other content (GET /v1/tasksets/%.100s has its sha256); other content "
        "needs another name",
        set, set);
}

static void compare(struct upload *upload, struct request *request)
{
    uint8_t sha256[SHA256_BYTES];
    sha256_finish(TAKE_PTR(upload->sha256), sha256);
    const struct store_taskset *recorded = upload->recorded.sets;
    if (memcmp(sha256, recorded->sha256, SHA256_BYTES) == 0)
        answer(request, 200, recorded);
    else
        refuse_content(request, upload->set);
}

static void refuse_duplicate(struct upload *upload)
{
    const struct store_add_tasks *add = &upload->wait.op.add_tasks;
    const struct store_new_task *wrong = &add->tasks[add->wrong];
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "line[%" PRId64 "].task", wrong->line);
    request_refuse(upload->wait.request, ERR_DUPLICATE_TASK, path,
                   "line %" PRId64 ": the task \"%.*s\" is on line %" PRId64 " already", wrong->line,
                   (int)(wrong->task.length_bytes < 100 ? wrong->task.length_bytes : 100), wrong->task.data,
                   add->first_line);
}

static void go_on(struct upload *upload, struct request *request);

static void submit(struct upload *upload, struct request *request, void (*done)(struct store_op *op))
{
    upload->wait.op.done = done;
    upload->busy = true;
    if (!store_wait_submit(&upload->wait, upload->server->store, request))
        upload->busy = false;
}

/* True: the request is still there, and waits. */
static bool comes_back(struct upload *upload)
{
    bool abandoned = upload->abandoned;
    upload->busy = false;
    if (abandoned)
        upload_destroy(upload);
    return !abandoned && upload->wait.request;
}

static void added(struct store_op *op)
{
    struct upload *upload = op->context;
    if (op->status == STORE_OK)
        upload->set_seq = op->add_tasks.set_seq;
    size_t count = op->add_tasks.count;
    enum store_status status = op->status;
    if (!comes_back(upload))
        return;
    if (status == STORE_EXISTS) {
        refuse_duplicate(upload);
    } else if (status != STORE_OK) {
        store_wait_refuse(&upload->wait, ": nothing of this set is kept");
    } else {
        upload->stored += count;
        go_on(upload, upload->wait.request);
    }
}

/* Few enough that other operations do not wait long. */
static size_t count_step(const struct upload *upload)
{
    size_t count = 0;
    size_t bytes = 0;
    for (size_t i = upload->stored; i < upload->count && count < STEP_TASKS && bytes < STEP_BYTES; i++, count++)
        bytes += upload->tasks[i].prompt.stored.length_bytes + upload->tasks[i].reference.stored.length_bytes +
                 upload->tasks[i].metadata.length_bytes;
    return count;
}

static void add_some(struct upload *upload, struct request *request)
{
    upload->wait.op.kind = STORE_ADD_TASKS;
    upload->wait.op.add_tasks = (struct store_add_tasks){.set_seq = upload->set_seq,
                                                         .set = text_of(upload->set),
                                                         .tasks = upload->tasks + upload->stored,
                                                         .count = count_step(upload)};
    submit(upload, request, added);
}

static int compare_splits(const void *left, const void *right)
{
    const struct store_split *a = left;
    const struct store_split *b = right;
    return strcmp(a->split.data, b->split.data);
}

static void frozen(struct store_op *op)
{
    struct upload *upload = op->context;
    const struct store_freeze_taskset *freeze = &op->freeze_taskset;
    struct store_taskset set = {.set = freeze->set, .created_at_us = -1};
    enum store_status status = op->status;
    if (status == STORE_OK)
        upload->set_seq = 0;
    if (!comes_back(upload))
        return;
    set.splits = upload->splits;
    set.split_count = upload->split_count;
    for (size_t i = 0; i < set.split_count; i++)
        set.tasks += set.splits[i].tasks;
    memcpy(set.sha256, freeze->sha256, SHA256_BYTES);
    if (status == STORE_OK || status == STORE_EXISTS)
        answer(upload->wait.request, status == STORE_OK ? 201 : 200, &set);
    else if (status == STORE_STATE_CONFLICT)
        refuse_content(upload->wait.request, upload->set);
    else
        store_wait_refuse(&upload->wait, ": nothing of this set is kept");
}

static void freeze(struct upload *upload, struct request *request)
{
    struct store_freeze_taskset *freeze = &upload->wait.op.freeze_taskset;
    qsort(upload->splits, upload->split_count, sizeof(*upload->splits), compare_splits);
    upload->wait.op.kind = STORE_FREEZE_TASKSET;
    *freeze = (struct store_freeze_taskset){.set_seq = upload->set_seq,
                                            .set = text_of(upload->set),
                                            .splits = upload->splits,
                                            .split_count = upload->split_count};
    sha256_finish(TAKE_PTR(upload->sha256), freeze->sha256);
    submit(upload, request, frozen);
}

static void go_on(struct upload *upload, struct request *request)
{
    bool more = request_call(request)->body_more;
    if (upload->stored < upload->count) {
        add_some(upload, request);
        return;
    }
    drop_tasks(upload);
    if (!more && upload->set_seq == 0)
        request_refuse(request, ERR_INVALID_FIELD, NULL, "a set has at least one task");
    else if (!more)
        freeze(upload, request);
    else if (request_hold_parsed(request, upload->rest.capacity_bytes))
        request_take_more(request);
}

void store_taskset(void *owner, struct request *request)
{
    const struct call *call = request_call(request);
    struct upload *upload = call->parsed;
    upload->server = owner;
    if (!upload->recorded.count)
        go_on(upload, request);
    else if (call->body_more)
        request_take_more(request);
    else
        compare(upload, request);
}
