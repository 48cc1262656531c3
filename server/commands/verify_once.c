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
#include "server/verify/sandbox.h"
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

int verify_once_init(struct verify_once *once, const struct sandbox_settings *sandbox)
{
    *once = (struct verify_once){.spawner = {0, -1}};
    if (sandbox)
        once->sandbox = *sandbox;
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
        if (event.kind == SPAWNER_SLOT_ENDED) /* its worker says so */
            event.kind = SPAWNER_NOTHING;
    }
    return event;
}

/* The trial of what the machine offers, once. False: no program is run. */
static bool find_level(struct verify_once *once)
{
    struct spawner_event event = {.kind = SPAWNER_NOTHING};

    if (once->is_probed)
        return !once->refusal[0];
    once->is_probed = true;
    if (spawner_probe(&once->spawner, &once->sandbox) == 0)
        event = wait_event(once);
    once->sandbox.level = event.probed.level;
    if (event.kind != SPAWNER_PROBED)
        snprintf(once->refusal, sizeof once->refusal, "the trial of the sandbox did not end");
    else if (!sandbox_is_enough(&once->sandbox, event.probed.level))
        sandbox_say_refusal(&once->sandbox, &event.probed, once->refusal);
    return !once->refusal[0];
}

static bool begin_talk(struct verify_once *once, const struct sandbox_settings *sandbox, struct talk *ret_talk)
{
    struct spawner_event event;

    if (spawner_make_worker(&once->spawner, ++once->last_id, sandbox) < 0)
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

static void note_loss(const struct talk *talk, enum talk_end end, uint64_t share, struct verify_part *part)
{
    uint64_t at = talk->page ? atomic_load_explicit(&talk->page->at, memory_order_relaxed) : WORKER_READS;

    if (at < 64 && share >> at & 1)
        *(end == TALK_TIMEOUT ? &part->timed_out : &part->crashed) |= UINT64_C(1) << at;
    part->failure_code = end == TALK_TIMEOUT ? VERIFIER_TIMEOUT : VERIFIER_CRASHED;
    part->failure_message = end == TALK_TIMEOUT ? VERIFIER_TIMEOUT_MESSAGE : "the worker ended while this was judged";
}

static void take_reply(const struct talk *talk, struct verify_part *part)
{
    part->reply_bytes = frame_get_length(talk->reply.data);
    part->reply = xstrndup(talk->reply.data + FRAME_HEADER_BYTES, part->reply_bytes);
}

static void ask_part(struct verify_once *once, const struct buffer *frame, enum worker_kind kind,
                     struct verify_job *job, char ret_how[VERIFY_HOW_BYTES])
{
    struct verify_part *part = &job->parts[kind];
    uint64_t share = verify_job_share(job, kind);
    struct talk talk = {.fd = -1, .frame = frame};
    enum talk_end end;

    if (kind == WORKER_CODE && !find_level(once)) {
        part->failure_code = SANDBOX_UNAVAILABLE;
        part->failure_message = once->refusal;
        return;
    }
    request_put_left_out(frame->data, ~share);
    if (!begin_talk(once, kind == WORKER_CODE ? &once->sandbox : NULL, &talk)) {
        part->failure_code = "verifier_unavailable";
        part->failure_message = "no worker can be started";
        return;
    }
    buffer_init(&talk.reply,
                (kind == WORKER_CODE ? WORKER_PROGRAM_REPLY_LIMIT_BYTES : WORKER_REPLY_LIMIT_BYTES) + 65536);
    talk.until_us = clock_monotonic_us() + part->timeout_us;
    end = hold_talk(&talk);
    if (end == TALK_REPLY)
        take_reply(&talk, part);
    else
        note_loss(&talk, end, share, part);
    end_worker(once, end, part->timeout_us, ret_how);
    buffer_finish(&talk.reply);
    worker_page_unmap(talk.page);
    close(talk.fd);
}

void verify_once(struct verify_once *once, const struct verifier_list *list, const struct buffer *frame,
                 int64_t timeout_us, struct verify_job *ret_job, char ret_how[VERIFY_HOW_BYTES])
{
    *ret_job = (struct verify_job){.list = NULL};
    verify_job_ask(ret_job, list, timeout_us);
    ret_how[0] = 0;
    for (int kind = 0; kind < WORKER_KINDS; kind++) {
        if (verify_job_share(ret_job, (enum worker_kind)kind))
            ask_part(once, frame, (enum worker_kind)kind, ret_job, ret_how);
    }
}
