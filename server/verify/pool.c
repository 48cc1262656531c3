#include "server/verify/pool_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"

#define FIRST_DELAY_US (100 * US_PER_MS)
#define LAST_DELAY_US (5 * US_PER_S)
#define HOPELESS_FAILURES 4 /* this many starts failed in a row: queued jobs are not kept waiting */
#define HOPELESS_WANTS 20   /* the same, where the system has no descriptor, process or memory: it may have soon */

const struct verify_kind verify_kinds[WORKER_KINDS] = {
    [WORKER_TEXT] = {.cannot_start = "a text worker cannot be started",
                     .none_lives = "no text worker stays alive; completions that wait for one fail",
                     .window = VERIFY_WINDOW,
                     .spares = 8,
                     .reply_limit_bytes = WORKER_REPLY_LIMIT_BYTES,
                     .are_kept = true,
                     .failure_code = "verifier_unavailable",
                     .failure_message = "no text worker can be started"},
    [WORKER_CODE] = {.cannot_start = "a code worker cannot be started",
                     .none_lives = "no code worker stays alive; completions that wait for one fail",
                     .window = 1,
                     .spares = 2,
                     .reply_limit_bytes = WORKER_PROGRAM_REPLY_LIMIT_BYTES,
                     .failure_code = SANDBOX_UNAVAILABLE,
                     .failure_message = "no slot for programs can be set up; rolloutd sandbox-check says more"},
};

/* --- a job and its parts --- */

static void restart_part(struct verify_part *part)
{
    *part = (struct verify_part){.timeout_us = part->timeout_us};
}

static bool can_grade(const struct verify_pool *pool, const struct verify_job *job)
{
    int part = verify_part_of(pool, job);

    return (!job->answering || part == VERIFY_ANSWERS) && verify_job_share(job, part) && !job->parts[part].failure_code;
}

/* The first from this one on that grades something of it; NULL: none. */
static struct verify_pool *pool_for(struct verify_pool *pool, const struct verify_job *job)
{
    while (pool && !can_grade(pool, job))
        pool = pool->next;
    return pool;
}

/* A frame may be too large for a text worker, although a code worker reads it. */
static void fail_if_too_large(struct verify_job *job)
{
    struct verify_part *part = &job->parts[WORKER_TEXT];

    if (!verify_job_share(job, WORKER_CODE) || job->frame_bytes - REQUEST_HEADER_BYTES <= VERIFIER_FRAME_LIMIT_BYTES)
        return;
    part->failure_code = "verifier_input_too_large";
    part->failure_message = "the completion and its reference are larger than a text worker reads";
}

static void enter(struct verify_pool *pool, struct verify_job *job)
{
    request_put_left_out(job->frame, ~verify_job_share(job, verify_part_of(pool, job)));
    verify_flow_enter(pool, job);
    verify_queue_append(pool, job);
    verify_assign_jobs(pool);
}

static void done(struct verify_pool *pool, struct verify_job *job)
{
    if (pool->observer.graded)
        pool->observer.graded(pool->observer.arg, job);
    job->done(job);
}

/* Its text workers may have named calls, and they can be made. */
static bool has_to_ask(const struct verify_pool *pool, const struct verify_job *job)
{
    return pool->caller.make && !job->answering && job->asks && job->parts[WORKER_TEXT].reply;
}

void verify_end_job(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_flow *flow = TAKE_PTR(job->flow);
    struct verify_pool *next = pool_for(pool->next, job);

    pool->counts.jobs_done++;
    if (next)
        enter(next, job);
    else if (has_to_ask(pool, job))
        pool->caller.make(pool->caller.arg, job);
    else
        done(pool, job);
    verify_flow_leave(flow); /* behind it: a run that submits the next job at once has used what it has used */
}

static void fail_part(struct verify_pool *pool, struct verify_job *job, const char *code, const char *message)
{
    verify_part_in(pool, job)->failure_code = code;
    verify_part_in(pool, job)->failure_message = message;
    verify_end_job(pool, job);
}

static struct verify_job *first_queued(const struct verify_pool *pool)
{
    const struct verify_flow *flow = pool->flows;

    while (!flow->first)
        flow = flow->next;
    return flow->first;
}

void verify_fail_queued(struct verify_pool *pool, const char *code, const char *message)
{
    /* Only those that are here now: done() may submit the next one. */
    for (size_t count = pool->queued; count && pool->queued; count--) {
        struct verify_job *job = first_queued(pool);
        verify_queue_unlink(pool, job);
        fail_part(pool, job, code, message);
    }
}

static void give_up_on_queued(struct verify_pool *pool)
{
    if (!pool->queued)
        return;
    log_event(LOG_LEVEL_ERROR, verify_kinds[pool->kind].none_lives, LOG_INT("waiting", pool->queued), NULL);
    verify_fail_queued(pool, verify_kinds[pool->kind].failure_code, verify_kinds[pool->kind].failure_message);
}

/* --- what is lost --- */

/* The bits of verdicts that no worker will give. */
static uint64_t lost_of(const struct verify_part *part)
{
    return part->crashed | part->timed_out | part->outgrown;
}

/* Without them, if there are others. False: there are none. */
static bool grade_rest(struct verify_pool *pool, struct verify_job *job, int index)
{
    struct verify_part *part = verify_part_in(pool, job);
    uint64_t share = verify_job_share(job, verify_part_of(pool, job));

    if (index < 0 || !(share & ~lost_of(part)))
        return false;
    part->attempts = 0;
    request_put_left_out(job->frame, ~share | lost_of(part));
    verify_queue_prepend(pool, job);
    return true;
}

void verify_outgrow(struct verify_pool *pool, struct verify_job *job, int index)
{
    pool->counts.crashes++;
    if (index >= 0)
        verify_part_in(pool, job)->outgrown |= UINT64_C(1) << index;
    if (!grade_rest(pool, job, index))
        fail_part(pool, job, VERIFIER_OUTGROWN, VERIFIER_OUTGROWN_MESSAGE);
}

/* The verdict of one verifier, or of all, is lost; what is left is graded again. */
void verify_lose_verdict(struct verify_pool *pool, struct verify_job *job, int index, bool timed_out)
{
    struct verify_part *part = verify_part_in(pool, job);

    if (pool->observer.lost)
        pool->observer.lost(pool->observer.arg, job, index, timed_out);
    if (index >= 0)
        *(timed_out ? &part->timed_out : &part->crashed) |= UINT64_C(1) << index;
    if (!grade_rest(pool, job, index))
        fail_part(pool, job, timed_out ? VERIFIER_TIMEOUT : VERIFIER_CRASHED,
                  timed_out ? VERIFIER_TIMEOUT_MESSAGE : VERIFIER_CRASHED_MESSAGE);
}

void verify_give_back(struct verify_pool *pool, struct verify_job *job, int index)
{
    pool->counts.crashes++;
    if (verify_part_in(pool, job)->attempts < VERIFY_ATTEMPTS_MAX)
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
    verify_worker_rest(worker);
    pool->counts.workers_started++;
    /* One byte of room more than a reply may have, so that too much is seen as such. */
    buffer_init(&worker->reply, verify_kinds[pool->kind].reply_limit_bytes + VERIFY_READ_BYTES + 1);
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

    log_event(LOG_LEVEL_ERROR, verify_kinds[pool->kind].cannot_start, "error", strerror(event->error), NULL);
    if (!worker)
        return;
    verify_worker_vacate(worker);
    pool->wants_means = is_want_of_means(event->error);
    verify_retry_later(pool);
}

/* One that grades will notice, and say so in its reply. */
static void slot_ended(struct verify_pool *pool, uint32_t id)
{
    struct verify_worker *worker = find_worker(pool, id);

    if (worker && worker->state == WORKER_IDLE)
        verify_worker_crashed(worker);
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
        int index = verify_worker_grading(&pool->workers[i]);
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
        case SPAWNER_SLOT_ENDED:
            slot_ended(pool, event.id);
            break;
        case SPAWNER_PROBED:
            verify_trial_end(pool, &event.probed);
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
    verify_trial_begin(pool);
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

    if (is_hopeless(pool) && verify_busy(pool) == 0)
        give_up_on_queued(pool);
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
    size_t places = limits->at_once + verify_kinds[limits->kind].spares;
    struct verify_pool *pool = xcalloc(1, sizeof *pool + places * sizeof pool->workers[0]);

    pool->kind = limits->kind;
    pool->sandbox = limits->sandbox;
    pool->loop = loop;
    pool->spawner = *spawner;
    pool->queue_limit = limits->queue_limit;
    pool->at_once = limits->at_once;
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
    loop_timer_clear(pool->loop, &pool->refuse);
    loop_timer_clear(pool->loop, &pool->again);
    loop_unwatch(pool->spawner_source);
    for (size_t i = 0; i < pool->worker_count; i++)
        verify_worker_vacate(&pool->workers[i]);
    verify_flows_destroy(pool);
    spawner_stop(&pool->spawner);
    free(pool);
}

void verify_pool_join(struct verify_pool *text, struct verify_pool *code)
{
    text->next = code;
}

void verify_pool_call_by(struct verify_pool *text, const struct verify_caller *caller)
{
    for (struct verify_pool *pool = text; pool; pool = pool->next)
        pool->caller = *caller;
}

void verify_pool_grade_replies(struct verify_pool *text, struct verify_job *job)
{
    job->answering = true;
    enter(text, job);
}

void verify_pool_end_asking(struct verify_pool *text, struct verify_job *job)
{
    done(text, job);
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
    struct verify_pool *first;

    for (size_t part = 0; part < VERIFY_PARTS; part++)
        restart_part(&job->parts[part]);
    job->asked = 0;
    job->answering = false;
    fail_if_too_large(job);
    first = can_grade(pool, job) ? pool : pool_for(pool->next, job);
    if (!first)
        first = pool;
    for (struct verify_pool *each = first; each; each = pool_for(each->next, job))
        if (!verify_pool_has_room(each))
            return false;
    job->worker = NULL;
    enter(first, job);
    return true;
}

void verify_cancel_job(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_worker *worker = job->worker;

    if (job->asking)
        pool->caller.cancel(job);
    if (!job->flow)
        return;
    pool = job->flow->pool;
    if (worker) { /* what else it has goes to others */
        struct verify_job *first = verify_worker_vacate(worker);
        if (first != job) {
            verify_part_in(pool, first)->attempts--;
            verify_queue_prepend(pool, first);
        }
        verify_make_missing(pool);
    }
    if (job->link)
        verify_queue_unlink(pool, job);
    verify_flow_leave(TAKE_PTR(job->flow));
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
