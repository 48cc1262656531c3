#include "server/verify_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "verifiers/worker.h"

#define ATTEMPTS_MAX 2
#define FIRST_DELAY_US (100 * US_PER_MS)
#define LAST_DELAY_US (5 * US_PER_S)
#define HOPELESS_FAILURES 4 /* this many starts failed in a row: queued jobs are not kept waiting */
#define READ_BYTES 65536
#define WINDOW 8 /* jobs that a worker has at once: each wait for the next one costs more than judging it */
#define WINDOW_BYTES ((size_t)64 * 1024) /* of their frames, beyond the first */

enum worker_state { WORKER_NONE, WORKER_ASKED, WORKER_IDLE, WORKER_BUSY };

/* A place for a worker; the process in it changes. */
struct verify_worker {
    struct verify_pool *pool;
    enum worker_state state;
    uint32_t id;
    int fd;
    struct loop_source *source;
    struct verify_job *jobs[WINDOW]; /* in the order of their frames; the first is being judged */
    size_t job_count;
    size_t sending;      /* the first of them whose frame is not sent, */
    size_t sent_bytes;   /* and how much of that is */
    bool waits_for_room; /* in the socket */
    struct buffer reply; /* header included */
    uint64_t served;
    struct loop_timer deadline;
};

struct verify_pool {
    struct loop *loop;
    struct spawner spawner;
    struct loop_source *spawner_source;
    struct loop_timer retry;
    unsigned failures; /* starts that failed since one worker served a job */
    uint32_t next_id;
    size_t queue_limit;
    size_t queued;
    struct verify_job *first;
    struct verify_job **last;
    struct verify_pool_counts counts;
    size_t worker_count;
    struct verify_worker workers[];
};

static void assign_jobs(struct verify_pool *pool);
static void retry_later(struct verify_pool *pool);

/* --- the queue --- */

static void queue_unlink(struct verify_pool *pool, struct verify_job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
    else
        pool->last = job->link;
    job->next = NULL;
    job->link = NULL;
    pool->queued--;
}

/* The first; there must be one. */
static struct verify_job *queue_take(struct verify_pool *pool)
{
    struct verify_job *job = pool->first;

    pool->first = job->next;
    if (job->next)
        job->next->link = &pool->first;
    else
        pool->last = &pool->first;
    job->next = NULL;
    job->link = NULL;
    pool->queued--;
    return job;
}

static void queue_append(struct verify_pool *pool, struct verify_job *job)
{
    job->next = NULL;
    job->link = pool->last;
    *pool->last = job;
    pool->last = &job->next;
    pool->queued++;
}

static void queue_prepend(struct verify_pool *pool, struct verify_job *job)
{
    job->next = pool->first;
    job->link = &pool->first;
    if (pool->first)
        pool->first->link = &job->next;
    else
        pool->last = &job->next;
    pool->first = job;
    pool->queued++;
}

static void fail_job(struct verify_pool *pool, struct verify_job *job, const char *code, const char *message)
{
    job->failure_code = code;
    job->failure_message = message;
    pool->counts.jobs_done++;
    job->done(job);
}

static void fail_queued(struct verify_pool *pool)
{
    /* Only those that are here now: done() may submit the next one. */
    for (size_t count = pool->queued; count && pool->first; count--) {
        struct verify_job *job = queue_take(pool);
        fail_job(pool, job, "verifier_unavailable", "no text worker can be started");
    }
}

/* --- a place and its process --- */

static void ask_for_worker(struct verify_worker *worker)
{
    struct verify_pool *pool = worker->pool;

    worker->id = pool->next_id++;
    worker->served = 0;
    if (pool->spawner.fd >= 0 && spawner_make_worker(&pool->spawner, worker->id) == 0)
        worker->state = WORKER_ASKED;
    else
        retry_later(pool);
}

/* Those behind the first wait again, as if they had never been given away. */
static void put_back_followers(struct verify_worker *worker)
{
    while (worker->job_count > 1) {
        struct verify_job *job = worker->jobs[--worker->job_count];
        job->worker = NULL;
        queue_prepend(worker->pool, job);
    }
}

/* Empties the place; the process, if it still lives, is killed. Returns the job that it judged. */
static struct verify_job *vacate(struct verify_worker *worker)
{
    struct verify_job *job = worker->job_count ? worker->jobs[0] : NULL;

    put_back_followers(worker);
    loop_timer_clear(worker->pool->loop, &worker->deadline);
    loop_unwatch(worker->source);
    if (worker->fd >= 0)
        close(worker->fd);
    if (worker->state >= WORKER_IDLE && worker->pool->spawner.fd >= 0)
        spawner_kill_worker(&worker->pool->spawner, worker->id);
    worker->source = NULL;
    worker->fd = -1;
    worker->job_count = worker->sending = worker->sent_bytes = 0;
    worker->waits_for_room = false;
    worker->state = WORKER_NONE;
    buffer_finish(&worker->reply);
    if (job)
        job->worker = NULL;
    return job;
}

static void give_back(struct verify_pool *pool, struct verify_job *job)
{
    pool->counts.crashes++;
    if (job->attempts < ATTEMPTS_MAX)
        queue_prepend(pool, job);
    else
        fail_job(pool, job, "verifier_crashed", "the text worker ended twice while it judged this completion");
}

/* The process died, or talks nonsense. */
static void crashed(struct verify_worker *worker)
{
    struct verify_pool *pool = worker->pool;
    bool useless = worker->served == 0 && worker->job_count == 0;
    struct verify_job *job = vacate(worker);

    if (useless)
        retry_later(pool);
    else
        ask_for_worker(worker);
    if (job)
        give_back(pool, job);
    assign_jobs(pool);
}

static void timed_out(void *arg)
{
    struct verify_worker *worker = arg;
    struct verify_pool *pool = worker->pool;
    struct verify_job *job = vacate(worker);

    pool->counts.timeouts++;
    ask_for_worker(worker);
    fail_job(pool, job, "verifier_timeout", "the verifiers took longer than their time limit; the worker was killed");
    assign_jobs(pool);
}

/* --- frames --- */

static void note_sent(struct verify_worker *worker, size_t bytes)
{
    worker->sent_bytes += bytes;
    while (worker->sending < worker->job_count && worker->sent_bytes >= worker->jobs[worker->sending]->frame_bytes)
        worker->sent_bytes -= worker->jobs[worker->sending++]->frame_bytes;
}

/* What is left of the frames, with one call if the socket has room. A broken socket is not handled here: the loop
 * reports it, and only then a job may end. */
static void send_frames(struct verify_worker *worker)
{
    while (worker->sending < worker->job_count) {
        struct iovec parts[WINDOW];
        size_t count = 0;
        size_t skip_bytes = worker->sent_bytes;
        for (size_t i = worker->sending; i < worker->job_count; i++, skip_bytes = 0) {
            const struct verify_job *job = worker->jobs[i];
            parts[count++] =
                (struct iovec){(void *)(uintptr_t)(job->frame + skip_bytes), job->frame_bytes - skip_bytes};
        }
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
        ssize_t sent = sendmsg(worker->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            break;
        note_sent(worker, (size_t)sent);
    }
    bool waits = worker->sending < worker->job_count;
    if (waits != worker->waits_for_room)
        loop_modify(worker->source, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    worker->waits_for_room = waits;
}

/* Its time begins when the worker has nothing else before it. */
static void begin_first(struct verify_worker *worker)
{
    struct verify_job *job = worker->jobs[0];

    job->attempts++;
    loop_timer_set(worker->pool->loop, &worker->deadline, clock_monotonic_us() + job->timeout_us, timed_out, worker);
}

/* Gives an idle worker its share of those that wait, while they are small: a large one is nobody's company. */
static void start_jobs(struct verify_worker *worker)
{
    struct verify_pool *pool = worker->pool;
    size_t share = (pool->queued + pool->worker_count - 1) / pool->worker_count;
    size_t bytes = 0;

    do {
        struct verify_job *job = queue_take(pool);
        job->worker = worker;
        worker->jobs[worker->job_count++] = job;
        bytes += job->frame_bytes;
    } while (pool->first && worker->job_count < WINDOW && worker->job_count < share &&
             bytes + pool->first->frame_bytes <= WINDOW_BYTES);
    worker->state = WORKER_BUSY;
    begin_first(worker);
    send_frames(worker);
}

static void assign_jobs(struct verify_pool *pool)
{
    for (size_t i = 0; i < pool->worker_count && pool->first; i++)
        if (pool->workers[i].state == WORKER_IDLE)
            start_jobs(&pool->workers[i]);
}

static void finish_first(struct verify_worker *worker, size_t reply_bytes)
{
    struct verify_pool *pool = worker->pool;
    struct verify_job *job = worker->jobs[0];

    loop_timer_clear(pool->loop, &worker->deadline);
    job->reply_bytes = reply_bytes - FRAME_HEADER_BYTES;
    job->reply = xstrndup(worker->reply.data + FRAME_HEADER_BYTES, job->reply_bytes);
    buffer_drop_front(&worker->reply, reply_bytes);
    job->worker = NULL;
    worker->job_count--;
    worker->sending--;
    for (size_t i = 0; i < worker->job_count; i++)
        worker->jobs[i] = worker->jobs[i + 1];
    if (worker->job_count)
        begin_first(worker);
    else
        worker->state = WORKER_IDLE;
    worker->served++;
    pool->failures = 0;
    pool->counts.jobs_done++;
    job->done(job);
}

/* 1: there was something, 0: nothing for now, -1: it ended or sends too much. */
static int read_some(struct verify_worker *worker)
{
    char *room = buffer_reserve(&worker->reply, READ_BYTES);
    ssize_t count;

    if (!room)
        return -1;
    count = recv(worker->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (count <= 0)
        return -1;
    worker->reply.length_bytes += (size_t)count;
    return 1;
}

/* The size of the first reply; 0: it is not whole yet, -1: nothing was asked. */
static ssize_t whole_reply_bytes(const struct verify_worker *worker)
{
    size_t had = worker->reply.length_bytes;
    size_t wanted;

    if (worker->sending == 0)
        return -1;
    if (had < FRAME_HEADER_BYTES)
        return 0;
    wanted = FRAME_HEADER_BYTES + frame_get_length(worker->reply.data);
    if (wanted > WORKER_REPLY_LIMIT_BYTES)
        return -1;
    return had < wanted ? 0 : (ssize_t)wanted;
}

/* Ends the jobs whose replies are whole. 1: a part of one is left, 0: nothing is left, -1: nonsense. A job's end may
 * cancel another one, and with it this process. */
static int take_replies(struct verify_worker *worker)
{
    uint32_t id = worker->id;

    while (worker->id == id && worker->reply.length_bytes) {
        ssize_t bytes = whole_reply_bytes(worker);
        if (bytes <= 0)
            return bytes < 0 ? -1 : 1;
        finish_first(worker, (size_t)bytes);
    }
    return 0;
}

static void worker_ready(void *arg, uint32_t events)
{
    struct verify_worker *worker = arg;
    struct verify_pool *pool = worker->pool;
    int result;

    if (events & EPOLLOUT)
        send_frames(worker);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    do {
        result = read_some(worker);
        if (result > 0)
            result = take_replies(worker);
    } while (result > 0);
    if (result < 0)
        crashed(worker);
    else
        assign_jobs(pool);
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
        return;
    }
    worker->fd = event->fd;
    worker->source = loop_watch(pool->loop, worker->fd, EPOLLIN, worker_ready, worker);
    worker->state = WORKER_IDLE;
    pool->counts.workers_started++;
    /* One byte of room more than a reply may have, so that too much is seen as such. */
    buffer_init(&worker->reply, WORKER_REPLY_LIMIT_BYTES + READ_BYTES + 1);
    if (!worker->source)
        crashed(worker);
}

static void worker_failed(struct verify_pool *pool, const struct spawner_event *event)
{
    struct verify_worker *worker = find_worker(pool, event->id);

    log_event(LOG_LEVEL_ERROR, "a text worker cannot be started", "error", strerror(event->error), NULL);
    if (!worker)
        return;
    worker->state = WORKER_NONE;
    retry_later(pool);
}

/* The socket's end tells the same, but not for a worker that was asked for and never seen. What it answered before is
 * taken, so that only the job at which it ended is charged. */
static void worker_ended(struct verify_pool *pool, uint32_t id)
{
    struct verify_worker *worker = find_worker(pool, id);

    if (!worker)
        return;
    while (worker->id == id && worker->source && read_some(worker) > 0 && take_replies(worker) >= 0)
        continue;
    if (worker->id == id)
        crashed(worker);
}

static void spawner_lost(struct verify_pool *pool)
{
    log_event(LOG_LEVEL_WARNING, "the spawner ended; another one is started", NULL);
    loop_unwatch(pool->spawner_source);
    pool->spawner_source = NULL;
    spawner_stop(&pool->spawner);
    for (size_t i = 0; i < pool->worker_count; i++) {
        struct verify_job *job = vacate(&pool->workers[i]);
        if (job)
            give_back(pool, job);
    }
    retry_later(pool);
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
            assign_jobs(pool);
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

/* After a pause that doubles: a spawner if there is none, and the workers that are missing. */
static void retry(void *arg)
{
    struct verify_pool *pool = arg;

    if (pool->failures >= HOPELESS_FAILURES)
        fail_queued(pool);
    if (!pool->spawner_source) {
        spawner_stop(&pool->spawner);
        if (spawner_start(&pool->spawner) < 0 || !use_spawner(pool)) {
            log_event(LOG_LEVEL_ERROR, "the spawner cannot be started", "error", strerror(errno), NULL);
            retry_later(pool);
            return;
        }
    }
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].state == WORKER_NONE)
            ask_for_worker(&pool->workers[i]);
}

static void retry_later(struct verify_pool *pool)
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
    struct verify_pool *pool = xcalloc(1, sizeof *pool + limits->text_workers * sizeof pool->workers[0]);

    pool->loop = loop;
    pool->spawner = *spawner;
    pool->queue_limit = limits->queue_limit;
    pool->last = &pool->first;
    pool->worker_count = limits->text_workers;
    pool->next_id = 1;
    for (size_t i = 0; i < pool->worker_count; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].fd = -1;
    }
    if (pool->spawner.fd >= 0 && use_spawner(pool))
        for (size_t i = 0; i < pool->worker_count; i++)
            ask_for_worker(&pool->workers[i]);
    else
        retry_later(pool);
    return pool;
}

void verify_pool_destroy(struct verify_pool *pool)
{
    if (!pool)
        return;
    loop_timer_clear(pool->loop, &pool->retry);
    loop_unwatch(pool->spawner_source);
    for (size_t i = 0; i < pool->worker_count; i++)
        vacate(&pool->workers[i]);
    spawner_stop(&pool->spawner);
    free(pool);
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
    job->attempts = 0;
    job->worker = NULL;
    queue_append(pool, job);
    assign_jobs(pool);
    return true;
}

void verify_cancel_job(struct verify_pool *pool, struct verify_job *job)
{
    struct verify_worker *worker = job->worker;

    if (worker) { /* what else it has goes to others */
        struct verify_job *first = vacate(worker);
        if (first != job) {
            first->attempts--;
            queue_prepend(pool, first);
        }
        ask_for_worker(worker);
    }
    if (job->link)
        queue_unlink(pool, job);
    assign_jobs(pool);
}

void verify_pool_count(const struct verify_pool *pool, struct verify_pool_counts *ret_counts)
{
    *ret_counts = pool->counts;
    ret_counts->queued = pool->queued;
    for (size_t i = 0; i < pool->worker_count; i++) {
        ret_counts->workers_alive += pool->workers[i].state >= WORKER_IDLE;
        ret_counts->workers_busy += pool->workers[i].state == WORKER_BUSY;
    }
}
