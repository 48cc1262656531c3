/* The queues of a pool, one for each run in each lane, and whose turn it is. */
#include "server/verify/pool_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

static struct verify_flow *find_flow(const struct verify_pool *pool, const struct verify_job *job)
{
    struct verify_flow *flow = pool->flows;

    while (flow && (flow->lane != job->lane || !is_same_run(flow->run, job->run)))
        flow = flow->next;
    return flow;
}

/* One that comes late, or again, has no claim to the time that others used before. */
static void forget_absence(const struct verify_pool *pool, struct verify_flow *late)
{
    int64_t least_us = INT64_MAX;

    for (const struct verify_flow *flow = pool->flows; flow; flow = flow->next)
        if (flow->jobs && flow->used_us < least_us)
            least_us = flow->used_us;
    if (least_us != INT64_MAX && late->used_us < least_us)
        late->used_us = least_us;
}

static struct verify_flow *make_flow(struct verify_pool *pool, const struct verify_job *job)
{
    struct verify_flow *flow = xcalloc(1, sizeof *flow);
    struct verify_flow **end = &pool->flows;

    flow->pool = pool;
    flow->run = job->run ? xstrdup(job->run) : NULL;
    flow->lane = job->lane;
    flow->last = &flow->first;
    while (*end)
        end = &(*end)->next;
    *end = flow;
    return flow;
}

static bool has_worker(const struct verify_flow *flow)
{
    return flow->workers[WORKER_ASKED] || flow->workers[WORKER_IDLE] || flow->workers[WORKER_BUSY];
}

static void drop_if_unused(struct verify_flow *flow)
{
    struct verify_flow **link = &flow->pool->flows;

    if (flow->jobs || has_worker(flow))
        return;
    while (*link != flow)
        link = &(*link)->next;
    *link = flow->next;
    free(flow->run);
    free(flow);
}

void verify_flows_destroy(struct verify_pool *pool)
{
    while (pool->flows) {
        struct verify_flow *flow = pool->flows;
        pool->flows = flow->next;
        free(flow->run);
        free(flow);
    }
}

void verify_flow_enter(struct verify_pool *pool, struct verify_job *job)
{
    job->flow = find_flow(pool, job);
    if (!job->flow)
        job->flow = make_flow(pool, job);
    if (job->flow->jobs == 0)
        forget_absence(pool, job->flow);
    job->flow->jobs++;
}

void verify_flow_leave(struct verify_flow *flow)
{
    flow->jobs--;
    drop_if_unused(flow);
}

/* --- its jobs --- */

static void count_queued(struct verify_pool *pool, struct verify_job *job, int change)
{
    job->flow->queued += (size_t)change;
    pool->queued += (size_t)change;
}

void verify_queue_append(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_flow *flow = job->flow;

    job->next = NULL;
    job->link = flow->last;
    *flow->last = job;
    flow->last = &job->next;
    count_queued(pool, job, 1);
}

void verify_queue_prepend(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_flow *flow = job->flow;

    job->next = flow->first;
    job->link = &flow->first;
    if (flow->first)
        flow->first->link = &job->next;
    else
        flow->last = &job->next;
    flow->first = job;
    count_queued(pool, job, 1);
}

void verify_queue_unlink(struct verify_pool *pool, struct verify_job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    else
        job->flow->last = job->link;
    job->next = NULL;
    job->link = NULL;
    count_queued(pool, job, -1);
}

/* --- its workers --- */

void verify_flow_bind(struct verify_flow *flow, struct verify_worker *worker)
{
    worker->flow = flow;
    flow->workers[worker->state]++;
}

void verify_flow_unbind(struct verify_worker *worker)
{
    struct verify_flow *flow = TAKE_PTR(worker->flow);

    if (!flow)
        return;
    flow->workers[worker->state]--;
    drop_if_unused(flow);
}

void verify_worker_become(struct verify_worker *worker, enum worker_state state)
{
    struct verify_flow *flow = worker->flow;

    if (flow && worker->state == WORKER_BUSY)
        flow->used_us += clock_monotonic_us() - worker->began_us;
    if (flow) {
        flow->workers[worker->state]--;
        flow->workers[state]++;
    }
    worker->state = state;
    if (state == WORKER_BUSY)
        worker->began_us = clock_monotonic_us();
}

bool verify_pool_share(const struct verify_pool *pool, size_t place, struct verify_share *ret_share)
{
    const struct verify_flow *flow = pool->flows;

    while (flow && (!flow->jobs || place-- > 0))
        flow = flow->next;
    if (!flow)
        return false;
    *ret_share = (struct verify_share){flow->run, flow->queued, flow->workers[WORKER_BUSY], flow->used_us};
    return true;
}

/* --- its turn --- */

static size_t occupied(const struct verify_flow *flow)
{
    return flow->workers[WORKER_ASKED] + flow->workers[WORKER_BUSY];
}

/* The lane that nobody waits for last; fewer workers at work, then less of their time, by turns; then one that needs no fresh worker. Of two that are alike
 * the older one, which stands in front. */
static bool comes_before(const struct verify_flow *flow, const struct verify_flow *other)
{
    int64_t turns = flow->used_us / VERIFY_TURN_US;
    int64_t others = other->used_us / VERIFY_TURN_US;

    if ((flow->lane == VERIFY_SPARE) != (other->lane == VERIFY_SPARE))
        return other->lane == VERIFY_SPARE;
    if (occupied(flow) != occupied(other))
        return occupied(flow) < occupied(other);
    if (turns != others)
        return turns < others;
    if (!flow->workers[WORKER_IDLE] != !other->workers[WORKER_IDLE])
        return flow->workers[WORKER_IDLE] > 0;
    return flow->lane < other->lane;
}

/* One worker stays for jobs that somebody waits for, where there is more than one. */
static bool spares_are_served(const struct verify_pool *pool)
{
    size_t spare = 0;

    for (const struct verify_flow *flow = pool->flows; flow; flow = flow->next)
        if (flow->lane == VERIFY_SPARE)
            spare += occupied(flow);
    return spare > 0 && spare + 1 >= pool->at_once;
}

struct verify_flow *verify_flow_next(const struct verify_pool *pool)
{
    struct verify_flow *next = NULL;

    for (struct verify_flow *flow = pool->flows; flow; flow = flow->next)
        if (flow->queued > flow->workers[WORKER_ASKED] && !flow->is_passed_over && (!next || comes_before(flow, next)))
            next = flow;
    return next && next->lane == VERIFY_SPARE && spares_are_served(pool) ? NULL : next;
}
