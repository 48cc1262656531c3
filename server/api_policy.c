/* PUT /v1/runs/{run}/policy: the trainer says which weights the engines have now. */
#include "server/api_policy.h"

#include "server/base/json_write.h"
#include "server/batch_spec.h"
#include "server/json_input.h"
#include "server/live.h"

struct policy_fields {
    int64_t revision;
    int64_t rewind_to_step;
};

static const struct field policy_table[] = {
    {"revision", FIELD_INT, FIELD_REQUIRED, offsetof(struct policy_fields, revision), 0, 9223372036854775807.0, NULL},
    {"rewind_to_step", FIELD_INT, 0, offsetof(struct policy_fields, rewind_to_step), 0, 9223372036854775807.0, NULL},
};

struct declaration {
    struct store_op op;
    struct server *server;
    struct request *request; /* NULL: the client hung up */
    char *run;
};

void parse_policy(struct call *call)
{
    struct json_input input;
    struct policy_fields *fields = xcalloc(1, sizeof(*fields));
    fields->rewind_to_step = -1;
    call->parsed = fields;
    call->parsed_destroy = free;
    if (json_input_init(&input, call, NULL) < 0)
        return;
    json_read_object(&input, input.root, "", policy_table, ARRAY_LENGTH(policy_table), fields);
    if (call->reply.status == 0)
        run_name_check(call, call->args[0]);
    json_input_finish(&input);
}

static bool hung_up(struct request *request, void *arg)
{
    (void)request;
    ((struct declaration *)arg)->request = NULL;
    return true;
}

static void policy_declared(struct store_op *op);

void declare_policy(struct server *server, struct request *request)
{
    struct call *call = request_call(request);
    const struct policy_fields *fields = call->parsed;
    struct declaration *declaration = xcalloc(1, sizeof(*declaration));
    struct store_op *op = &declaration->op;

    declaration->server = server;
    declaration->request = request;
    op->kind = STORE_DECLARE_POLICY;
    op->done = policy_declared;
    op->context = declaration;
    declaration->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    op->declare_policy = (struct store_declare_policy){.run = {declaration->run, call->args[0].length_bytes},
                                                       .revision = fields->revision,
                                                       .rewind_to_step = fields->rewind_to_step};
    if (!store_submit(server->store, op)) {
        free(declaration->run);
        free(declaration);
        request_refuse(request, ERR_QUEUE_FULL, NULL, "the store's queue is full; try again");
        return;
    }
    request_on_hangup(request, hung_up, declaration);
}

static void answer(struct request *request, const struct store_declare_policy *declared)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "run", declared->run);
    json_put_int(&json, "revision", declared->current_revision);
    json_put_int(&json, "incarnation", declared->incarnation);
    json_key(&json, "previous_revision");
    if (declared->previous_revision >= 0)
        json_int(&json, declared->previous_revision);
    else
        json_write_null(&json);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void refuse(struct request *request, const struct store_op *op)
{
    const struct store_declare_policy *declared = &op->declare_policy;
    if (op->status == STORE_REVISION_CONFLICT)
        request_refuse(request, ERR_REVISION_CONFLICT, "revision",
                       "the run is at revision %lld; a smaller one needs rewind_to_step",
                       (long long)declared->current_revision);
    else if (op->status == STORE_STATE_CONFLICT)
        request_refuse(request, ERR_STATE_CONFLICT, "run", "a weight update of the run is open: commit or cancel it");
    else if (op->status == STORE_DISK_FULL)
        request_refuse(request, ERR_DISK_FULL, NULL, "the disk is full");
    else
        request_refuse(request, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be written");
}

static void policy_declared(struct store_op *op)
{
    struct declaration *declaration = op->context;
    const struct store_declare_policy *declared = &op->declare_policy;
    if (op->status == STORE_OK || op->status == STORE_EXISTS) {
        batches_declared(declaration->server->batches, declared);
        update_forget_warning(declaration->server->batches, declared->run);
    }
    if (declaration->request && (op->status == STORE_OK || op->status == STORE_EXISTS))
        answer(declaration->request, declared);
    else if (declaration->request)
        refuse(declaration->request, op);
    free(declaration->run);
    free(declaration);
}
