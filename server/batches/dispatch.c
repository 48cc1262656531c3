#include "server/batches/dispatch_private.h"

#include "server/base/clock.h"
#include "server/batches/attempt_private.h"
#include "server/batches/flight_private.h"
#include "server/batches/live.h"
#include "server/batches/queues_private.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/engines/engines.h"

#include <stdio.h>

#define REPLY_BYTES_PER_TOKEN 200           /* what engines write: 95 (vLLM) to 200 (llama.cpp) */
#define WAIT_MIN_US (5 * US_PER_MS)         /* a probe under way names no time */
#define REPEAT_LEAST_US (10 * US_PER_MS)    /* with less no engine is worth asking again */
#define DESCRIPTOR_WAIT_US (50 * US_PER_MS) /* the end of another sample is mostly sooner */
#define REPLY_BYTES_BASE ((size_t)64 * 1024)

static bool pool_may_serve(const struct live_batch *live)
{
    if (queues_wait_for_run(live))
        return false;
    live->queue->run = live->run;
    return true;
}

static void dispatch_again(void *arg)
{
    batches_wake(arg);
}

static void come_back(struct batches *batches, int64_t at_us, int64_t now_us)
{
    int64_t least_us = now_us + WAIT_MIN_US;
    at_us = at_us > least_us ? at_us : least_us;
    if (!batches->dispatch_timer.place || at_us < batches->dispatch_timer.at_us)
        loop_timer_set(batches->uses.loop, &batches->dispatch_timer, at_us, dispatch_again, batches);
}

/* The resource that a batch waits for: that of which a reservation is short. */
static const char *const used_up[] = {
    [NO_PLACE] = "a place in the verifiers' and the store's queues",
    [NO_SHARE] = "its share of the slots for programs",
    [NO_BYTES] = "the memory budget, which is used up by what runs",
};

/* With live->short_of. */
static enum reserved reserve(struct live_batch *live, uint32_t rollout, size_t bytes)
{
    struct batches *batches = live->batches;
    enum reserved reserved;

    if (!transport_has_room(batches->uses.transport)) {
        int64_t now_us = clock_monotonic_us();
        come_back(batches, now_us + DESCRIPTOR_WAIT_US, now_us);
        live->short_of = "a connection to an engine, of which the limit of open files allows no more";
        return NO_PLACE;
    }
    reserved = reservation_take(live, rollout, bytes, &live->flights[rollout].reserved);
    live->short_of = used_up[reserved];
    return reserved;
}

/* At once, and not posted: the next look into the queue depends on it. It brings no actions. */
static void note_dispatched(struct live_batch *live, uint32_t rollout, unsigned sent)
{
    batch_step(&live->batch, &(struct batch_event){.kind = EVENT_DISPATCHED, .index = rollout, .sent = sent},
               clock_monotonic_us(), &live->actions);
}

/* Nothing is sent, and nothing is repeated. */
static void fail_one(struct live_batch *live, uint32_t rollout, const struct sample_error *error)
{
    note_dispatched(live, rollout, 0);
    attempt_fail(live, rollout, error);
}

/* No engine of its pool serves the model, or can be asked for what the sampling says; at the POST that was not known. */
static void fail_for_want(struct live_batch *live, uint32_t rollout, const struct pool_want *want)
{
    struct sample_error error;
    pool_unsuited_error(live->batches->uses.pool, want, &error);
    fail_one(live, rollout, &error);
}

/* No engine of its pool that could take it has been usable for too long. */
static void fail_for_pool(struct live_batch *live, uint32_t rollout, const struct pool_want *want)
{
    struct sample_error error;
    pool_down_error(live->batches->uses.pool, want, &error);
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

/* NOT_NOW: this rollout has to wait, another batch's may not; BUSY: those of its model have to wait, too; FULL: whatever
 * comes next would have to wait, too. */
enum dispatched { DISPATCHED, NOT_NOW, BUSY, FULL };

/* From when on its pool's absence counts: engines may be away while their weights are changed. */
static int64_t usable_since(const struct live_batch *live)
{
    return live->run->resumed_us > live->admitted_us ? live->run->resumed_us : live->admitted_us;
}

/* One rollout of one batch. */
static enum dispatched dispatch_one(struct batches *batches, struct live_batch *live, uint32_t rollout)
{
    enum reserved reserved;
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
        reserved = reserve(live, rollout, bytes);
        if (reserved != RESERVED)
            return reserved == NO_SHARE ? NOT_NOW : FULL;
        note_dispatched(live, rollout, 1);
        attempt_send(live, rollout, engine);
        return DISPATCHED;
    case POOL_DOWN:
        fail_for_pool(live, rollout, &want);
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
    return want.model.data ? BUSY : FULL; /* engines of another model may have room */
}

/* busy: a batch that was BUSY, or NULL. */
static enum dispatched try_batch(struct batches *batches, struct live_batch *live, int64_t rollout,
                                 const struct live_batch *busy)
{
    if (!pool_may_serve(live))
        return NOT_NOW;
    if (busy && text_same(live->spec->model, busy->spec->model))
        return BUSY;
    return dispatch_one(batches, live, (uint32_t)rollout);
}

/* One rollout of the next batch that has the pool; false if nothing more can be sent there now. */
static bool sample_next(struct batches *batches, struct pool_queue *queue)
{
    struct live_batch *busy = NULL; /* the first one that is: it keeps its turn */
    size_t passed_over = 0;
    while (queue->ring && queue->ring != busy && passed_over <= batches->count) {
        struct live_batch *live = queue->ring;
        bool held = false;
        int64_t rollout = update_next_rollout(live, &held);
        if (rollout < 0 && !held) {
            queues_remove(live);
            continue;
        }
        queue->ring = live->ring_next;
        enum dispatched what = held ? NOT_NOW : try_batch(batches, live, rollout, busy);
        if (what == DISPATCHED) {
            if (busy)
                queues_move_behind(live, busy);
            return true;
        }
        if (what == FULL) {
            queue->ring = busy ? busy : live; /* its turn is still to come */
            return false;
        }
        if (what == BUSY && !busy)
            busy = live;
        passed_over++;
    }
    if (busy)
        queue->ring = busy;
    return false;
}

/* One completion that came with its request; its bytes were counted with it. False if there is none, or no place. */
static bool take_next_given(struct batches *batches)
{
    for (size_t passed_over = 0; batches->given_ring && passed_over <= batches->count; passed_over++) {
        struct live_batch *live = batches->given_ring;
        int64_t rollout = batch_peek_queued(&live->batch);
        if (rollout < 0) {
            queues_remove(live);
            continue;
        }
        enum reserved reserved = reservation_take(live, (uint32_t)rollout, 0, &live->flights[rollout].reserved);
        if (reserved != RESERVED && reserved != NO_SHARE)
            return false;
        batches->given_ring = live->ring_next;
        if (reserved == NO_SHARE)
            continue;
        note_dispatched(live, (uint32_t)rollout, 0);
        flight_take_given(live, (uint32_t)rollout);
        return true;
    }
    return false;
}

void dispatch(struct batches *batches)
{
    batches->awake = false;
    for (size_t refused = 0; refused <= batches->queue_count;) { /* until each queue has refused */
        size_t turn = batches->turn;
        bool sent = turn == 0 ? take_next_given(batches) : sample_next(batches, batches->queues[turn - 1]);
        batches->turn = turn < batches->queue_count ? turn + 1 : 0;
        refused = sent ? 0 : refused + 1;
    }
    if (pool_wants_probe(batches->uses.pool))
        engines_probe(batches->uses.engines);
}
