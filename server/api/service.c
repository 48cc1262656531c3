/* For operators: health, readiness, metrics, the contract, what is pending. */
#include "server/api/service.h"

#include "schema/embedded.h"
#include "server/api/alarms.h"
#include "server/api/routes.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/delivery/delivery.h"
#include "server/engines/engines.h"
#include "server/http/http.h"
#include "server/render/lease.h"
#include "server/render/render.h"
#include "server/reverify/reverify.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"
#include "server/verify/calls.h"
#include "server/verify/incidents.h"

#include <math.h>
#include <stdio.h>

extern const struct embedded_file openapi_files[];

static void begin(struct json_write *json, struct call *call)
{
    json_write_init(json, &call->reply.body);
    json_object_begin(json);
}

static void end(struct json_write *json, struct request *request, int status)
{
    json_object_end(json);
    call_answer_json(request_call(request), status);
    request_answer(request);
}

void get_health(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct json_write json;
    begin(&json, call);
    json_put_string(&json, "status", "ok");
    if (call->authorized) {
        json_put_string(&json, "version", ROLLOUTD_VERSION);
        json_put_string(&json, "url", server->url);
    }
    end(&json, request, 200);
}

/* One thing that must be in order before work can be taken. */
struct part {
    const char *name;
    bool ready;
    const char *why;
};

static bool is_up(const struct engine *engine)
{
    enum engine_state state = engine_shown_state(engine);
    return state == ENGINE_UP || state == ENGINE_COOLING || state == ENGINE_HALF_OPEN;
}

static size_t engines_up(struct pool *pool)
{
    size_t up = 0;
    for (size_t i = 0; i < pool_count(pool); i++)
        up += is_up(pool_at(pool, i));
    return up;
}

/* There are engines that sample, and none is up. */
static bool engines_are_missed(struct pool *pool)
{
    size_t sampling = 0;
    size_t up = 0;
    for (size_t i = 0; i < pool_count(pool); i++) {
        const struct engine *engine = pool_at(pool, i);
        sampling += !engine->unasked;
        up += !engine->unasked && is_up(engine);
    }
    return sampling > 0 && up == 0;
}

static void set_engine_gauges(struct pool *pool)
{
    int64_t counts[ENGINE_STATE_COUNT] = {0};
    for (size_t i = 0; i < pool_count(pool); i++)
        counts[engine_shown_state(pool_at(pool, i))]++;
    for (size_t state = 0; state < ENGINE_STATE_COUNT; state++)
        metric_set(METRIC_ENGINES, state, counts[state]);
    metric_set(METRIC_ENGINES_UP, 0, (int64_t)engines_up(pool));
}

static void write_engines(struct json_write *json, const struct engines *engines)
{
    struct pool *pool = engines->pool;
    char why[ENGINE_SENTENCE_BYTES];
    json_key(json, "engines");
    json_array_begin(json);
    for (size_t i = 0; i < pool_count(pool); i++) {
        const struct engine *engine = pool_at(pool, i);
        json_object_begin(json);
        json_put_string(json, "name", engine->name);
        json_put_string(json, "kind", engine->adapter ? engine->adapter->kind : NULL);
        json_put_string(json, "model", engine->model);
        json_put_string(json, "state", engine_state_names[engine_shown_state(engine)]);
        json_put_int(json, "in_flight", (int64_t)engine->in_flight);
        json_put_int(json, "in_flight_limit", (int64_t)engine->in_flight_limit);
        engine_say_why(engines, engine, why);
        json_put_string(json, "why", why[0] ? why : NULL);
        json_put_string(json, "last_error", engine->last_error.message[0] ? engine->last_error.message : NULL);
        json_object_end(json);
    }
    json_array_end(json);
}

/* As in every refusal. */
static void put_migrating(struct json_write *json, const struct call *call, const char *message)
{
    json_key(json, "error");
    json_object_begin(json);
    json_put_string(json, "code", error_rows[ERR_MIGRATING].code);
    json_put_string(json, "message", message);
    json_put_null(json, "path");
    json_put_string(json, "request_id", call->request_id);
    json_object_end(json);
}

void get_ready(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct verify_pool_counts counts;
    verify_pool_count(server->verify_pool, &counts);
    char migration[STORE_MESSAGE_BYTES];
    store_say_migration(server->store, migration);
    const char *lost = store_lost(server->store);
    const struct part parts[] = {
        {"admission", !http_is_draining(server->http), "the service is draining"},
        {"resume", server->batches->resumed, "unfinished batches are being read back"},
        {"store", !migration[0] && !lost && !server->batches->health.failing,
         migration[0]                                        ? migration
         : lost                                              ? lost
         : server->batches->health.status == STORE_DISK_FULL ? "the disk is full"
                                                             : "the database cannot be written"},
        {"verifiers", counts.workers_alive > 0, "no text worker is alive"},
        {"engines", !engines_are_missed(server->pool), "no engine answers"},
    };
    bool ready = true;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        ready = ready && parts[i].ready;

    struct json_write json;
    begin(&json, call);
    json_put_bool(&json, "ready", ready);
    if (migration[0])
        put_migrating(&json, call, migration);
    if (call->authorized) {
        json_key(&json, "parts");
        json_object_begin(&json);
        for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
            json_put_string(&json, parts[i].name, parts[i].ready ? "ready" : parts[i].why);
        json_object_end(&json);
        verify_pool_write_sandbox(&json, server->code_pool);
        json_put_int(&json, "batches_without_scored", (int64_t)server->batches->without_scored);
        write_engines(&json, server->engines);
    }
    end(&json, request, ready ? 200 : 503);
}

/* The slots of each run. */
static void write_slots(struct json_write *json, const struct verify_pool *pool, struct text run)
{
    struct verify_share share;
    json_key(json, "slots");
    json_array_begin(json);
    for (size_t place = 0; verify_pool_share(pool, place, &share); place++) {
        if (run.data && (!share.run || !text_equals(run, share.run)))
            continue;
        json_object_begin(json);
        json_put_string(json, "run", share.run);
        json_put_int(json, "waiting", (int64_t)share.queued);
        json_put_int(json, "busy", (int64_t)share.busy);
        json_object_end(json);
    }
    json_array_end(json);
}

/* The calls of each run to judges and externals. */
static void write_calls(struct json_write *json, const struct verify_calls *calls, struct text run)
{
    struct verify_calls_share share;
    json_key(json, "calls");
    json_array_begin(json);
    for (size_t place = 0; verify_calls_share(calls, place, &share); place++) {
        if (run.data && (!share.run || !text_equals(run, share.run)))
            continue;
        json_object_begin(json);
        json_put_string(json, "run", share.run);
        json_put_string(json, "engine", share.external ? NULL : share.pool);
        json_put_string(json, "external", share.external ? share.pool : NULL);
        json_put_int(json, "waiting", (int64_t)share.waiting);
        json_put_int(json, "in_flight", (int64_t)share.in_flight);
        json_object_end(json);
    }
    json_array_end(json);
}

static void set_call_gauges(const struct verify_calls *calls)
{
    size_t waiting;
    size_t in_flight;
    verify_calls_count(calls, &waiting, &in_flight);
    metric_set(METRIC_CALLS_WAITING, 0, (int64_t)waiting);
    metric_set(METRIC_CALLS_IN_FLIGHT, 0, (int64_t)in_flight);
}

static size_t in_phase(const struct batches *batches, enum rollout_phase first, enum rollout_phase last)
{
    size_t sum = 0;
    for (const struct live_batch *live = batches->first; live; live = live->next)
        for (size_t phase = first; phase <= last; phase++)
            sum += live->batch.in_phase[phase];
    return sum;
}

static void set_slot_gauges(const struct verify_pool *pool)
{
    struct verify_pool_counts counts;
    verify_pool_count(pool, &counts);
    for (size_t level = 0; level <= SANDBOX_LEVEL_FULL; level++)
        metric_set(METRIC_SANDBOX_LEVEL, level, verify_pool_level(pool) == level);
    metric_set(METRIC_SLOTS, METRIC_SLOTS_BUSY, (int64_t)counts.workers_busy);
    metric_set(METRIC_SLOTS, METRIC_SLOTS_IDLE, (int64_t)(counts.workers_alive - counts.workers_busy));
    metric_set(METRIC_SLOTS_STARTED, 0, (int64_t)counts.workers_started);
    metric_set(METRIC_CODE_JOBS, 0, (int64_t)counts.jobs_done);
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_CODE, (int64_t)counts.queued);
}

void service_set_gauges(struct server *server)
{
    struct verify_pool_counts counts;
    const struct store_metrics *store = store_metrics(server->store);
    verify_pool_count(server->verify_pool, &counts);
    metric_set(METRIC_CONNECTIONS, 0, (int64_t)http_connections(server->http));
    metric_set(METRIC_BATCHES_RUNNING, 0, (int64_t)server->batches->count);
    metric_set(METRIC_SAMPLES_QUEUED, 0, (int64_t)in_phase(server->batches, PHASE_QUEUED, PHASE_BACKOFF));
    metric_set(METRIC_SAMPLES_IN_FLIGHT, 0, (int64_t)in_phase(server->batches, PHASE_SAMPLING, PHASE_SAMPLING));
    set_engine_gauges(server->pool);
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_PARSE, (int64_t)workers_queued(server->workers));
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_VERIFY, (int64_t)counts.queued);
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_ROW, (int64_t)store->queued_ops);
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_BATCH, (int64_t)server->batches->count);
    delivery_set_gauges(server->delivery);
    alarms_set_gauges(server->alarms);
    metric_set(METRIC_WAL_BYTES, 0, (int64_t)store->wal_bytes);
    metric_set(METRIC_DATABASE_BYTES, 0, (int64_t)store->file_bytes);
    metric_set(METRIC_DATABASE_FREE_BYTES, 0, (int64_t)store->free_bytes);
    metric_set(METRIC_DELETIONS, 0, (int64_t)store->deletions);
    storage_look(&server->storage, server->store);
    metric_set(METRIC_MEMORY_USED_BYTES, 0,
               server->batches->bytes + http_body_bytes(server->http) + http_reply_bytes(server->http));
    metric_set(METRIC_MEMORY_LIMIT_BYTES, 0, server->batches->bytes_max);
    metric_set(METRIC_VERIFIER_ALARMS, 0, (int64_t)incidents_alarms(server->incidents));
    set_slot_gauges(server->code_pool);
    set_call_gauges(server->calls);
    metric_set(METRIC_TEXT_WORKERS_ALIVE, 0, (int64_t)counts.workers_alive);
    /* Those that are gone, and did not go because they had served enough. */
    metric_set(METRIC_TEXT_WORKERS_REPLACED, 0,
               (int64_t)(counts.workers_started - counts.workers_retired - counts.workers_alive));
}

void get_metrics(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    service_set_gauges(server);
    metrics_render(&call->reply.body);
    engines_write_metrics(server->engines, &call->reply.body);
    call->reply.status = 200;
    call->reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    request_answer(request);
}

void get_openapi(void *owner, struct request *request)
{
    (void)owner;
    struct call *call = request_call(request);
    buffer_append(&call->reply.body, openapi_files[0].data, openapi_files[0].size_bytes);
    call->reply.status = 200;
    call->reply.content_type = "application/yaml";
    request_answer(request);
}

void get_refusals(void *owner, struct request *request)
{
    struct server *server = owner;
    static const char *const known[] = {"request_id", "limit", NULL};
    struct call *call = request_call(request);
    struct json_write json;
    int64_t limit = 100;
    if (call_check_query(call, known) < 0 || call_query_int(call, "limit", 1, 1000, &limit) < 0) {
        request_answer(request);
        return;
    }
    begin(&json, call);
    http_write_refusals(server->http, call_query(call, "request_id"), limit, &json);
    end(&json, request, 200);
}

/* The wait that a commit or a cancel would end. */
static const char *update_waits_for(const struct update_view *update)
{
    if (update->phase == HOLD_STOPPING)
        return "samples that engines still work on";
    return update->phase == HOLD_QUIET ? "the trainer, which commits or cancels" : NULL;
}

static void write_update(struct json_write *json, const struct update_view *update)
{
    static const char *const phases[] = {[HOLD_STOPPING] = "stopping", [HOLD_QUIET] = "quiet", [HOLD_ENDED] = "ended"};
    json_object_begin(json);
    json_put_string(json, "run", update->run);
    update_write_record(json, update->record);
    json_put_string(json, "phase", phases[update->phase]);
    json_put_int(json, "in_flight", (int64_t)update->in_flight);
    json_put_string(json, "waits_for", update_waits_for(update));
    int64_t now_us = clock_utc_us();
    bool open = update->phase != HOLD_ENDED;
    json_put_double(json, "open_s", open ? (double)(now_us - update->record->begun_at_us) / US_PER_S : NAN);
    json_put_double(json, "left_s", open ? (double)(update->record->deadline_us - now_us) / US_PER_S : NAN);
    json_object_end(json);
}

/* Open updates, and those that a deadline ended. */
static void write_updates(struct json_write *json, const struct batches *batches, struct text run)
{
    const struct weight_update *update = NULL;
    struct update_view view;
    json_key(json, "updates");
    json_array_begin(json);
    while ((update = updates_next(batches, update, &view)))
        if (!run.data || text_equals(run, view.run))
            write_update(json, &view);
    json_array_end(json);
}

/* Groups by their delivery, for the loop part; NULL: the record cannot be read now. */
void count_pending(struct call *call)
{
    static const char *const known[] = {"run", NULL};
    if (call_check_query(call, known) < 0)
        return;
    struct store_delivery_counts *counts = xcalloc(1, sizeof(*counts));
    enum store_status status =
        call->reader ? store_count_deliveries(call->reader, call_query(call, "run"), counts) : STORE_UNAVAILABLE;
    if (status == STORE_UNAVAILABLE)
        free(TAKE_PTR(counts));
    call->parsed = counts;
    call->parsed_destroy = free;
}

static void write_reverifications(struct json_write *json, const struct reverify *all, struct text run)
{
    const char *id;
    const char *its_run;

    json_key(json, "reverifications");
    json_array_begin(json);
    for (size_t place = 0; reverify_at(all, place, &id, &its_run); place++) {
        if (run.data && !text_equals(run, its_run))
            continue;
        json_object_begin(json);
        json_put_string(json, "id", id);
        json_put_string(json, "run", its_run);
        json_object_end(json);
    }
    json_array_end(json);
}

void get_pending(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct json_write json;
    struct text run = call_query(call, "run");
    begin(&json, call);
    json_key(&json, "items");
    json_array_begin(&json);
    for (const struct live_batch *live = server->batches->first; live; live = live->next)
        if (!run.data || text_equals(run, live->run->name))
            live_write_pending(&json, live);
    json_array_end(&json);
    json_put_int(&json, "count", (int64_t)server->batches->count);
    render_delivery_counts(&json, call->parsed);
    json_put_int(&json, "lease_requests", (int64_t)delivery_waiting(server->delivery, run));
    write_updates(&json, server->batches, run);
    write_slots(&json, server->code_pool, run);
    write_calls(&json, server->calls, run);
    write_reverifications(&json, server->reverify, run);
    incidents_write(&json, server->incidents, run);
    alarms_write(server->alarms, run, &json);
    end(&json, request, 200);
}
