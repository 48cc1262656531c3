/* Assignment of jobs to workers: one of the job's own run, or one that has judged for no run yet. */
#include "server/verify/pool_private.h"

#include <string.h>

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

bool verify_same_run(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

void verify_make_missing(struct verify_pool *pool)
{
    size_t there = pool->worker_count - count_of(pool, WORKER_NONE);

    for (size_t i = 0; i < pool->worker_count && there < pool->at_once; i++)
        if (pool->workers[i].state == WORKER_NONE) {
            verify_worker_ask(&pool->workers[i]);
            there++;
        }
}

/* An idle one for this run: its own before a fresh one. NULL: none. */
static struct verify_worker *idle_for(struct verify_pool *pool, const char *run)
{
    struct verify_worker *fresh = NULL;

    for (size_t i = 0; i < pool->worker_count; i++) {
        struct verify_worker *worker = &pool->workers[i];
        if (worker->state != WORKER_IDLE)
            continue;
        if (worker->bound && verify_same_run(worker->run, run))
            return worker;
        if (!worker->bound)
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
        if (worker->state == WORKER_IDLE && worker->bound && (!oldest || worker->last_given < oldest->last_given))
            oldest = worker;
    }
    return oldest;
}

/* Makes fresh workers for the jobs that wait, as many as may be busy beside those that are. */
static void make_fresh(struct verify_pool *pool)
{
    struct verify_worker *worker;

    if (pool->retry.place || count_of(pool, WORKER_ASKED) + verify_busy(pool) >= pool->at_once)
        return;
    worker = place_for_another(pool);
    if (worker && worker->state == WORKER_IDLE)
        verify_worker_retire(worker);
    else if (worker)
        verify_worker_ask(worker);
}

/* Of one lane, in its order: the first job that a worker is there for, and that worker. */
static struct verify_worker *next_of_lane(struct verify_pool *pool, struct verify_job *job, struct verify_job **ret_job)
{
    for (size_t looked = 0; job && looked < VERIFY_LOOK_AHEAD; looked++, job = job->next) {
        struct verify_worker *worker = idle_for(pool, job->run);
        *ret_job = job;
        if (worker)
            return worker;
        make_fresh(pool);
    }
    return NULL;
}

/* The lanes in turn. A job whose run has no worker yet is passed over until one is made. */
void verify_assign_jobs(struct verify_pool *pool)
{
    for (size_t lane = 0; lane < VERIFY_LANES && verify_busy(pool) < pool->at_once;) {
        struct verify_job *job = pool->queues[(pool->turn + lane) % VERIFY_LANES].first;
        struct verify_worker *worker = next_of_lane(pool, job, &job);
        if (worker) {
            verify_worker_start_jobs(worker, job);
            lane = 0;
        } else
            lane++;
    }
}
