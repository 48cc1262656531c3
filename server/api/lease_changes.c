/* POST /v1/runs/{run}/leases/{lease}/extend, …/release, …/ack: what becomes of a lease. */
#include "server/api/leases.h"

#include "server/api/routes.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/delivery/delivery.h"
#include "server/input/input.h"
#include "server/render/lease.h"
#include "server/settings/settings.h"
#include "server/spec/batch.h"

#include <stdio.h>

#define CONFLICT_BYTES_MAX ((size_t)8 << 20)

/* A request on its way to the record. The operation outlives the request if the client hangs up. */
struct change {
    struct store_wait wait; /* first */
    struct server *server;
    char *run;
    char *lease;
    char **owned;        /* [group_count] */
    struct text *groups; /* [group_count] */
    size_t group_count;
    int64_t lease_us;
    int64_t optimizer_step;
    json_t *list; /* borrowed, while the body is read */
};

static void change_destroy(void *parsed)
{
    struct change *change = parsed;
    for (size_t i = 0; i < change->group_count; i++)
        free(change->owned[i]);
    free(change->owned);
    free(change->groups);
    free(change->run);
    free(change->lease);
    free(change);
}

/* --- reading --------------------------------------------------------------------------------------------- */

#define CHANGE(field) offsetof(struct change, field)

static const struct field extend_table[] = {{"lease", FIELD_DURATION, 0, CHANGE(lease_us), 0, 0, NULL}};
static const struct field release_table[] = {{"groups", FIELD_ARRAY, 0, CHANGE(list), 0, 0, NULL}};
static const struct field ack_table[] = {
    {"optimizer_step", FIELD_INT, FIELD_REQUIRED, CHANGE(optimizer_step), 0, 9223372036854775807.0, NULL},
    {"groups", FIELD_ARRAY, 0, CHANGE(list), 0, 0, NULL},
};

/* Without `groups` all are meant; an empty list means nothing. */
static int read_groups(struct call *call, struct change *change)
{
    size_t count = json_array_size(change->list);
    char path[PATH_BYTES];
    if (!change->list)
        return 0;
    if (count == 0)
        return call_refuse(call, ERR_INVALID_FIELD, "groups", "at least one id, or no `groups`: all of the lease");
    change->owned = xcalloc(count, sizeof(*change->owned));
    change->groups = xcalloc(count, sizeof(*change->groups));
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(change->list, i);
        path_index(path, "", "groups", i);
        if (!json_is_string(id))
            return call_refuse(call, ERR_INVALID_FIELD, path, "expected the id of a group, a text");
        change->owned[i] = xstrndup(json_string_value(id), json_string_length(id));
        change->groups[i] = (struct text){change->owned[i], json_string_length(id)};
        change->group_count++;
    }
    return 0;
}

static void parse(struct call *call, const struct field *table, size_t count, bool needs_body)
{
    struct json_input input;
    struct change *change = xcalloc(1, sizeof(*change));
    change->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    change->lease = xstrndup(call->args[1].data, call->args[1].length_bytes);
    change->lease_us = call->settings->lease_duration_us;
    call->parsed = change;
    call->parsed_destroy = change_destroy;
    if ((call->body_bytes == 0 && !needs_body) || json_input_init(&input, call, NULL) < 0)
        return;
    if (json_read_object(&input, input.root, "", table, count, change) == 0 && read_groups(call, change) == 0)
        lease_check_duration(call, change->lease_us);
    change->list = NULL;
    json_input_finish(&input);
}

void parse_lease_extend(struct call *call)
{
    parse(call, extend_table, ARRAY_LENGTH(extend_table), false);
}

void parse_lease_release(struct call *call)
{
    parse(call, release_table, ARRAY_LENGTH(release_table), false);
}

void parse_lease_ack(struct call *call)
{
    parse(call, ack_table, ARRAY_LENGTH(ack_table), true);
}

/* --- refusals ------------------------------------------------------------------------------------------------ */

void lease_refuse(struct request *request, const struct store_op *op, const char *missing)
{
    struct store_wait wait = {.op = *op, .request = request};
    if (op->status == STORE_NOT_FOUND)
        request_refuse(request, ERR_NOT_FOUND, missing,
                       strcmp(missing, "run") == 0 ? "there is no run of this name"
                                                   : "the run has no lease of this id");
    else if (op->status == STORE_STATE_CONFLICT)
        request_refuse(request, ERR_STATE_CONFLICT, missing, "%s", op->message);
    else
        store_wait_refuse(&wait, "");
}

/* An id that no group for leases has is in no state. */
static void write_conflict(const struct store_lease_groups *groups, struct buffer *out)
{
    struct json_write json;
    json_write_init(&json, out);
    json_array_begin(&json);
    for (size_t i = 0; i < groups->count; i++) {
        const struct store_lease_group *group = &groups->groups[i];
        json_object_begin(&json);
        json_put_string(&json, "group", group->id);
        json_put_string(&json, "state", group->is_known ? store_delivery_state_names[group->on_record.state] : NULL);
        json_put_string(&json, "lease", group->on_record.lease[0] ? group->on_record.lease : NULL);
        json_put_int_or_null(&json, "optimizer_step", group->is_known ? group->on_record.optimizer_step : -1);
        json_object_end(&json);
    }
    json_array_end(&json);
}

/* Says what became of each group that the lease does not hold. */
static void refuse_ack(struct request *request, const struct store_op *op)
{
    struct call *call = request_call(request);
    const struct store_ack_lease *ack = &op->ack_lease;
    _cleanup_buffer_ struct buffer groups;
    buffer_init(&groups, CONFLICT_BYTES_MAX);
    write_conflict(&ack->conflict, &groups);
    call_refuse(call, ERR_STATE_CONFLICT, "groups",
                "%s; the lease is %s, and nothing of this was acknowledged: error.groups has where they are",
                op->message, store_lease_state_names[ack->lease.state]);
    call_add_to_refusal(call, "groups", buffer_text(&groups));
    request_answer(request);
}

/* --- answers --------------------------------------------------------------------------------------------------- */

/* count: how many groups; NULL: none are concerned. */
static void answer(struct request *request, const struct store_lease *lease, const char *count_name, int64_t count)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    render_lease_members(&json, lease);
    if (count_name)
        json_put_int(&json, count_name, count);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void extended(struct store_op *op)
{
    struct change *change = op->context;
    struct request *request = change->wait.request;
    if (op->status == STORE_OK)
        delivery_expires(change->server->delivery, op->extend_lease.lease.expires_at_us);
    if (request && op->status == STORE_OK)
        answer(request, &op->extend_lease.lease, NULL, 0);
    else if (request)
        lease_refuse(request, op, "lease");
    change_destroy(change);
}

static void released(struct store_op *op)
{
    struct change *change = op->context;
    struct request *request = change->wait.request;
    if (op->status == STORE_OK)
        delivery_given_back(change->server->delivery, text_of(change->run), (size_t)op->release_lease.released);
    if (request && op->status == STORE_OK)
        answer(request, &op->release_lease.lease, "released", op->release_lease.released);
    else if (request)
        lease_refuse(request, op, "lease");
    change_destroy(change);
}

static void acked(struct store_op *op)
{
    struct change *change = op->context;
    struct request *request = change->wait.request;
    if (request && op->status == STORE_OK)
        answer(request, &op->ack_lease.lease, "acked", op->ack_lease.acked);
    else if (request && op->status == STORE_STATE_CONFLICT)
        refuse_ack(request, op);
    else if (request)
        lease_refuse(request, op, "lease");
    store_lease_groups_finish(&op->ack_lease.conflict);
    change_destroy(change);
}

/* --- to the record ------------------------------------------------------------------------------------------------ */

static struct change *take_change(void *owner, struct request *request, void (*done)(struct store_op *op))
{
    struct change *change = TAKE_PTR(request_call(request)->parsed);
    change->server = owner;
    change->wait.op.done = done;
    return change;
}

static struct store_lease_choice choice_of(const struct change *change)
{
    return (struct store_lease_choice){.run = text_of(change->run),
                                       .lease = text_of(change->lease),
                                       .groups = change->groups,
                                       .count = change->group_count};
}

static void submit(struct change *change, struct request *request)
{
    if (!store_wait_submit(&change->wait, change->server->store, request))
        change_destroy(change);
}

void extend_lease(void *owner, struct request *request)
{
    struct change *change = take_change(owner, request, extended);
    change->wait.op.kind = STORE_EXTEND_LEASE;
    change->wait.op.extend_lease = (struct store_extend_lease){.of = choice_of(change), .lease_us = change->lease_us};
    submit(change, request);
}

void release_lease(void *owner, struct request *request)
{
    struct change *change = take_change(owner, request, released);
    change->wait.op.kind = STORE_RELEASE_LEASE;
    change->wait.op.release_lease = (struct store_release_lease){.of = choice_of(change)};
    submit(change, request);
}

void ack_lease(void *owner, struct request *request)
{
    struct change *change = take_change(owner, request, acked);
    change->wait.op.kind = STORE_ACK_LEASE;
    change->wait.op.ack_lease =
        (struct store_ack_lease){.of = choice_of(change), .optimizer_step = change->optimizer_step};
    submit(change, request);
}
