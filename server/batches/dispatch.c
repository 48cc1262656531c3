/* The dispatcher: which rollout goes to which engine next. Each named pool has a queue of its own; in it batches take
 * turns, one rollout each, so that a small batch does not wait behind a large one. A sample is sent only when its
 * places in all later queues and its bytes are reserved. */
#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/engines/engines.h"

#include <stdio.h>

#define REPLY_BYTES_PER_TOKEN 200           /* what engines write: 95 (vLLM) to 200 (llama.cpp) */
#define WAIT_MIN_US (5 * US_PER_MS)         /* a probe under way names no time */
#define REPEAT_LEAST_US (10 * US_PER_MS)    /* with less no engine is worth asking again */
#define DESCRIPTOR_WAIT_US (50 * US_PER_MS) /* the end of another sample is mostly sooner */
#define REPLY_BYTES_BASE ((size_t)64 * 1024)

/* --- queues -------------------------------------------------------------------------------------------- */

struct pool_queue *dispatch_queue(struct batches *batches, struct text pool)
{
    struct named_pool *named = pool_named(batches->uses.pool, pool);
    struct pool_queue *queue;
    for (size_t i = 0; i < batches->queue_count; i++)
        if (batches->queues[i]->pool == named)
            return batches->queues[i];
    queue = xcalloc(1, sizeof(*queue));
    queue->pool = named;
    batches->queues = xrealloc(batches->queues, (batches->queue_count + 1) * sizeof(struct pool_queue *));
    batches->queues[batches->queue_count++] = queue;
    return queue;
}

void dispatch_finish(struct batches *batches)
{
    for (size_t i = 0; i < batches->queue_count; i++)
        free(batches->queues[i]);
    free(batches->queues);
}

static struct live_batch **ring_of(const struct live_batch *live)
{
    return live->queue ? &live->queue->ring : &live->batches->given_ring;
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

static bool has_begun(const struct live_batch *live)
{
    return live->batch.in_phase[PHASE_QUEUED] < live->batch.rollout_count;
}

/* `other` comes first: it has the pool, or it was there before a batch of the run that has it, which could keep the
 * pool for ever with one batch after the other. */
static bool comes_before(const struct live_batch *other, const struct live_batch *live)
{
    bool earlier = other->admitted_us < live->admitted_us;
    if (other->queue != live->queue || other->run == live->run || !still_samples(other))
        return false;
    return live->queue->run == live->run ? earlier : other->run == live->queue->run && (earlier || has_begun(other));
}

/* A pool has one run's weights: another run's batch waits until those of the first that came before it, or have begun,
 * have nothing left to sample there. */
bool live_waits_for_pool(const struct live_batch *live)
{
    const struct batches *batches = live->batches;
    const struct pool_queue *queue = live->queue;
    if (!queue || (queue->run == live->run && has_begun(live)) || pool_named_is_shared(batches->uses.pool, queue->pool))
        return false;
    for (const struct live_batch *other = batches->first; other; other = other->next)
        if (comes_before(other, live))
            return true;
    return false;
}

static bool pool_may_serve(const struct live_batch *live)
{
    if (live_waits_for_pool(live))
        return false;
    live->queue->run = live->run;
    return true;
}

/* In every later queue. */
static bool reserve_place(struct batches *batches)
{
    if (batches->places >= batches->places_max || !store_reserve(batches->uses.store, 1))
        return false;
    batches->places++;
    return true;
}

static void dispatch_again(void *arg)
{
    dispatch(arg);
}

static void come_back(struct batches *batches, int64_t at_us, int64_t now_us)
{
    int64_t least_us = now_us + WAIT_MIN_US;
    at_us = at_us > least_us ? at_us : least_us;
    if (!batches->dispatch_timer.place || at_us < batches->dispatch_timer.at_us)
        loop_timer_set(batches->uses.loop, &batches->dispatch_timer, at_us, dispatch_again, batches);
}

/* NULL, or what is used up. */
static const char *reserve(struct batches *batches, size_t bytes)
{
    static const char later[] = "a place in the verifiers' and the store's queues";
    if (!transport_has_room(batches->uses.transport)) {
        int64_t now_us = clock_monotonic_us();
        come_back(batches, now_us + DESCRIPTOR_WAIT_US, now_us);
        return "a connection to an engine, of which the limit of open files allows no more";
    }
    if (batches->places >= batches->places_max)
        return later;
    if (!batches_take_flight_bytes(batches, bytes))
        return "the memory budget, which is used up by what runs";
    if (reserve_place(batches))
        return NULL;
    batches_give_flight_bytes(batches, bytes);
    return later;
}

static void send_one(struct live_batch *live, uint32_t rollout, struct engine *engine, size_t bytes)
{
    live_event(live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout, .sent = 1});
    struct flight *flight = flight_create(live, rollout);
    flight->dispatched = true;
    flight->reserved_bytes = bytes;
    flight_dispatch(flight, engine);
}

/* Nothing is sent, and nothing is repeated. */
static void fail_one(struct live_batch *live, uint32_t rollout, const struct sample_error *error)
{
    live_event(live, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout});
    struct flight *flight = flight_create(live, rollout);
    flight->engine = NULL;
    flight_fail(flight, error);
}

/* No engine of its pool serves the model, or can be asked for what the sampling says; at the POST that was not known. */
static void fail_for_want(struct live_batch *live, uint32_t rollout, const struct pool_want *want)
{
    struct sample_error error;
    pool_unsuited_error(live->batches->uses.pool, want, &error);
    fail_one(live, rollout, &error);
}

/* No engine of its pool has been usable for too long. */
static void fail_for_pool(struct live_batch *live, uint32_t rollout)
{
    struct sample_error error;
    pool_down_error(live->batches->uses.pool, live->queue->pool, &error);
    fail_one(live, rollout, &error);
}

static void fail_for_time(struct live_batch *live, uint32_t rollout)
{
    struct sample_error error = {.code = SAMPLE_ENGINE_TIMEOUT, .retryable = true};
    snprintf(
        error.message, sizeof(error.message),
        "its rollout_timeout (%lld ms from its first request on) was over, or almost, before it could be sent again",
        (long long)(live->batch.rules.rollout_timeout_us / US_PER_MS));
    fail_one(live, rollout, &error);
}

/* Equal prompts go to one engine, which has computed the first part of the next one's already. */
static uint64_t prefix_of(struct live_batch *live, uint32_t group)
{
    const struct group_spec *spec = &live->spec->groups[group];
    uint64_t *prefix = &live->group_prefixes[group];
    if (*prefix)
        return *prefix;
    if (spec->prompt_ids)
        *prefix = pool_prefix(
            (struct text){(const char *)spec->prompt_ids, spec->prompt_id_count * sizeof(*spec->prompt_ids)});
    else
        *prefix = pool_prefix(spec->prompt.data ? spec->prompt : spec->messages);
    return *prefix;
}

/* NOT_NOW: this rollout has to wait, another batch's may not; FULL: whatever comes next would have to wait, too. */
enum dispatched { DISPATCHED, NOT_NOW, FULL };

/* From when on its pool's absence counts: engines may be away while their weights are changed. */
static int64_t usable_since(const struct live_batch *live)
{
    return live->run->resumed_us > live->admitted_us ? live->run->resumed_us : live->admitted_us;
}

/* One rollout of one batch. */
static enum dispatched dispatch_one(struct batches *batches, struct live_batch *live, uint32_t rollout)
{
    struct engine *engine = NULL;
    int64_t now_us = clock_monotonic_us();
    int64_t at_us = now_us;
    uint32_t group = live->batch.rollouts[rollout].group;
    size_t bytes = REPLY_BYTES_BASE + REPLY_BYTES_PER_TOKEN * (size_t)live->spec->groups[group].sampling.max_tokens;
    int64_t least_us = live->batch.rollouts[rollout].first_dispatch_us ? REPEAT_LEAST_US : 1;
    struct pool_want want = {.pool = live->queue->pool,
                             .prefix = prefix_of(live, group),
                             .avoid = live->failed_at[rollout],
                             .since_us = usable_since(live),
                             .left_us = batch_time_left(&live->batch, rollout, now_us),
                             .tokens = live->spec->groups[group].sampling.max_tokens,
                             .sampling = &live->spec->groups[group].sampling,
                             .model = live->spec->model};

    if (live->batch.rules.deadline_us - now_us < least_us)
        return NOT_NOW; /* its timer is due, or almost */
    if (want.left_us < least_us) {
        fail_for_time(live, rollout);
        return DISPATCHED;
    }
    live->short_of = NULL;
    switch (pool_pick(batches->uses.pool, &want, now_us, &engine, &at_us)) {
    case POOL_PICKED:
        live->short_of = reserve(batches, bytes);
        if (live->short_of)
            return FULL;
        send_one(live, rollout, engine, bytes);
        return DISPATCHED;
    case POOL_DOWN:
        fail_for_pool(live, rollout);
        return DISPATCHED;
    case POOL_UNSUITED:
        fail_for_want(live, rollout, &want);
        return DISPATCHED;
    case POOL_WAIT:
        come_back(batches, at_us, now_us);
        return NOT_NOW;
    case POOL_BUSY:
        break;
    }
    return want.model.data ? NOT_NOW : FULL; /* engines of another model may have room */
}

/* One rollout of the next batch that has the pool; false if nothing more can be sent there now. */
static bool sample_next(struct batches *batches, struct pool_queue *queue)
{
    size_t passed_over = 0;
    while (queue->ring && passed_over <= batches->count) {
        struct live_batch *live = queue->ring;
        bool held = false;
        int64_t rollout = update_next_rollout(live, &held);
        if (rollout < 0 && !held) {
            dispatch_remove(live);
            continue;
        }
        queue->ring = live->ring_next;
        enum dispatched what = !held && pool_may_serve(live) ? dispatch_one(batches, live, (uint32_t)rollout) : NOT_NOW;
        if (what == DISPATCHED)
            return true;
        if (what == FULL) {
            queue->ring = live; /* its turn is still to come */
            return false;
        }
        passed_over++;
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
    for (size_t refused = 0; refused <= batches->queue_count;) { /* until nobody can go on */
        size_t turn = batches->turn;
        bool sent = turn == 0 ? take_next_given(batches) : sample_next(batches, batches->queues[turn - 1]);
        batches->turn = turn < batches->queue_count ? turn + 1 : 0;
        refused = sent ? 0 : refused + 1;
    }
    batches->dispatching = false;
    if (pool_wants_probe(batches->uses.pool))
        engines_probe(batches->uses.engines);
}
