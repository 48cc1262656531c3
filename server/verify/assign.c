/* Assignment of workers to the queues of runs: one of the run itself, or one that has graded for no run yet. */
#include "server/verify/pool_private.h"

static size_t count_of(const struct verify_pool *pool, enum worker_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < pool->worker_count; i++)
        count += pool->workers[i].state == state;
    return count;
}

size_t verify_busy(const struct verify_pool *pool)
{
    return count_of(pool, WORKER_BUSY);
}

void verify_make_missing(struct verify_pool *pool)
{
    size_t there = pool->worker_count - count_of(pool, WORKER_NONE);

    for (size_t i = 0; verify_kinds[pool->kind].are_kept && i < pool->worker_count && there < pool->at_once; i++)
        if (pool->workers[i].state == WORKER_NONE) {
            verify_worker_ask(&pool->workers[i], NULL);
            there++;
        }
}

/* An idle one for this flow: its own before a fresh one. NULL: none. */
static struct verify_worker *idle_for(struct verify_pool *pool, const struct verify_flow *flow)
{
    struct verify_worker *fresh = NULL;

    for (size_t i = 0; i < pool->worker_count; i++) {
        struct verify_worker *worker = &pool->workers[i];
        if (worker->state != WORKER_IDLE)
            continue;
        if (worker->flow == flow)
            return worker;
        if (!worker->flow)
            fresh = worker;
    }
    return fresh;
}

/* An empty place, or that of the process that was idle longest. NULL: all are busy. */
static struct verify_worker *place_for_another(struct verify_pool *pool)
{
    struct verify_worker *oldest = NULL;

    for (size_t i = 0; i < pool->worker_count; i++) {
        struct verify_worker *worker = &pool->workers[i];
        if (worker->state == WORKER_NONE)
            return worker;
        if (worker->state == WORKER_IDLE && worker->flow && (!oldest || worker->last_given < oldest->last_given))
            oldest = worker;
    }
    return oldest;
}

/* A fresh worker for the flow. False: not now. */
static bool make_fresh(struct verify_pool *pool, struct verify_flow *flow)
{
    struct verify_worker *worker = pool->retry.place ? NULL : place_for_another(pool);

    if (!worker)
        return false;
    if (worker->state == WORKER_IDLE)
        verify_worker_retire(worker);
    verify_worker_ask(worker, flow);
    return worker->state == WORKER_ASKED;
}

/* A worker that grades, or one that is made. */
static bool serve(struct verify_pool *pool, struct verify_flow *flow)
{
    struct verify_worker *worker = idle_for(pool, flow);

    if (!worker)
        return make_fresh(pool, flow);
    verify_worker_start_jobs(worker, flow);
    return true;
}

/* A worker that is being made counts as busy, so that the one that it is made for finds room. */
void verify_assign_jobs(struct verify_pool *pool)
{
    struct verify_flow *flow;

    if (pool->refusal[0] && pool->queued)
        verify_refuse_soon(pool);
    if (pool->refusal[0] || verify_trial_is_due(pool))
        return;
    for (flow = pool->flows; flow; flow = flow->next)
        flow->is_passed_over = false;
    while (count_of(pool, WORKER_ASKED) + verify_busy(pool) < pool->at_once && (flow = verify_flow_next(pool)))
        flow->is_passed_over = !serve(pool, flow);
}
