/* The dispatcher: which rollout goes to which engine next. Batches take turns, one rollout each, so that a small batch
 * does not wait behind a large one. A sample is sent only when its places in all later queues and its bytes are
 * reserved. */
#include "server/live.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/metrics.h"
#include "server/settings.h"

#define REPLY_BYTES_PER_TOKEN 200   /* what engines write: 95 (vLLM) to 200 (llama.cpp) */
#define WAIT_MIN_US (5 * US_PER_MS) /* a probe under way names no time */
#define REPLY_BYTES_BASE ((size_t)64 * 1024)

/* Batches that need an engine and batches that need none do not wait behind each other. */
static struct live_batch **ring_of(const struct live_batch *live)
{
    struct batches *batches = live->server->batches;
    return live->spec->origin == BATCH_GIVEN ? &batches->given_ring : &batches->ring;
}

void dispatch_add(struct live_batch *live)
{
    struct live_batch **ring = ring_of(live);
    if (live->in_dispatch)
        return;
    live->in_dispatch = true;
    if (!*ring) {
        live->ring_next = live->ring_previous = live;
        *ring = live;
        return;
    }
    live->ring_next = *ring;
    live->ring_previous = (*ring)->ring_previous;
    live->ring_previous->ring_next = live;
    live->ring_next->ring_previous = live;
}

void dispatch_remove(struct live_batch *live)
{
    struct live_batch **ring = ring_of(live);
    if (!live->in_dispatch)
        return;
    live->in_dispatch = false;
    if (*ring == live)
        *ring = live->ring_next == live ? NULL : live->ring_next;
    live->ring_previous->ring_next = live->ring_next;
    live->ring_next->ring_previous = live->ring_previous;
}

static bool still_samples(const struct live_batch *live)
{
    const size_t *in_phase = live->batch.in_phase;
    if (live->spec->origin == BATCH_GIVEN)
        return false;
    return in_phase[PHASE_QUEUED] + in_phase[PHASE_BACKOFF] + in_phase[PHASE_SAMPLING] > 0;
}

static bool pool_is_shared(const struct settings *settings)
{
    for (size_t i = 0; i < settings->engine_count; i++)
        if (settings->engines[i].shared)
            return true;
    return false;
}

/* A pool has one run's weights: another run's batch waits until the first has nothing left to sample there. */
bool live_waits_for_pool(const struct live_batch *live)
{
    const struct batches *batches = live->server->batches;
    if (live->spec->origin == BATCH_GIVEN || batches->pool_run == live->run ||
        pool_is_shared(batches->server->settings))
        return false;
    for (const struct live_batch *other = batches->first; other; other = other->next)
        if (other->run == batches->pool_run && still_samples(other))
            return true;
    return false;
}

static bool pool_may_serve(struct batches *batches, const struct live_batch *live)
{
    if (live_waits_for_pool(live))
        return false;
    batches->pool_run = live->run;
    return true;
}

/* In every later queue. */
static bool reserve_place(struct batches *batches)
{
    if (batches->places >= batches->places_max || !store_reserve(batches->server->store, 1))
        return false;
    batches->places++;
    return true;
}

static bool reserve(struct batches *batches, size_t bytes)
{
    if (batches->places >= batches->places_max || !batches_take_flight_bytes(batches, bytes))
        return false;
    if (reserve_place(batches))
        return true;
    batches_give_flight_bytes(batches, bytes);
    return false;
}

static void send_one(struct live_batch *live, uint32_t rollout, struct engine *engine, size_t bytes)
{
    live_event(live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout, .sent = 1});
    struct flight *flight = flight_create(live, rollout);
    flight->dispatched = true;
    flight->reserved_bytes = bytes;
    flight_dispatch(flight, engine);
}

/* No engine of its pool has been usable for too long: nothing was sent, and nothing is repeated. */
static void fail_one(struct live_batch *live, uint32_t rollout)
{
    struct sample_error error;
    pool_down_error(live->server->pool, live->pool, &error);
    live_event(live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout});
    struct flight *flight = flight_create(live, rollout);
    flight->engine = NULL;
    flight_fail(flight, &error);
}

static void dispatch_again(void *arg)
{
    dispatch(arg);
}

/* One rollout of one batch; false if nothing more can be sent now. */
static bool dispatch_one(struct batches *batches, struct live_batch *live, uint32_t rollout)
{
    struct engine *engine = NULL;
    int64_t now_us = clock_monotonic_us();
    int64_t at_us = now_us;
    uint32_t group = live->batch.rollouts[rollout].group;
    size_t bytes = REPLY_BYTES_BASE + REPLY_BYTES_PER_TOKEN * (size_t)live->spec->groups[group].sampling.max_tokens;

    struct pool_want want = {.pool = live->pool, .avoid = live->failed_at[rollout], .since_us = live->admitted_us};
    switch (pool_pick(batches->server->pool, &want, now_us, &engine, &at_us)) {
    case POOL_PICKED:
        if (!reserve(batches, bytes))
            return false;
        send_one(live, rollout, engine, bytes);
        return true;
    case POOL_DOWN:
        fail_one(live, rollout);
        return true;
    case POOL_WAIT:
        at_us = at_us > now_us + WAIT_MIN_US ? at_us : now_us + WAIT_MIN_US;
        loop_timer_set(batches->server->loop, &batches->dispatch_timer, at_us, dispatch_again, batches);
        return false;
    case POOL_BUSY:
        break;
    }
    return false;
}

/* One rollout of the next batch that has the pool; false if nothing more can be sent now. */
static bool sample_next(struct batches *batches)
{
    size_t passed_over = 0;
    while (batches->ring && passed_over <= batches->count) {
        struct live_batch *live = batches->ring;
        int64_t rollout = batch_peek_queued(&live->batch);
        if (rollout < 0) {
            dispatch_remove(live);
            continue;
        }
        batches->ring = live->ring_next;
        if (!pool_may_serve(batches, live)) {
            passed_over++;
            continue;
        }
        if (dispatch_one(batches, live, (uint32_t)rollout))
            return true;
        batches->ring = live; /* its turn is still to come */
        return false;
    }
    return false;
}

/* One completion that came with its request; its bytes were counted with it. False if there is none, or no place. */
static bool take_next_given(struct batches *batches)
{
    while (batches->given_ring) {
        struct live_batch *live = batches->given_ring;
        int64_t rollout = batch_peek_queued(&live->batch);
        if (rollout < 0) {
            dispatch_remove(live);
            continue;
        }
        if (!reserve_place(batches))
            return false;
        batches->given_ring = live->ring_next;
        live_event(live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = (uint32_t)rollout});
        struct flight *flight = flight_create(live, (uint32_t)rollout);
        flight->dispatched = true;
        flight_take_given(flight);
        return true;
    }
    return false;
}

void dispatch(struct batches *batches)
{
    if (batches->dispatching)
        return;
    batches->dispatching = true;
    for (unsigned refused = 0; refused < 2;) { /* until neither kind can go on */
        bool sent = batches->given_first ? take_next_given(batches) : sample_next(batches);
        batches->given_first = !batches->given_first; /* they take turns for the places that get free */
        refused = sent ? 0 : refused + 1;
    }
    batches->dispatching = false;
}

/* --- probing -------------------------------------------------------------------------------------------- */

struct probe {
    struct batches *batches;
    struct engine *engine;
    bool running;
};

void log_engine_change(const struct engine *engine, enum engine_state before)
{
    bool up = engine->state == ENGINE_UP || engine->state == ENGINE_COOLING;
    bool was_up = before == ENGINE_UP || before == ENGINE_COOLING;
    const char *kind = engine->adapter ? engine->adapter->kind : NULL;

    if (up && !was_up)
        log_event(LOG_LEVEL_INFO, "engine up", "engine", engine->name, "url", engine->url, "kind", kind, "model",
                  engine->model, NULL);
    if (engine->state == ENGINE_DOWN && before != ENGINE_DOWN)
        log_event(LOG_LEVEL_WARNING, "engine down", "engine", engine->name, "url", engine->url, "why",
                  engine->last_error.message, NULL);
}

static void send_probe(struct probe *probe);

static void probed(void *arg, struct transfer_reply *reply)
{
    struct probe *probe = arg;
    struct engine_reply seen = {.status = reply->status,
                                .content_type = text_of(reply->content_type),
                                .retry_after = text_of(reply->retry_after),
                                .body = buffer_text(&reply->body),
                                .now_utc_us = clock_utc_us()};
    struct sample_error error = {0};
    bool whole = reply->result == TRANSFER_DONE;
    if (!whole)
        sample_error_of_transfer(reply, &error);
    enum engine_state before = probe->engine->state;
    if (engine_probe_reply(probe->engine, whole ? &seen : NULL, whole ? NULL : &error, clock_monotonic_us())) {
        send_probe(probe);
        return;
    }
    log_engine_change(probe->engine, before);
    probe->running = false;
    probe_engines(probe->batches);
    dispatch(probe->batches);
}

static void send_probe(struct probe *probe)
{
    struct transfer_request request = {.base_url = probe->engine->url,
                                       .path = engine_probe_path(probe->engine),
                                       .method = "GET",
                                       .bearer_token = probe->engine->token,
                                       .timeout_us = ENGINE_PROBE_TIMEOUT_US,
                                       .connect_timeout_us = ENGINE_PROBE_TIMEOUT_US,
                                       .reply_limit_bytes = ENGINE_PROBE_REPLY_BYTES};
    transport_start(probe->batches->server->transport, &request, probed, probe);
}

void probe_engines(void *arg)
{
    struct batches *batches = arg;
    struct pool *pool = batches->server->pool;
    struct engine *engine;
    int64_t at_us = NEVER_US;

    if (!batches->probes)
        batches->probes = xcalloc(pool_count(pool) + 1, sizeof(struct probe));
    while ((engine = pool_probe_due(pool, clock_monotonic_us(), &at_us))) {
        struct probe *probe = batches->probes;
        while (probe->running)
            probe++; /* one for each engine at most, so there is a free one */
        *probe = (struct probe){.batches = batches, .engine = engine, .running = true};
        send_probe(probe);
    }
    if (at_us != NEVER_US)
        loop_timer_set(batches->server->loop, &batches->probe_timer, at_us, probe_engines, batches);
}
