/* The places for workers: the process in each, its jobs, and what goes through its socket. */
#include "server/verify/pool_private.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"

#define WINDOW_BYTES ((size_t)64 * 1024) /* of the frames that a worker has at once, beyond the first */

static void timed_out(void *arg);

/* --- a place and its process --- */

void verify_worker_ask(struct verify_worker *worker, struct verify_flow *flow)
{
    struct verify_pool *pool = worker->pool;
    const struct sandbox_settings *sandbox = pool->kind == WORKER_CODE ? &pool->sandbox : NULL;

    worker->id = pool->next_id++;
    worker->served = 0;
    if (pool->spawner.fd < 0 || spawner_make_worker(&pool->spawner, worker->id, sandbox) < 0) {
        verify_retry_later(pool);
        return;
    }
    verify_worker_become(worker, WORKER_ASKED);
    if (flow)
        verify_flow_bind(flow, worker);
}

/* Those behind the first wait again, as if they had never been given away. */
static void put_back_followers(struct verify_worker *worker)
{
    while (worker->job_count > 1) {
        struct verify_job *job = worker->jobs[--worker->job_count];
        job->worker = NULL;
        verify_queue_prepend(worker->pool, job);
    }
}

/* Empties the place; the process, if it still lives, is killed. Returns the job that it judged. */
struct verify_job *verify_worker_vacate(struct verify_worker *worker)
{
    struct verify_job *job = worker->job_count ? worker->jobs[0] : NULL;

    put_back_followers(worker);
    loop_timer_clear(worker->pool->loop, &worker->deadline);
    loop_unwatch(worker->source);
    worker_page_unmap(worker->page);
    if (worker->fd >= 0)
        close(worker->fd);
    if (worker->state >= WORKER_IDLE && worker->pool->spawner.fd >= 0)
        spawner_kill_worker(&worker->pool->spawner, worker->id);
    verify_worker_become(worker, WORKER_NONE);
    verify_flow_unbind(worker);
    worker->source = NULL;
    worker->page = NULL;
    worker->fd = -1;
    worker->job_count = worker->sending = worker->sent_bytes = 0;
    worker->waits_for_room = false;
    buffer_finish(&worker->reply);
    if (job)
        job->worker = NULL;
    return job;
}

/* The verifier that grades the worker's first job; -1: none, or the page makes no sense. */
int verify_worker_grading(const struct verify_worker *worker)
{
    uint64_t at = worker->page ? atomic_load_explicit(&worker->page->at, memory_order_relaxed) : WORKER_READS;
    uint64_t first = WORKER_AT(worker->served, 0);

    if (!worker->job_count || at < first || at - first >= worker->jobs[0]->verifier_count)
        return -1;
    return (int)(at - first);
}

bool verify_worker_lost_slot(const struct verify_worker *worker)
{
    return worker->page && atomic_load_explicit(&worker->page->lost_slot, memory_order_acquire);
}

/* Of a code worker: a text worker has little, and a text may make it want more. */
static bool outgrew(const struct verify_worker *worker)
{
    return worker->pool->kind == WORKER_CODE && worker->page &&
           atomic_load_explicit(&worker->page->no_memory, memory_order_acquire);
}

/* The process died, or talks nonsense, or has no slot. */
void verify_worker_crashed(struct verify_worker *worker)
{
    struct verify_pool *pool = worker->pool;
    bool useless = worker->served == 0 && (worker->job_count == 0 || verify_worker_lost_slot(worker));
    bool outgrown = outgrew(worker);
    int index = verify_worker_grading(worker);
    struct verify_job *job = verify_worker_vacate(worker);

    if (useless)
        verify_retry_later(pool);
    else
        verify_make_missing(pool);
    if (job && outgrown)
        verify_outgrow(pool, job, index);
    else if (job)
        verify_give_back(pool, job, index);
    verify_assign_jobs(pool);
}

/* --- frames --- */

static void note_sent(struct verify_worker *worker, size_t bytes)
{
    worker->sent_bytes += bytes;
    while (worker->sending < worker->job_count && worker->sent_bytes >= worker->jobs[worker->sending]->frame_bytes)
        worker->sent_bytes -= worker->jobs[worker->sending++]->frame_bytes;
}

/* Sends the rest of the frames, with one call if the socket has room. A broken socket is not handled here: the loop
 * reports it, and only then a job may end. */
static void send_frames(struct verify_worker *worker)
{
    while (worker->sending < worker->job_count) {
        struct iovec parts[VERIFY_WINDOW];
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
    struct verify_part *part = verify_part_in(worker->pool, worker->jobs[0]);

    part->attempts++;
    loop_timer_set(worker->pool->loop, &worker->deadline, clock_monotonic_us() + part->timeout_us, timed_out, worker);
}

static void take_job(struct verify_worker *worker, struct verify_job *job)
{
    verify_queue_unlink(worker->pool, job);
    job->worker = worker;
    worker->jobs[worker->job_count++] = job;
}

/* Adds jobs that wait behind it, as long as they are small. */
static void take_company(struct verify_worker *worker, const struct verify_flow *flow, size_t share)
{
    size_t bytes = worker->jobs[0]->frame_bytes;

    while (flow->first && worker->job_count < share) {
        bytes += flow->first->frame_bytes;
        if (bytes > WINDOW_BYTES)
            return;
        take_job(worker, flow->first);
    }
}

void verify_worker_start_jobs(struct verify_worker *worker, struct verify_flow *flow)
{
    struct verify_pool *pool = worker->pool;
    size_t share = (pool->queued + pool->at_once - 1) / pool->at_once;
    size_t window = flow->lane == VERIFY_SPARE ? 1 : verify_kinds[pool->kind].window;

    if (!worker->flow)
        verify_flow_bind(flow, worker);
    worker->last_given = ++pool->given;
    take_job(worker, flow->first);
    take_company(worker, flow, share < window ? share : window);
    verify_worker_become(worker, WORKER_BUSY);
    begin_first(worker);
    send_frames(worker);
}

static void rested(void *arg)
{
    verify_worker_retire(arg);
}

/* It has nothing to do. One of a kind that is not kept goes after a while: a slot has a Python in memory. */
void verify_worker_rest(struct verify_worker *worker)
{
    struct verify_pool *pool = worker->pool;

    verify_worker_become(worker, WORKER_IDLE);
    if (!verify_kinds[pool->kind].are_kept)
        loop_timer_set(pool->loop, &worker->deadline, clock_monotonic_us() + VERIFY_REST_US, rested, worker);
}

static void finish_first(struct verify_worker *worker, size_t reply_bytes)
{
    struct verify_pool *pool = worker->pool;
    struct verify_job *job = worker->jobs[0];
    struct verify_part *part = verify_part_in(pool, job);

    loop_timer_clear(pool->loop, &worker->deadline);
    part->reply_bytes = reply_bytes - FRAME_HEADER_BYTES;
    part->reply = xstrndup(worker->reply.data + FRAME_HEADER_BYTES, part->reply_bytes);
    buffer_drop_front(&worker->reply, reply_bytes);
    job->worker = NULL;
    worker->job_count--;
    worker->sending--;
    for (size_t i = 0; i < worker->job_count; i++)
        worker->jobs[i] = worker->jobs[i + 1];
    if (worker->job_count)
        begin_first(worker);
    else
        verify_worker_rest(worker);
    worker->served++;
    if (!verify_worker_lost_slot(worker))
        pool->failures = 0;
    verify_end_job(pool, job);
}

/* 1: there was something, 0: nothing for now, -1: it ended or sends too much. */
int verify_worker_read_some(struct verify_worker *worker)
{
    char *room = buffer_reserve(&worker->reply, VERIFY_READ_BYTES);
    ssize_t count;

    if (!room)
        return -1;
    count = recv(worker->fd, room, VERIFY_READ_BYTES, MSG_DONTWAIT);
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
    if (wanted > verify_kinds[worker->pool->kind].reply_limit_bytes)
        return -1;
    return had < wanted ? 0 : (ssize_t)wanted;
}

/* The slot that it had is to blame: another one is asked. */
static bool is_worth_another_slot(const struct verify_worker *worker)
{
    return verify_worker_lost_slot(worker) &&
           verify_part_in(worker->pool, worker->jobs[0])->attempts < VERIFY_ATTEMPTS_MAX;
}

/* Ends the jobs whose replies are whole. 1: a part of one is left, 0: nothing is left, -1: nonsense, or no slot. A job's
 * end may cancel another one, and with it this process. */
int verify_worker_take_replies(struct verify_worker *worker)
{
    uint32_t id = worker->id;

    while (worker->id == id && worker->reply.length_bytes) {
        ssize_t bytes = whole_reply_bytes(worker);
        if (bytes <= 0)
            return bytes < 0 ? -1 : 1;
        if (is_worth_another_slot(worker))
            return -1;
        finish_first(worker, (size_t)bytes);
    }
    return 0;
}

/* An idle one makes room. */
void verify_worker_retire(struct verify_worker *worker)
{
    worker->pool->counts.workers_retired++;
    verify_worker_vacate(worker);
}

/* Takes the bytes that have arrived: 0, or -1 if the process ended or talks nonsense. */
static int take_what_came(struct verify_worker *worker)
{
    int result;

    do {
        result = verify_worker_read_some(worker);
        if (result > 0)
            result = verify_worker_take_replies(worker);
    } while (result > 0);
    return result;
}

/* Its time is over; unless its reply is there already, and only the loop is late. */
static void timed_out(void *arg)
{
    struct verify_worker *worker = arg;
    struct verify_pool *pool = worker->pool;
    uint64_t served = worker->served;
    uint32_t id = worker->id;

    if (take_what_came(worker) < 0) {
        verify_worker_crashed(worker);
        return;
    }
    if (worker->id == id && worker->served == served) {
        int index = verify_worker_grading(worker);
        struct verify_job *job = verify_worker_vacate(worker);
        pool->counts.timeouts++;
        verify_make_missing(pool);
        verify_lose_verdict(pool, job, index, true);
    }
    verify_assign_jobs(pool);
}

void verify_worker_ready(void *arg, uint32_t events)
{
    struct verify_worker *worker = arg;
    struct verify_pool *pool = worker->pool;

    if (events & EPOLLOUT)
        send_frames(worker);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (take_what_came(worker) < 0) {
        verify_worker_crashed(worker);
        return;
    }
    if (worker->state == WORKER_IDLE && worker->served >= VERIFY_SERVED_MAX) {
        verify_worker_retire(worker);
        verify_make_missing(pool);
    }
    verify_assign_jobs(pool);
}
