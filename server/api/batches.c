#include "server/api/batches.h"

#include "server/api/manifest.h"
#include "server/api/routes.h"
#include "server/api/store_wait.h"
#include "server/api/unstored.h"
#include "server/api/waiters.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/admission.h"
#include "server/batches/budget.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/delivery/delivery.h"
#include "server/engines/engines.h"
#include "server/render/feed.h"
#include "server/render/render.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stdio.h>

/* --- POST: reading -------------------------------------------------------------------------------------- */

/* The stored state of a request's key. */
struct key_record {
    bool found;     /* it has made a batch before: this is no new one */
    bool same_body; /* and with this body */
    char batch_id[ID_BYTES];
};

/* From the worker part to the loop part. */
struct new_batch {
    struct batch_spec *spec;
    struct key_record recorded;
    struct manifest_hold hold;
    int64_t wait_us; /* NEVER_US: until the batch has ended */
    int arrays;      /* enum json_arrays */
    /* of the run, for a score that is not stored */
    int64_t policy_revision;
    int64_t incarnation;
};

static void new_batch_destroy(void *parsed)
{
    struct new_batch *new_batch = parsed;
    batch_spec_destroy(new_batch->spec);
    free(new_batch);
}

static struct new_batch *new_batch_create(struct call *call)
{
    struct new_batch *new_batch = xcalloc(1, sizeof(*new_batch));
    new_batch->wait_us = NEVER_US;
    call->parsed = new_batch;
    call->parsed_destroy = new_batch_destroy;
    return new_batch;
}

/* 0, or -1 with the call refused, as the next two. */
static int read_query(struct call *call, struct new_batch *new_batch)
{
    static const char *const known[] = {"wait", "arrays", NULL};

    if (call_check_query(call, known) < 0 || call_query_duration(call, "wait", &new_batch->wait_us) < 0)
        return -1;
    return call_query_arrays(call, &new_batch->arrays);
}

static int read_batch(struct call *call, enum batch_origin origin, struct new_batch *new_batch)
{
    new_batch->spec = origin == BATCH_GIVEN ? score_spec_read(call) : batch_spec_read(call);
    if (!new_batch->spec)
        return -1;
    if (new_batch->spec->store) {
        batch_spec_pack_body(new_batch->spec);
        batch_spec_make_contents(new_batch->spec);
    }
    if (call->accept_ndjson && new_batch->spec->deliver == STORE_REPLY &&
        objective_needs_whole_batch(&new_batch->spec->objective))
        return call_refuse(
            call, ERR_OBJECTIVE_OPTIONS, "objective.advantage",
            "an advantage rule over the whole batch cannot be streamed by groups: ask for application/json");
    return 0;
}

static int parse(struct call *call, enum batch_origin origin)
{
    struct new_batch *new_batch = new_batch_create(call);
    return read_query(call, new_batch) < 0 ? -1 : read_batch(call, origin, new_batch);
}

static enum store_route route_of(const struct batch_spec *spec)
{
    return spec->origin == BATCH_GIVEN ? STORE_ROUTE_SCORE : STORE_ROUTE_BATCHES;
}

/* A repeated request must find its batch, however full the service or its disk is. The store decides what the key
 * means in the run's incarnation; what is found here counts if the store cannot write. */
static void look_up_key(struct call *call)
{
    struct new_batch *new_batch = call->parsed;
    struct key_record *recorded = &new_batch->recorded;
    uint8_t sha256[SHA256_BYTES];
    if (!call->idempotency_key || !call->reader ||
        store_find_idempotency(call->reader, new_batch->spec->run, route_of(new_batch->spec),
                               text_of(call->idempotency_key), recorded->batch_id, sha256) != STORE_OK)
        return;
    recorded->found = true;
    recorded->same_body = memcmp(sha256, new_batch->spec->body_sha256, SHA256_BYTES) == 0;
}

/* The batch of a known key is on record, also if the run's manifest has changed since. */
static void look_at_manifest(struct call *call)
{
    struct new_batch *new_batch = call->parsed;
    new_batch->hold.spec = new_batch->spec;
    if (new_batch->spec->purpose == STORE_TRAIN && !new_batch->recorded.found)
        manifest_look(call, new_batch->spec->run, &new_batch->hold);
}

void parse_batch(struct call *call)
{
    if (parse(call, BATCH_SAMPLED) < 0)
        return;
    look_up_key(call);
    look_at_manifest(call);
}

static void read_run(struct call *call, struct new_batch *new_batch)
{
    struct store_run_detail detail = {0};
    if (call->reader && store_read_run(call->reader, new_batch->spec->run, &detail) == STORE_OK) {
        new_batch->policy_revision = detail.run.policy_revision < 0 ? 0 : detail.run.policy_revision;
        new_batch->incarnation = detail.run.incarnation;
    }
    if (new_batch->spec->policy_revision >= 0)
        new_batch->policy_revision = new_batch->spec->policy_revision;
    store_run_detail_finish(&detail);
}

void parse_score(struct call *call)
{
    if (parse(call, BATCH_GIVEN) < 0)
        return;
    struct new_batch *new_batch = call->parsed;
    if (new_batch->spec->store)
        look_up_key(call);
    look_at_manifest(call);
    if (new_batch->spec->store || call->reply.status)
        return;
    if (new_batch->wait_us != NEVER_US)
        call_refuse(call, ERR_INVALID_FIELD, "wait", "what is not stored is answered when it is done, or not at all");
    else if (call->accept_ndjson)
        call_refuse(call, ERR_NOT_ACCEPTABLE, "store", "what is not stored is not streamed: ask for application/json");
    else
        read_run(call, new_batch);
}

void batches_read_score(struct call *call)
{
    if (read_batch(call, BATCH_GIVEN, new_batch_create(call)) < 0)
        return;
    look_up_key(call);
    look_at_manifest(call);
}

/* --- POST: creating ---------------------------------------------------------------------------------------- */

struct creation {
    struct store_wait wait; /* first */
    struct server *server;
    struct batch_spec *spec;
    struct store_new_group *groups;
    char *key;
    char request_id[REQUEST_ID_BYTES];
    struct key_record recorded;
    struct manifest_hold hold;
    int64_t wait_us;
    bool respond_async;
    bool for_leases; /* its groups are asked for there: the reply waits for none */
    size_t bytes;
};

static void creation_destroy(struct creation *creation)
{
    creation->server->batches->creations--;
    batches_give_bytes(creation->server->batches, creation->bytes);
    batch_spec_destroy(creation->spec);
    free(creation->groups);
    free(creation->key);
    free(creation);
}

/* The reserve comes on record as it is drawn. */
static void fill_groups(struct creation *creation)
{
    const struct batch_spec *spec = creation->spec;
    creation->groups = xcalloc(spec->first_group_count, sizeof(struct store_new_group));
    for (size_t g = 0; g < spec->first_group_count; g++)
        batch_spec_new_group(&spec->groups[g], &creation->groups[g]);
}

static void batch_created(struct store_op *op);

static void fill_op(struct creation *creation)
{
    const struct batch_spec *spec = creation->spec;
    struct store_create_batch *create = &creation->wait.op.create_batch;
    creation->wait.op.kind = STORE_CREATE_BATCH;
    creation->wait.op.done = batch_created;
    *create = (struct store_create_batch){
        .run = spec->run,
        .purpose = (enum store_purpose)spec->purpose,
        .policy_revision = spec->policy_revision,
        .max_staleness = spec->max_staleness,
        .seed = spec->seed,
        .idempotency_key = text_of(creation->key),
        .request_id = text_of(creation->request_id),
        .route = route_of(spec),
        .must_exist = creation->recorded.found,
        .arithmetic_version = OBJECTIVE_ARITHMETIC_VERSION,
        .pass_verifier = spec->pass.verifier,
        .pass_threshold = spec->pass.threshold,
        .request = spec->body_codec ? buffer_text(&spec->packed) : (struct text){spec->body, spec->body_bytes},
        .request_codec = spec->body_codec,
        .request_bytes = spec->body_bytes,
        .content_type = TEXT_LITERAL("application/json"),
        .sampling = spec->sampling_json,
        .objective = spec->objective_json,
        .verifiers = spec->verifiers_json,
        .metadata = spec->metadata_json,
        .returns = spec->returns_json,
        .deadline_us = clock_utc_us() + spec->deadline_us,
        .deliver = (enum store_deliver)spec->deliver,
        .ready_limit = creation->server->settings->ready_limit,
        .respond_async = creation->respond_async,
        .settings = creation->server->engines->in_force,
        .groups = creation->groups,
        .group_count = spec->first_group_count,
        .manifest = manifest_guard(&creation->hold),
    };
    id_new_batch(create->id);
    memcpy(create->request_sha256, spec->body_sha256, SHA256_BYTES);
}

static size_t bytes_of(const struct batch_spec *spec)
{
    return batch_spec_bytes(spec) + (spec->store ? 0 : unstored_bytes(spec));
}

/* Whether there is room for one more. 0, or -1 with the call refused. */
static int admit(struct server *server, struct call *call, const struct batch_spec *spec)
{
    struct batches *batches = server->batches;
    if (spec->origin == BATCH_SAMPLED && admission_check(batches, call, spec) < 0)
        return -1;
    if (admission_check_judges(batches, call, spec) < 0)
        return -1;
    if (http_is_draining(server->http))
        return call_refuse(call, ERR_DRAINING, NULL, "the service is shutting down");
    if (batches->count + batches->creations >= (size_t)server->settings->batches_limit)
        return call_refuse(call, ERR_QUEUE_FULL, NULL, "%zu batches are running; batches_limit is reached",
                           batches->count + batches->creations);
    if (!batches_take_bytes(batches, bytes_of(spec)))
        return call_refuse(call, ERR_QUEUE_FULL, NULL,
                           "the memory budget is used up; try again when batches have ended");
    return 0;
}

static void name_request(struct live_batch *live, const char *request_id)
{
    snprintf(live->request_id, sizeof(live->request_id), "%s", request_id);
    log_event(LOG_LEVEL_INFO, "batch created", "batch", live->id, "request_id", live->request_id, "run",
              live->run->name, LOG_INT("rollouts", live->batch.rollout_count), NULL);
}

/* It begins at once, and ends with its answer. */
static void begin_unstored(struct server *server, struct request *request)
{
    struct new_batch *new_batch = request_call(request)->parsed;
    size_t bytes = bytes_of(new_batch->spec);
    char id[ID_BYTES];

    id_new_batch(id);
    struct live_batch *live =
        live_create(server->batches, new_batch->spec, id, clock_utc_us() + new_batch->spec->deadline_us);
    new_batch->spec = NULL;
    live->unstored = unstored_create(live->spec, unstored_write_reply, new_batch->arrays);
    live->reserved_bytes = bytes;
    batch_spec_drop_body(live->spec);
    live->policy_revision = new_batch->policy_revision;
    live->sampled_revision = new_batch->policy_revision;
    live->incarnation = new_batch->incarnation;
    name_request(live, request_call(request)->request_id);
    waiter_add(server->loop, live, request, &(struct waiter_rules){.created = true, .until_us = NEVER_US});
    live_start(live);
}

static void answer_refused(struct request *request)
{
    struct reply *reply = &request_call(request)->reply;
    reply->retry_after_s = reply->status == 429 || reply->status == 503 ? 1 : 0;
    metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_BATCH, reply->status == 429);
    request_answer(request);
}

/* Takes the creation: it comes back as batch_created(), or is refused and gone. */
static void submit_creation(struct creation *creation, struct request *request)
{
    if (store_wait_submit(&creation->wait, creation->server->store, request))
        return;
    metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_ROW, 1);
    creation_destroy(creation);
}

void create_batch(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct new_batch *new_batch = call->parsed;
    if (!server->batches->resumed) /* the batch of a known key is not back yet either */
        call_refuse(call, ERR_DRAINING, NULL, "the service is still starting");
    else if (!new_batch->recorded.found)
        admit(server, call, new_batch->spec);
    if (call->reply.status) {
        answer_refused(request);
        return;
    }
    if (!new_batch->spec->store) {
        begin_unstored(server, request);
        return;
    }
    struct creation *creation = xcalloc(1, sizeof(*creation));
    creation->server = server;
    server->batches->creations++;
    creation->spec = TAKE_PTR(new_batch->spec);
    creation->bytes = new_batch->recorded.found ? 0 : batch_spec_bytes(creation->spec);
    creation->key = call->idempotency_key ? xstrdup(call->idempotency_key) : NULL;
    snprintf(creation->request_id, sizeof(creation->request_id), "%s", call->request_id);
    creation->recorded = new_batch->recorded;
    creation->hold = new_batch->hold;
    creation->wait_us = new_batch->wait_us;
    creation->respond_async = call->prefer_async;
    creation->for_leases = creation->spec->deliver == STORE_LEASE;
    fill_groups(creation);
    fill_op(creation);
    submit_creation(creation, request);
}

/* The key was known when the request was read, and its run has gone back to a checkpoint since: it is a new batch,
 * which has to be admitted like any other. */
static void create_anew(struct creation *creation)
{
    struct request *request = creation->wait.request;
    if (!request) { /* nobody was told of anything */
        creation_destroy(creation);
        return;
    }
    if (admit(creation->server, request_call(request), creation->spec) < 0) {
        request_on_hangup(request, NULL, NULL);
        creation_destroy(creation);
        answer_refused(request);
        return;
    }
    creation->bytes = batch_spec_bytes(creation->spec);
    creation->recorded = (struct key_record){0};
    creation->wait.op.create_batch.must_exist = false;
    submit_creation(creation, request);
}

/* --- POST: on record ------------------------------------------------------------------------------------------ */

static void wait_for(const struct creation *creation, struct live_batch *live)
{
    struct waiter_rules rules = {.created = true, .until_us = NEVER_US};
    struct loop *loop = creation->server->loop;
    int64_t now_us = loop_now_us(loop);
    if (creation->respond_async || creation->for_leases)
        rules.until_us = now_us;
    else if (creation->wait_us < NEVER_US - now_us)
        rules.until_us = now_us + creation->wait_us;
    waiter_add(loop, live, creation->wait.request, &rules);
}

static void begin_batch(struct creation *creation)
{
    const struct store_create_batch *created = &creation->wait.op.create_batch;
    struct batches *batches = creation->server->batches;
    struct live_batch *live = live_create(batches, creation->spec, created->id, created->deadline_us);

    creation->spec = NULL;
    live->reserved_bytes = creation->bytes;
    creation->bytes = 0;
    batch_spec_drop_body(live->spec);
    live->policy_revision = created->policy_revision;
    live->sampled_revision = created->policy_revision;
    live->was_current = created->policy_revision == created->current_revision;
    live->incarnation = created->incarnation;
    live->admitted_utc_us = created->created_at_us;
    live->has_key = creation->key != NULL;
    live->run->revision = created->current_revision;
    live->run->incarnation = created->incarnation;
    name_request(live, creation->request_id);
    if (creation->wait.request)
        wait_for(creation, live);
    delivery_observe(creation->server->delivery, live);
    live_start(live);
    if (!creation->wait.request && !live->has_key)
        live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
}

/* The key was used before, with the same body: the same answer, running or done. */
static void join_batch(const struct creation *creation, const char *id)
{
    struct live_batch *live = batches_find(creation->server->batches, text_of(id));
    if (!creation->wait.request)
        return;
    if (live)
        wait_for(creation, live);
    else
        request_answer_batch(creation->wait.request, id);
}

/* Says what was compared. */
static void refuse_revision(struct request *request, const struct store_op *op)
{
    const struct store_create_batch *create = &op->create_batch;
    long long named = create->policy_revision;
    long long current = create->current_revision;
    if (op->status == STORE_STATE_CONFLICT)
        request_refuse(
            request, ERR_STATE_CONFLICT, "policy_revision",
            "policy_revision %lld is above the run's (%lld; -1: none is declared), and a weight update of the "
            "run is open: a newer revision is declared by its commit",
            named, current);
    else
        request_refuse(request, ERR_REVISION_CONFLICT, "policy_revision",
                       "policy_revision %lld is %lld behind the run's %lld; max_staleness allows %lld", named,
                       current - named, current, (long long)create->max_staleness);
}

static void refuse_ready(struct request *request, const struct store_create_batch *create)
{
    request_call(request)->reply.retry_after_s = 1;
    metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_BATCH, 1);
    request_refuse(
        request, ERR_QUEUE_FULL, "groups",
        "run %.*s has %lld groups that are posted for leases and not yet acked, stale, failed or dropped; with "
        "%zu more they are above ready_limit (%lld)",
        (int)create->run.length_bytes, create->run.data, (long long)create->undelivered, create->group_count,
        (long long)create->ready_limit);
}

static void refuse_creation(const struct creation *creation)
{
    enum store_status status = creation->wait.op.status;
    log_event(LOG_LEVEL_WARNING, "batch not created", "request_id", creation->request_id, "why",
              creation->wait.op.message, NULL);
    if (!creation->wait.request)
        return;
    if (status == STORE_REVISION_CONFLICT || status == STORE_STATE_CONFLICT)
        refuse_revision(creation->wait.request, &creation->wait.op);
    else if (status == STORE_OVER_READY_LIMIT)
        refuse_ready(creation->wait.request, &creation->wait.op.create_batch);
    else if (status == STORE_MANIFEST_CONFLICT || status == STORE_OVER_BUDGET)
        manifest_refuse(creation->wait.request, &creation->wait.op, &creation->hold);
    else if (status == STORE_REFUSED)
        request_refuse(creation->wait.request, ERR_INTERNAL, NULL, "the record refused the batch");
    else
        store_wait_refuse(&creation->wait, ": this request created nothing");
}

/* The store cannot write, but the key needs no writing. */
static enum store_status read_key(struct creation *creation)
{
    memcpy(creation->wait.op.create_batch.id, creation->recorded.batch_id, ID_BYTES);
    return creation->recorded.same_body ? STORE_EXISTS : STORE_IDEMPOTENCY_CONFLICT;
}

static void batch_created(struct store_op *op)
{
    struct creation *creation = op->context;
    if (store_failed_for_now(op->status) && creation->recorded.found)
        op->status = read_key(creation);
    if (op->status == STORE_NOT_FOUND) {
        create_anew(creation);
        return;
    }
    if (op->status == STORE_OK)
        begin_batch(creation);
    else if (op->status == STORE_EXISTS)
        join_batch(creation, op->create_batch.id);
    else
        refuse_creation(creation);
    creation_destroy(creation);
}

void answer_batch(struct call *call)
{
    if (call->accept_safetensors)
        batch_tensors_answer(call, text_of(call->subject));
    else
        render_answer_batch(call, text_of(call->subject));
}

/* --- GET and DELETE ----------------------------------------------------------------------------------------------- */

void get_batch(void *owner, struct request *request)
{
    struct server *server = owner;
    static const char *const known[] = {"wait", "arrays", NULL};
    struct call *call = request_call(request);
    int64_t wait_us = server->settings->wait_get_us;
    int arrays = 0;
    if (call_check_query(call, known) < 0 || call_query_duration(call, "wait", &wait_us) < 0 ||
        call_query_arrays(call, &arrays) < 0) {
        request_answer(request);
        return;
    }
    struct live_batch *live = batches_find(server->batches, call->args[0]);
    if (live) {
        waiter_add(server->loop, live, request,
                   &(struct waiter_rules){.until_us = loop_now_us(server->loop) + wait_us});
        return;
    }
    snprintf(call->subject, sizeof(call->subject), "%.*s",
             (int)(call->args[0].length_bytes < ID_BYTES ? call->args[0].length_bytes : ID_BYTES - 1),
             call->args[0].data);
    request_continue_on_worker(request, call->accept_ndjson ? feed_answer_ended : answer_batch);
}

/* Ends what runs and answers with the batch as it ended; one that has ended already is simply shown. */
void cancel_batch(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct live_batch *live = batches_find(server->batches, call->args[0]);
    if (!live) {
        get_batch(server, request);
        return;
    }
    waiter_add(server->loop, live, request, &(struct waiter_rules){.until_us = NEVER_US});
    live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
}
