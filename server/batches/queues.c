#include "server/batches/queues_private.h"

#include "server/base/cleanup.h"
#include "server/batches/live.h"

struct pool_queue *queues_of_pool(struct batches *batches, struct text pool)
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

void queues_finish(struct batches *batches)
{
    for (size_t i = 0; i < batches->queue_count; i++)
        free(batches->queues[i]);
    free(batches->queues);
}

static struct live_batch **ring_of(const struct live_batch *live)
{
    return live->queue ? &live->queue->ring : &live->batches->given_ring;
}

void queues_add(struct live_batch *live)
{
    struct live_batch **ring = ring_of(live);
    if (live->in_queue)
        return;
    live->in_queue = true;
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

void queues_remove(struct live_batch *live)
{
    struct live_batch **ring = ring_of(live);
    if (!live->in_queue)
        return;
    live->in_queue = false;
    if (*ring == live)
        *ring = live->ring_next == live ? NULL : live->ring_next;
    live->ring_previous->ring_next = live->ring_next;
    live->ring_next->ring_previous = live->ring_previous;
}

void queues_move_behind(struct live_batch *live, struct live_batch *first)
{
    struct live_batch **ring = ring_of(live);
    queues_remove(live);
    *ring = first;
    queues_add(live);
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
bool queues_wait_for_run(const struct live_batch *live)
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
