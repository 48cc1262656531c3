/* Bytes of the budget that a reply holds, and the time for which it may: a client that takes nothing for reply_timeout
 * is cut off. */
#include "server/base/clock.h"
#include "server/http/request_private.h"
#include "server/settings/settings.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SMALL_BYTES ((size_t)64 * 1024) /* never refused: probes, errors, single verdicts. The kernel takes them */
#define LOOKS 4                         /* at a socket within reply_timeout */

/* --- bytes --- */

void reply_hold(struct request *request, size_t bytes)
{
    struct reply_budget *budget = &request->http->replies;
    if (bytes > request->reply_bytes)
        reply_budget_add(budget, bytes - request->reply_bytes);
    else
        reply_budget_give(budget, request->reply_bytes - bytes);
    request->reply_bytes = bytes;
}

static bool hold_whole(struct request *request)
{
    struct reply_budget *budget = &request->http->replies;
    const struct reply *reply = &request->call.reply;
    size_t bytes = reply->body.length_bytes + reply->tail_bytes;
    if (bytes <= SMALL_BYTES || request->reply_oversize || bytes <= request->reply_bytes) {
        reply_hold(request, request->reply_oversize ? 0 : bytes);
        return true;
    }
    reply_hold(request, 0);
    if (!reply_budget_take_whole(budget, bytes, &request->reply_oversize))
        return false;
    request->reply_bytes = request->reply_oversize ? 0 : bytes;
    return true;
}

int reply_hold_whole(struct request *request)
{
    struct reply *reply = &request->call.reply;
    if (hold_whole(request))
        return 0;
    reply->status = 0;
    reply_refuse_room(request);
    return -1;
}

void reply_refuse_room(struct request *request)
{
    struct call *call = &request->call;
    const char *at = call->subject_at ? call->subject_at : "/v1/batches/";
    call_refuse(call, ERR_QUEUE_FULL, NULL,
                "replies that other clients have not read use up memory_budget; try again%s%s%s",
                call->subject[0] ? ": GET " : "", call->subject[0] ? at : "", call->subject);
}

/* --- time --- */

/* Whether the kernel has bytes that the client has not acknowledged. */
static bool has_unread(int fd, uint64_t *ret_acknowledged_bytes)
{
    struct tcp_info info = {0};
    socklen_t info_bytes = sizeof(info);
    int queued_bytes = 0;
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes);
    (void)ioctl(fd, SIOCOUTQ, &queued_bytes);
    *ret_acknowledged_bytes = info.tcpi_bytes_acked;
    return queued_bytes > 0;
}

/* Not in peace: what the kernel has not delivered is thrown away as well. */
static void cut_off(struct link *link)
{
    const struct linger at_once = {.l_onoff = 1};
    link->gate.over = true;
    (void)setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)shutdown(link->fd, SHUT_RDWR);
}

static void look(void *arg)
{
    struct request *request = arg;
    struct loop *loop = request->http->options.loop;
    int64_t timeout_us = request->http->options.settings->reply_timeout_us;
    uint64_t acknowledged_bytes;
    bool unread = has_unread(request->link->fd, &acknowledged_bytes) || !request->suspended;

    if (!unread || acknowledged_bytes != request->acknowledged_bytes)
        request->taken_us = loop_now_us(loop);
    request->acknowledged_bytes = acknowledged_bytes;
    if (loop_now_us(loop) - request->taken_us >= timeout_us)
        cut_off(request->link);
    else
        loop_timer_set(loop, &request->reply_timer, loop_now_us(loop) + timeout_us / LOOKS + 1, look, request);
}

/* The library's own limit would end slow readers: it sees no progress while the kernel's buffer is full. */
void reply_watch(struct request *request)
{
    struct loop *loop = request->http->options.loop;
    (void)MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    request->taken_us = loop_now_us(loop);
    loop_timer_set(loop, &request->reply_timer,
                   request->taken_us + request->http->options.settings->reply_timeout_us / LOOKS + 1, look, request);
}

void reply_unwatch(struct request *request, bool completed)
{
    const struct settings *settings = request->http->options.settings;
    loop_timer_clear(request->http->options.loop, &request->reply_timer);
    if (completed)
        (void)MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)(settings->connection_timeout_us / US_PER_S));
}

/* --- the end --- */

void reply_stop_waiting(struct request *request)
{
    loop_timer_clear(request->http->options.loop, &request->reply_timer);
    reply_budget_leave(&request->http->replies, &request->reply_wait);
}

void reply_finish(struct request *request)
{
    struct reply_budget *budget = &request->http->replies;
    reply_stop_waiting(request);
    reply_hold(request, 0);
    if (request->reply_oversize)
        reply_budget_give_oversize(budget);
}
