/* DELETE /v1/runs/{run}: the deletion of a run, or a dry run of it. GET /v1/deletions: the deletions on record. */
#include "server/api/alarms.h"
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/base/utf8.h"
#include "server/http/http.h"
#include "server/render/list.h"
#include "server/spec/batch.h"

#include <string.h>

#define SAID_BY_BYTES 128

/* From the worker part to the loop part. */
struct measured {
    struct store_run_size size;
};

static void put_size(struct json_write *json, const struct store_run_size *size)
{
    json_put_int(json, "batches", size->batches);
    json_put_int(json, "groups", size->groups);
    json_put_int(json, "rollouts", size->rollouts);
}

/* ---- the dry run ------------------------------------------------------------------------------------------------- */

static void answer_dry(struct call *call, const struct store_run_size *size)
{
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    put_size(&json, size);
    json_put_int(&json, "bytes", size->bytes);
    json_object_end(&json);
    call_answer_json(call, 200);
}

static int check_said_by(struct call *call)
{
    struct text said_by = call_query(call, "by");
    if (said_by.length_bytes <= SAID_BY_BYTES)
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, "by", "at most %d bytes: who deletes the run", SAID_BY_BYTES);
}

/* Worker. */
void measure_run(struct call *call)
{
    static const char *const known[] = {"dry_run", "by", NULL};
    bool dry = false;
    if (call_check_query(call, known) < 0 || call_query_bool(call, "dry_run", &dry) < 0 || check_said_by(call) < 0 ||
        run_name_check(call, call->args[0]) < 0)
        return;
    struct measured *measured = xcalloc(1, sizeof(*measured));
    call->parsed = measured;
    call->parsed_destroy = free;
    enum store_status status =
        call->reader ? store_measure_run(call->reader, call->args[0], dry, &call->abandoned, &measured->size)
                     : STORE_UNAVAILABLE;
    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    else if (status != STORE_OK)
        call_refuse_unreadable(call);
    else if (dry)
        answer_dry(call, &measured->size);
}

/* ---- the order --------------------------------------------------------------------------------------------------- */

struct order {
    struct store_wait wait; /* first */
    struct server *server;
    char *run;
    char *said_by; /* NULL: not given */
    char client[CLIENT_BYTES];
    char request_id[REQUEST_ID_BYTES];
};

static void order_destroy(struct order *order)
{
    free(order->run);
    free(order->said_by);
    free(order);
}

/* The audit's line; its row is run_deletions'. */
static void say_ordered(const struct order *order)
{
    const struct store_delete_run *done = &order->wait.op.delete_run;
    log_event(LOG_LEVEL_WARNING, "run is deleted by request", "run", order->run, LOG_INT("deletion", done->deletion),
              "by", order->said_by, "client", order->client, "request_id", order->request_id,
              LOG_INT("batches", done->size.batches), LOG_INT("groups", done->size.groups),
              LOG_INT("rollouts", done->size.rollouts), NULL);
}

static void answer_ordered(struct request *request, const struct store_delete_run *done)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "run", done->run);
    json_put_int(&json, "deletion", done->deletion);
    json_put_time(&json, "requested_at", done->requested_at_us);
    put_size(&json, &done->size);
    json_object_end(&json);
    call_answer_json(call, 202);
    request_answer(request);
}

static void refuse(const struct store_wait *wait)
{
    const struct store_op *op = &wait->op;
    if (wait->request && op->status == STORE_NOT_FOUND)
        request_refuse(wait->request, ERR_NOT_FOUND, "run", "there is no run of this name");
    else if (wait->request && op->status == STORE_STATE_CONFLICT)
        request_refuse(wait->request, ERR_STATE_CONFLICT, "run", "%s", op->message);
    else
        store_wait_refuse(wait, ": nothing is deleted");
}

static void ordered(struct store_op *op)
{
    struct order *order = op->context;
    struct request *request = order->wait.request;
    if (op->status == STORE_OK) {
        say_ordered(order);
        alarms_forget(order->server->alarms, order->run);
    }
    if (request)
        request_on_hangup(request, NULL, NULL);
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        refuse(&order->wait);
    else if (request)
        answer_ordered(request, &op->delete_run);
    order_destroy(order);
}

/* Loop. */
void delete_run(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    const struct measured *measured = call->parsed;
    struct text said_by = call_query(call, "by");
    struct order *order = xcalloc(1, sizeof(*order));
    order->server = server;
    order->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    order->said_by = said_by.length_bytes ? xstrndup(said_by.data, said_by.length_bytes) : NULL;
    request_client(request, order->client);
    memcpy(order->request_id, call->request_id, strlen(call->request_id) + 1);
    struct store_op *op = &order->wait.op;
    *op = (struct store_op){.kind = STORE_DELETE_RUN, .done = ordered};
    op->delete_run = (struct store_delete_run){.run = text_of(order->run),
                                               .said_by = text_of(order->said_by),
                                               .client = text_of(order->client),
                                               .request_id = text_of(order->request_id),
                                               .size = measured->size};
    if (!store_wait_submit(&order->wait, server->store, request))
        order_destroy(order);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void put_deletion(struct json_write *json, const struct store_deletion *deletion)
{
    json_object_begin(json);
    json_put_int(json, "deletion", deletion->number);
    json_put_text(json, "run", deletion->run);
    json_put_string(json, "reason", store_deletion_reason_names[deletion->reason]);
    json_put_text(json, "by", deletion->said_by);
    json_put_text(json, "client", deletion->client);
    json_put_text(json, "request_id", deletion->request_id);
    json_put_time(json, "requested_at", deletion->requested_at_us);
    json_put_time(json, "ended_at", deletion->ended_at_us);
    json_put_int(json, "batches", deletion->batches);
    json_put_int(json, "groups", deletion->groups);
    json_put_int(json, "rollouts", deletion->rollouts);
    json_object_end(json);
}

static int add_deletions(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    _cleanup_(store_deletions_finish) struct store_deletions page = {0};
    if (store_list_deletions(reader, record_list_cursor(list), limits->rows, &page) != STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        put_deletion(record_list_item(list), &page.deletions[i]);
    record_list_read(list, page.next, page.count, page.count, 0);
    return 0;
}

void list_deletions(struct call *call)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    struct page page;
    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    if (!call->reader) {
        call_refuse_unreadable(call);
        return;
    }
    if (!store_deletions_cursor_fits(page.cursor)) {
        call_refuse(call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list");
        return;
    }
    struct record_list *list = xcalloc(1, sizeof(*list));
    record_list_init(list, page.cursor, page.limit, INT64_MAX);
    list->add = add_deletions;
    record_list_answer(call, list);
}
