#include "server/verify/pool_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"

#define ATTEMPTS_MAX 2
#define FIRST_DELAY_US (100 * US_PER_MS)
#define LAST_DELAY_US (5 * US_PER_S)
#define HOPELESS_FAILURES 4 /* this many starts failed in a row: queued jobs are not kept waiting */
#define HOPELESS_WANTS 20   /* the same, where the system has no descriptor, process or memory: it may have soon */

/* --- the end of a job --- */

void verify_end_job(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_flow *flow = TAKE_PTR(job->flow);

    pool->counts.jobs_done++;
    if (pool->observer.judged)
        pool->observer.judged(pool->observer.arg, job);
    job->done(job);
    verify_flow_leave(pool, flow); /* behind it: a run that submits the next job at once has used what it has used */
}

static void fail_job(struct verify_pool *pool, struct verify_job *job, const char *code, const char *message)
{
    job->failure_code = code;
    job->failure_message = message;
    verify_end_job(pool, job);
}

static struct verify_job *first_queued(const struct verify_pool *pool)
{
    const struct verify_flow *flow = pool->flows;

    while (!flow->first)
        flow = flow->next;
    return flow->first;
}

static void fail_queued(struct verify_pool *pool)
{
    if (!pool->queued)
        return;
    log_event(LOG_LEVEL_ERROR, "no text worker stays alive; completions that wait for one fail",
              LOG_INT("waiting", pool->queued), NULL);
    /* Only those that are here now: done() may submit the next one. */
    for (size_t count = pool->queued; count && pool->queued; count--) {
        struct verify_job *job = first_queued(pool);
        verify_queue_unlink(pool, job);
        fail_job(pool, job, "verifier_unavailable", "no text worker can be started");
    }
}

/* --- what is lost --- */

/* The verdict of one verifier, or of all, is lost; what is left is judged again. */
void verify_lose_verdict(struct verify_pool *pool, struct verify_job *job, int index, bool timed_out)
{
    uint64_t all = job->verifier_count < 64 ? (UINT64_C(1) << job->verifier_count) - 1 : UINT64_MAX;
    uint64_t *lost = timed_out ? &job->timed_out : &job->crashed;

    if (pool->observer.lost)
        pool->observer.lost(pool->observer.arg, job, index, timed_out);
    if (index >= 0)
        *lost |= UINT64_C(1) << index;
    if (index < 0 || (job->crashed | job->timed_out) == all) {
        fail_job(pool, job, timed_out ? VERIFIER_TIMEOUT : VERIFIER_CRASHED,
                 timed_out ? VERIFIER_TIMEOUT_MESSAGE : VERIFIER_CRASHED_MESSAGE);
        return;
    }
    job->attempts = 0;
    request_put_left_out(job->frame, job->crashed | job->timed_out);
    verify_queue_prepend(pool, job);
}

void verify_give_back(struct verify_pool *pool, struct verify_job *job, int index)
{
    pool->counts.crashes++;
    if (job->attempts < ATTEMPTS_MAX)
        verify_queue_prepend(pool, job);
    else
        verify_lose_verdict(pool, job, index, false);
}

/* --- the spawner --- */

static struct verify_worker *find_worker(struct verify_pool *pool, uint32_t id)
{
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].state != WORKER_NONE && pool->workers[i].id == id)
            return &pool->workers[i];
    return NULL;
}

static void worker_made(struct verify_pool *pool, const struct spawner_event *event)
{
    struct verify_worker *worker = find_worker(pool, event->id);

    if (!worker || worker->state != WORKER_ASKED || event->fd < 0) {
        if (event->fd >= 0)
            close(event->fd);
        worker_page_unmap(event->page);
        return;
    }
    worker->fd = event->fd;
    worker->page = event->page;
    worker->source = loop_watch(pool->loop, worker->fd, EPOLLIN, verify_worker_ready, worker);
    verify_worker_become(worker, WORKER_IDLE);
    pool->counts.workers_started++;
    /* One byte of room more than a reply may have, so that too much is seen as such. */
    buffer_init(&worker->reply, WORKER_REPLY_LIMIT_BYTES + VERIFY_READ_BYTES + 1);
    if (!worker->source)
        verify_worker_crashed(worker);
}

static bool is_want_of_means(int error)
{
    return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM || error == ENOBUFS;
}

static void worker_failed(struct verify_pool *pool, const struct spawner_event *event)
{
    struct verify_worker *worker = find_worker(pool, event->id);

    log_event(LOG_LEVEL_ERROR, "a text worker cannot be started", "error", strerror(event->error), NULL);
    if (!worker)
        return;
    verify_worker_vacate(worker);
    pool->wants_means = is_want_of_means(event->error);
    verify_retry_later(pool);
}

/* The socket's end tells the same, except of a worker that was asked for and never seen. Its earlier answers are taken,
 * so that only the job at which it ended is charged. */
static void worker_ended(struct verify_pool *pool, uint32_t id)
{
    struct verify_worker *worker = find_worker(pool, id);

    if (!worker)
        return;
    while (worker->id == id && worker->source && verify_worker_read_some(worker) > 0 &&
           verify_worker_take_replies(worker) >= 0)
        continue;
    if (worker->id == id)
        verify_worker_crashed(worker);
}

static void spawner_lost(struct verify_pool *pool)
{
    log_event(LOG_LEVEL_WARNING, "the spawner ended; another one is started", NULL);
    loop_unwatch(pool->spawner_source);
    pool->spawner_source = NULL;
    spawner_stop(&pool->spawner);
    for (size_t i = 0; i < pool->worker_count; i++) {
        int index = verify_worker_judging(&pool->workers[i]);
        struct verify_job *job = verify_worker_vacate(&pool->workers[i]);
        if (job)
            verify_give_back(pool, job, index);
    }
    verify_retry_later(pool);
}

static void spawner_ready(void *arg, uint32_t events)
{
    struct verify_pool *pool = arg;
    struct spawner_event event;

    (void)events;
    for (;;) {
        spawner_receive(&pool->spawner, &event);
        switch (event.kind) {
        case SPAWNER_MADE:
            worker_made(pool, &event);
            break;
        case SPAWNER_FAILED:
            worker_failed(pool, &event);
            break;
        case SPAWNER_ENDED:
            worker_ended(pool, event.id);
            break;
        case SPAWNER_GONE:
            spawner_lost(pool);
            return;
        case SPAWNER_NOTHING:
        default:
            verify_assign_jobs(pool);
            return;
        }
    }
}

static bool use_spawner(struct verify_pool *pool)
{
    pool->spawner_source = loop_watch(pool->loop, pool->spawner.fd, EPOLLIN, spawner_ready, pool);
    if (!pool->spawner_source)
        return false;
    pool->counts.spawners_started++;
    return true;
}

static bool is_hopeless(const struct verify_pool *pool)
{
    return pool->failures >= (pool->wants_means ? HOPELESS_WANTS : HOPELESS_FAILURES);
}

/* After a pause that doubles: a spawner if there is none, and the workers that are missing. */
static void retry(void *arg)
{
    struct verify_pool *pool = arg;

    if (is_hopeless(pool))
        fail_queued(pool);
    if (!pool->spawner_source) {
        spawner_stop(&pool->spawner);
        if (spawner_start(&pool->spawner) < 0 || !use_spawner(pool)) {
            pool->wants_means = is_want_of_means(errno);
            log_event(LOG_LEVEL_ERROR, "the spawner cannot be started", "error", strerror(errno), NULL);
            verify_retry_later(pool);
            return;
        }
    }
    verify_make_missing(pool);
    verify_assign_jobs(pool);
}

void verify_retry_later(struct verify_pool *pool)
{
    int64_t delay_us = FIRST_DELAY_US << (pool->failures < 6 ? pool->failures : 6);

    if (pool->retry.place)
        return;
    pool->failures++;
    loop_timer_set(pool->loop, &pool->retry,
                   clock_monotonic_us() + (delay_us < LAST_DELAY_US ? delay_us : LAST_DELAY_US), retry, pool);
}

/* --- from outside --- */

struct verify_pool *verify_pool_create(struct loop *loop, const struct spawner *spawner,
                                       const struct verify_pool_limits *limits)
{
    size_t places = limits->text_workers + VERIFY_SPARES;
    struct verify_pool *pool = xcalloc(1, sizeof *pool + places * sizeof pool->workers[0]);

    pool->loop = loop;
    pool->spawner = *spawner;
    pool->queue_limit = limits->queue_limit;
    pool->at_once = limits->text_workers;
    pool->worker_count = places;
    pool->next_id = 1;
    for (size_t i = 0; i < pool->worker_count; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].fd = -1;
    }
    if (pool->spawner.fd >= 0 && use_spawner(pool))
        verify_make_missing(pool);
    else
        verify_retry_later(pool);
    return pool;
}

void verify_pool_destroy(struct verify_pool *pool)
{
    if (!pool)
        return;
    loop_timer_clear(pool->loop, &pool->retry);
    loop_unwatch(pool->spawner_source);
    for (size_t i = 0; i < pool->worker_count; i++)
        verify_worker_vacate(&pool->workers[i]);
    verify_flows_destroy(pool);
    spawner_stop(&pool->spawner);
    free(pool);
}

void verify_pool_observe(struct verify_pool *pool, const struct verify_observer *observer)
{
    pool->observer = *observer;
}

bool verify_pool_is_starting(const struct verify_pool *pool)
{
    struct verify_pool_counts counts;

    verify_pool_count(pool, &counts);
    return counts.workers_started == 0 && !is_hopeless(pool);
}

bool verify_pool_has_room(const struct verify_pool *pool)
{
    return pool->queued < pool->queue_limit;
}

bool verify_submit(struct verify_pool *pool, struct verify_job *job)
{
    if (!verify_pool_has_room(pool))
        return false;
    job->reply = NULL;
    job->reply_bytes = 0;
    job->failure_code = job->failure_message = NULL;
    job->crashed = job->timed_out = 0;
    job->attempts = 0;
    job->worker = NULL;
    verify_flow_enter(pool, job);
    verify_queue_append(pool, job);
    verify_assign_jobs(pool);
    return true;
}

void verify_cancel_job(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_worker *worker = job->worker;

    if (worker) { /* what else it has goes to others */
        struct verify_job *first = verify_worker_vacate(worker);
        if (first != job) {
            first->attempts--;
            verify_queue_prepend(pool, first);
        }
        verify_worker_ask(worker, NULL);
    }
    if (job->link)
        verify_queue_unlink(pool, job);
    if (job->flow)
        verify_flow_leave(pool, TAKE_PTR(job->flow));
    verify_assign_jobs(pool);
}

void verify_pool_count(const struct verify_pool *pool, struct verify_pool_counts *ret_counts)
{
    *ret_counts = pool->counts;
    ret_counts->queued = pool->queued;
    for (size_t i = 0; i < pool->worker_count; i++)
        ret_counts->workers_alive += pool->workers[i].state >= WORKER_IDLE;
    ret_counts->workers_at_once = ret_counts->workers_alive < pool->at_once ? ret_counts->workers_alive : pool->at_once;
    ret_counts->workers_busy = verify_busy(pool);
}
