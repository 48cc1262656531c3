/* PUT /v1/runs/{run}, and the refusal of requests that contradict the run's manifest. */
#include "server/api/manifest.h"

#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/http/http.h"

/* --- requests against the manifest ---------------------------------------------------------------------------- */

void manifest_refuse(struct request *request, const struct store_op *op, const struct manifest_hold *hold)
{
    if (op->status == STORE_OVER_BUDGET) {
        request_refuse(request, ERR_STATE_CONFLICT, "budget", "%s", op->message);
        return;
    }
    manifest_refuse_difference(request_call(request), hold ? &hold->difference : &(struct manifest_difference){0});
    request_answer(request);
}

/* --- PUT: reading --------------------------------------------------------------------------------------------- */

enum { BATCHES_AT_ONCE = 128 };

/* From the worker part to the loop part and back, and the store's while it is written. */
struct putting {
    struct store_wait wait; /* first */
    struct server *server;
    char *run;
    struct json_input input; /* `given` lives there */
    bool read;
    json_t *given;
    struct manifest manifest; /* with the keys frozen before */
    struct buffer given_text;
    struct buffer frozen_text;
    int64_t base_version;  /* of the manifest on record; -1: not read yet */
    int64_t checked_batch; /* seq of the newest batch on record that agrees */
    bool checked;          /* there is no newer one */
};

static void putting_destroy(void *parsed)
{
    struct putting *putting = parsed;
    manifest_finish(&putting->manifest);
    buffer_finish(&putting->given_text);
    buffer_finish(&putting->frozen_text);
    if (putting->read)
        json_input_finish(&putting->input);
    free(putting->run);
    free(putting);
}

static const struct field put_table[] = {
    {"manifest", FIELD_OBJECT, FIELD_REQUIRED, offsetof(struct putting, given), 0, 0, NULL},
};

static int read_body(struct call *call)
{
    struct putting *putting = xcalloc(1, sizeof(*putting));
    call->parsed = putting;
    call->parsed_destroy = putting_destroy;
    putting->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    putting->base_version = -1;
    if (run_name_check(call, call->args[0]) < 0 || json_input_init(&putting->input, call, NULL) < 0)
        return -1;
    putting->read = true;
    return json_read_object(&putting->input, putting->input.root, "", put_table, ARRAY_LENGTH(put_table), putting);
}

static void answer(struct call *call, const struct putting *putting, bool created, int64_t version)
{
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_string(&json, "run", putting->run);
    json_put_bool(&json, "created", created);
    json_put_int(&json, "version", version);
    json_put_raw(&json, "manifest", buffer_text(&putting->given_text));
    json_object_end(&json);
    call_answer_json(call, created ? 201 : 200);
}

static void write_tree(struct buffer *out, json_t *tree)
{
    struct json_write json;
    buffer_finish(out);
    buffer_init(out, (size_t)16 << 20);
    json_write_init(&json, out);
    settings_write(&json, tree);
}

/* The keys frozen before, and the new ones. 0, or -1 with the call refused, or answered if nothing is new. */
static int combine(struct call *call, struct putting *putting)
{
    _cleanup_(store_manifest_finish) struct store_manifest before = {0};
    enum store_status status = STORE_UNAVAILABLE;
    if (call->reader)
        status = store_read_manifest(call->reader, call->args[0], &before);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return call_refuse_unreadable(call);
    if (before.version == putting->base_version)
        return 0;
    manifest_finish(&putting->manifest);
    if (manifest_read(&putting->input, putting->given, &putting->manifest) < 0 ||
        manifest_add(&putting->input, before.given, before.frozen, &putting->manifest) < 0)
        return -1;
    putting->base_version = before.version;
    write_tree(&putting->given_text, putting->manifest.given);
    write_tree(&putting->frozen_text, putting->manifest.frozen);
    if (before.version == 0 || !text_same(before.given, buffer_text(&putting->given_text)))
        return 0;
    answer(call, putting, false, before.version);
    return -1;
}

static int check_batch(struct call *call, const struct putting *putting, const struct store_batch_settings *batch)
{
    struct manifest_difference difference;
    if (manifest_agrees_with_record(putting->manifest.frozen, batch, &difference))
        return 0;
    return call_refuse(call, ERR_STATE_CONFLICT, difference.key,
                       "this manifest says %s, and the batch %s on record had %s", difference.wanted, batch->id,
                       difference.found);
}

/* Checks some of the batches on record: a long run holds no worker. */
static int check_record(struct call *call, struct putting *putting)
{
    _cleanup_(store_settings_page_finish) struct store_settings_page page = {0};
    enum store_status status =
        store_list_settings(call->reader, call->args[0], putting->checked_batch, BATCHES_AT_ONCE, &page);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return call_refuse_unreadable(call);
    for (size_t i = 0; i < page.count; i++) {
        if (check_batch(call, putting, &page.batches[i]) < 0)
            return -1;
        putting->checked_batch = page.batches[i].seq;
    }
    putting->checked = page.count < BATCHES_AT_ONCE;
    return 0;
}

/* Repeats until the whole record is checked, and again after a write in between. */
void parse_manifest(struct call *call)
{
    if (!call->parsed && read_body(call) < 0)
        return;
    if (combine(call, call->parsed) == 0)
        check_record(call, call->parsed);
}

/* --- PUT: on record ------------------------------------------------------------------------------------------- */

static void manifest_put(struct store_op *op);
static void spent_counted(struct store_op *op);

static void submit(struct putting *putting, struct request *request)
{
    if (!store_wait_submit(&putting->wait, putting->server->store, request))
        putting_destroy(putting);
}

static void submit_manifest(struct putting *putting, struct request *request)
{
    putting->wait.op = (struct store_op){.kind = STORE_PUT_MANIFEST, .done = manifest_put};
    putting->wait.op.put_manifest = (struct store_put_manifest){.run = text_of(putting->run),
                                                                .given = buffer_text(&putting->given_text),
                                                                .frozen = buffer_text(&putting->frozen_text),
                                                                .budget = putting->manifest.budget,
                                                                .base_version = putting->base_version,
                                                                .checked_batch = putting->checked_batch};
    submit(putting, request);
}

static void submit_count(struct putting *putting, struct request *request)
{
    putting->wait.op = (struct store_op){.kind = STORE_COUNT_SPENT, .done = spent_counted};
    putting->wait.op.count_spent = (struct store_count_spent){.run = text_of(putting->run)};
    submit(putting, request);
}

void put_manifest(void *owner, struct request *request)
{
    struct call *call = request_call(request);
    struct putting *putting = call->parsed;
    putting->server = owner;
    if (!putting->checked) {
        request_continue_on_worker(request, parse_manifest);
        return;
    }
    call->parsed = NULL; /* the operation outlives the request if the client hangs up */
    if (putting->manifest.budget.completion_tokens >= 0)
        submit_count(putting, request);
    else
        submit_manifest(putting, request);
}

static void refuse(const struct putting *putting)
{
    const struct store_op *op = &putting->wait.op;
    const struct store_put_manifest *put = &op->put_manifest;
    if (!putting->wait.request || op->status != STORE_OVER_BUDGET) {
        store_wait_refuse(&putting->wait, "");
        return;
    }
    request_refuse(putting->wait.request, ERR_STATE_CONFLICT, "budget",
                   "the run has spent %lld completion tokens and %lld revisions already",
                   (long long)put->spent.completion_tokens, (long long)put->spent.revisions);
}

static void spent_counted(struct store_op *op)
{
    struct putting *putting = op->context;
    struct request *request = putting->wait.request;
    if (request && op->status == STORE_OK && !op->count_spent.all) {
        submit_count(putting, request);
        return;
    }
    if (request && op->status == STORE_OK) {
        submit_manifest(putting, request);
        return;
    }
    refuse(putting);
    putting_destroy(putting);
}

static void manifest_put(struct store_op *op)
{
    struct putting *putting = op->context;
    struct request *request = putting->wait.request;
    if (request && op->status == STORE_CHANGED) {
        struct call *call = request_call(request);
        call->parsed = putting;
        call->parsed_destroy = putting_destroy;
        request_continue_on_worker(request, parse_manifest);
        return;
    }
    if (request && op->status == STORE_OK) {
        answer(request_call(request), putting, op->put_manifest.created, op->put_manifest.version);
        request_answer(request);
    } else {
        refuse(putting);
    }
    putting_destroy(putting);
}
