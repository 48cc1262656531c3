#include "server/commands/verify_once_private.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "verifiers/worker/worker.h"

#define START_US (10 * US_PER_S) /* for making or ending a worker */

struct talk {
    int fd;
    const struct worker_page *page;
    int64_t until_us;
    const struct buffer *frame;
    size_t sent_bytes;
    struct buffer reply;
};

int verify_once_init(struct verify_once *once)
{
    *once = (struct verify_once){.spawner = {0, -1}};
    return spawner_start(&once->spawner);
}

void verify_once_finish(struct verify_once *once)
{
    spawner_stop(&once->spawner);
}

/* The next report of the spawner; SPAWNER_NOTHING: there is none in time. */
static struct spawner_event wait_event(struct verify_once *once)
{
    int64_t until_us = clock_monotonic_us() + START_US;
    struct spawner_event event = {.kind = SPAWNER_NOTHING, .fd = -1};

    while (event.kind == SPAWNER_NOTHING) {
        struct pollfd polled = {once->spawner.fd, POLLIN, 0};
        int64_t left_us = until_us - clock_monotonic_us();
        if (left_us <= 0)
            break;
        if (poll(&polled, 1, (int)(left_us / US_PER_MS) + 1) > 0)
            spawner_receive(&once->spawner, &event);
    }
    return event;
}

static bool begin_talk(struct verify_once *once, struct talk *ret_talk)
{
    struct spawner_event event;

    if (spawner_make_worker(&once->spawner, ++once->last_id) < 0)
        return false;
    event = wait_event(once);
    ret_talk->fd = event.fd;
    ret_talk->page = event.page;
    return event.kind == SPAWNER_MADE && event.fd >= 0;
}

static bool send_some(struct talk *talk)
{
    ssize_t count = send(talk->fd, talk->frame->data + talk->sent_bytes, talk->frame->length_bytes - talk->sent_bytes,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0)
        talk->sent_bytes += (size_t)count;
    return count >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool receive_some(struct talk *talk)
{
    char bytes[65536];
    ssize_t count = recv(talk->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (count > 0)
        buffer_append(&talk->reply, bytes, (size_t)count);
    return (count > 0 && !talk->reply.failed) || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool has_reply(const struct talk *talk)
{
    return talk->reply.length_bytes >= FRAME_HEADER_BYTES &&
           talk->reply.length_bytes - FRAME_HEADER_BYTES >= frame_get_length(talk->reply.data);
}

enum talk_end { TALK_REPLY, TALK_TIMEOUT, TALK_DEATH };

static enum talk_end hold_talk(struct talk *talk)
{
    while (!has_reply(talk)) {
        bool sends = talk->sent_bytes < talk->frame->length_bytes;
        struct pollfd polled = {talk->fd, (short)(POLLIN | (sends ? POLLOUT : 0)), 0};
        int64_t left_us = talk->until_us - clock_monotonic_us();
        if (left_us <= 0)
            return TALK_TIMEOUT;
        if (poll(&polled, 1, (int)(left_us / US_PER_MS) + 1) < 0 && errno != EINTR)
            return TALK_DEATH;
        if ((polled.revents & POLLOUT && !send_some(talk)) ||
            (polled.revents & (POLLIN | POLLHUP | POLLERR) && !receive_some(talk)))
            return TALK_DEATH;
    }
    return TALK_REPLY;
}

/* Takes the worker away and says how it went. */
static void end_worker(struct verify_once *once, enum talk_end end, int64_t timeout_us, char ret_how[VERIFY_HOW_BYTES])
{
    struct spawner_event event;
    char limit[32];

    ret_how[0] = 0;
    if (end != TALK_DEATH)
        spawner_kill_worker(&once->spawner, once->last_id);
    event = wait_event(once);
    duration_format(timeout_us, limit);
    if (end == TALK_TIMEOUT)
        snprintf(ret_how, VERIFY_HOW_BYTES, "the worker was killed after %s", limit);
    else if (end == TALK_DEATH && event.kind == SPAWNER_ENDED && WIFSIGNALED(event.status))
        snprintf(ret_how, VERIFY_HOW_BYTES, "the worker ended by signal %d (%s%s)", WTERMSIG(event.status),
                 strsignal(WTERMSIG(event.status)),
                 WTERMSIG(event.status) == SIGSYS ? ": it may not make that system call; abort() is one" : "");
    else if (end == TALK_DEATH)
        snprintf(ret_how, VERIFY_HOW_BYTES, "the worker ended by itself");
}

static void note_loss(const struct talk *talk, enum talk_end end, struct verify_job *job)
{
    uint64_t at = talk->page ? atomic_load_explicit(&talk->page->at, memory_order_relaxed) : WORKER_READS;

    if (at < job->verifier_count)
        *(end == TALK_TIMEOUT ? &job->timed_out : &job->crashed) |= UINT64_C(1) << at;
    job->failure_code = end == TALK_TIMEOUT ? VERIFIER_TIMEOUT : VERIFIER_CRASHED;
    job->failure_message =
        end == TALK_TIMEOUT ? VERIFIER_TIMEOUT_MESSAGE : "the text worker ended while this was judged";
}

void verify_once(struct verify_once *once, const struct verifier_list *list, struct buffer *frame, int64_t timeout_us,
                 struct verify_job *ret_job, char ret_how[VERIFY_HOW_BYTES])
{
    struct talk talk = {.fd = -1, .frame = frame};
    enum talk_end end;

    *ret_job = (struct verify_job){.list = list, .verifier_count = list->count};
    ret_how[0] = 0;
    if (!begin_talk(once, &talk)) {
        ret_job->failure_code = "verifier_unavailable";
        ret_job->failure_message = "no text worker can be started";
        return;
    }
    buffer_init(&talk.reply, WORKER_REPLY_LIMIT_BYTES + 65536);
    talk.until_us = clock_monotonic_us() + timeout_us;
    end = hold_talk(&talk);
    if (end == TALK_REPLY) {
        ret_job->reply_bytes = frame_get_length(talk.reply.data);
        ret_job->reply = xstrndup(talk.reply.data + FRAME_HEADER_BYTES, ret_job->reply_bytes);
    } else {
        note_loss(&talk, end, ret_job);
    }
    end_worker(once, end, timeout_us, ret_how);
    buffer_finish(&talk.reply);
    worker_page_unmap(talk.page);
    close(talk.fd);
}
