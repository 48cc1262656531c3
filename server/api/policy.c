/* PUT /v1/runs/{run}/policy: the trainer says which weights the engines have now. POST /v1/runs/{run}/attach: a trainer
 * that has started says where it stands. */
#include "server/api/policy.h"

#include "server/api/routes.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/delivery/delivery.h"
#include "server/input/input.h"
#include "server/render/lease.h"
#include "server/spec/batch.h"

struct policy_fields {
    int64_t revision;
    int64_t step; /* -1: none */
    bool cancel_open;
};

#define POLICY(field) offsetof(struct policy_fields, field)

static const struct field policy_table[] = {
    {"revision", FIELD_INT, FIELD_REQUIRED, POLICY(revision), 0, 9223372036854775807.0, NULL},
    {"rewind_to_step", FIELD_INT, 0, POLICY(step), 0, 9223372036854775807.0, NULL},
    {"cancel_open", FIELD_BOOL, 0, POLICY(cancel_open), 0, 0, NULL},
};

static const struct field attach_table[] = {
    {"step", FIELD_INT, FIELD_REQUIRED, POLICY(step), 0, 9223372036854775807.0, NULL},
    {"revision", FIELD_INT, FIELD_REQUIRED, POLICY(revision), 0, 9223372036854775807.0, NULL},
};

struct declaration {
    struct store_wait wait; /* first */
    struct server *server;
    char *run;
    char *key;
};

static void declaration_destroy(struct declaration *declaration)
{
    free(declaration->run);
    free(declaration->key);
    free(declaration);
}

static void parse(struct call *call, const struct field *table, size_t count)
{
    struct json_input input;
    struct policy_fields *fields = xcalloc(1, sizeof(*fields));
    fields->step = -1;
    call->parsed = fields;
    call->parsed_destroy = free;
    if (json_input_init(&input, call, NULL) < 0)
        return;
    json_read_object(&input, input.root, "", table, count, fields);
    if (call->reply.status == 0)
        run_name_check(call, call->args[0]);
    json_input_finish(&input);
}

void parse_policy(struct call *call)
{
    parse(call, policy_table, ARRAY_LENGTH(policy_table));
}

void parse_attach(struct call *call)
{
    parse(call, attach_table, ARRAY_LENGTH(attach_table));
}

void policy_take_key(const struct call *call, enum store_route route, char **ret_owned, struct store_step_key *ret_key)
{
    *ret_owned = call->idempotency_key ? xstrdup(call->idempotency_key) : NULL;
    *ret_key = (struct store_step_key){.key = text_of(*ret_owned), .route = route};
    memcpy(ret_key->request_sha256, call->body_sha256, SHA256_BYTES);
}

static void policy_declared(struct store_op *op);

static void submit(struct server *server, struct request *request, enum store_route route)
{
    struct call *call = request_call(request);
    const struct policy_fields *fields = call->parsed;
    struct declaration *declaration = xcalloc(1, sizeof(*declaration));
    struct store_op *op = &declaration->wait.op;

    declaration->server = server;
    op->kind = STORE_DECLARE_POLICY;
    op->done = policy_declared;
    declaration->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    op->declare_policy = (struct store_declare_policy){.run = {declaration->run, call->args[0].length_bytes},
                                                       .revision = fields->revision,
                                                       .rewind_to_step = fields->step,
                                                       .cancel_open = fields->cancel_open,
                                                       .rewind_if_below = route == STORE_ROUTE_ATTACH,
                                                       .end_leases = route == STORE_ROUTE_ATTACH};
    policy_take_key(call, route, &declaration->key, &op->declare_policy.key);
    if (!store_wait_submit(&declaration->wait, server->store, request))
        declaration_destroy(declaration);
}

void declare_policy(void *owner, struct request *request)
{
    struct server *server = owner;
    const struct policy_fields *fields = request_call(request)->parsed;
    if (!fields->cancel_open || !policy_refuse_early(server, request))
        submit(server, request, STORE_ROUTE_POLICY);
}

void attach_run(void *owner, struct request *request)
{
    struct server *server = owner;
    struct policy_fields *fields = request_call(request)->parsed;
    fields->cancel_open = true;
    if (!policy_refuse_early(server, request))
        submit(server, request, STORE_ROUTE_ATTACH);
}

static void write_cancelled(struct json_write *json, const struct store_declare_policy *declared)
{
    json_key(json, "updates");
    json_array_begin(json);
    if (declared->update.revision >= 0) {
        json_object_begin(json);
        policy_write_update(json, declared->run, &declared->update);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_ended(struct json_write *json, const struct store_leases *leases)
{
    json_key(json, "leases");
    json_array_begin(json);
    for (size_t i = 0; i < leases->count; i++)
        render_lease_line(json, &leases->leases[i]);
    json_array_end(json);
}

static void answer(struct request *request, const struct store_declare_policy *declared)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    bool attached = declared->key.route == STORE_ROUTE_ATTACH;
    json_put_text(&json, "run", declared->run);
    json_put_int(&json, attached ? "policy_revision" : "revision", declared->current_revision);
    json_put_int(&json, "incarnation", declared->incarnation);
    json_put_int_or_null(&json, "previous_revision", declared->previous_revision);
    if (attached)
        write_ended(&json, &declared->ended_leases);
    write_cancelled(&json, declared);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void refuse(const struct store_wait *wait)
{
    const struct store_declare_policy *declared = &wait->op.declare_policy;
    const struct store_policy_update *open = &declared->update;
    if (wait->op.status == STORE_REVISION_CONFLICT)
        request_refuse(wait->request, ERR_REVISION_CONFLICT, "revision",
                       "revision %lld is below the run's %lld: a smaller one needs rewind_to_step",
                       (long long)declared->revision, (long long)declared->current_revision);
    else if (wait->op.status == STORE_STATE_CONFLICT)
        request_refuse(wait->request, ERR_STATE_CONFLICT, "run",
                       "a weight update of the run to revision %lld in mode %s is open: commit or cancel it, or say "
                       "\"cancel_open\": true",
                       (long long)open->revision, store_update_mode_names[open->mode]);
    else
        store_wait_refuse(wait, "");
}

/* On record now: what follows of it here. */
static void declared_now(const struct server *server, const struct store_declare_policy *declared)
{
    struct batches *batches = server->batches;
    delivery_given_back(server->delivery, declared->run, (size_t)declared->returned);
    runs_declared(batches, declared);
    if (declared->update.revision >= 0)
        update_cancelled(batches, declared->run, &declared->update);
    update_forget_warning(batches, declared->run);
}

static void policy_declared(struct store_op *op)
{
    struct declaration *declaration = op->context;
    struct store_declare_policy *declared = &op->declare_policy;
    if (op->status == STORE_OK)
        declared_now(declaration->server, declared);
    struct request *request = declaration->wait.request;
    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS))
        answer(request, declared);
    else if (request)
        refuse(&declaration->wait);
    store_leases_finish(&declared->ended_leases);
    declaration_destroy(declaration);
}
