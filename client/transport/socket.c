/* The glue between curl's multi_socket interface and the host's loop. curl is never called from inside its own
 * callbacks. */
#include "client/transport/transport_private.h"
#include "server/base/clock.h"

#include <stdlib.h>
#include <sys/epoll.h>

/* One per descriptor, kept by curl_multi_assign(). */
struct watched {
    struct transport *transport;
    int fd;
    void *source;
};

static void socket_ready(void *arg, uint32_t events)
{
    struct watched *watched = arg;
    struct transport *transport = watched->transport;
    int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    int running;

    curl_multi_socket_action(transport->multi, watched->fd, what, &running); /* may free `watched` */
    transport_settle(transport);
}

static uint32_t events_of(int what)
{
    return (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
}

int transport_socket_wish(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct transport *transport = arg;
    struct watched *watched = known;
    struct transport_host *host = &transport->host;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (!watched)
            return 0;
        host->unwatch(host->arg, watched->source);
        curl_multi_assign(transport->multi, fd, NULL);
        free(watched);
        return 0;
    }
    if (watched) {
        host->modify(host->arg, watched->source, events_of(what));
        return 0;
    }
    watched = xcalloc(1, sizeof(*watched));
    *watched = (struct watched){.transport = transport, .fd = fd};
    watched->source = host->watch(host->arg, fd, events_of(what), socket_ready, watched);
    if (watched->source)
        curl_multi_assign(transport->multi, fd, watched);
    else
        free(watched); /* the transfer ends by its timeout; an error from here would end all of them */
    return 0;
}

int transport_timer_wish(CURLM *multi, long timeout_ms, void *arg)
{
    struct transport *transport = arg;

    (void)multi;
    transport->curl_timer_us = timeout_ms < 0 ? NEVER_US : clock_monotonic_us() + timeout_ms * US_PER_MS;
    transport_set_timer(transport);
    return 0;
}

static void end_late_waiters(struct transport *transport, int64_t now_us);

static void timer_expired(void *arg)
{
    struct transport *transport = arg;
    int64_t now_us = clock_monotonic_us();
    int running;

    if (transport->curl_timer_us <= now_us) {
        transport->curl_timer_us = NEVER_US;
        curl_multi_socket_action(transport->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    end_late_waiters(transport, now_us);
    transport_settle(transport);
}

/* When a transfer that waits for its name gives up. */
static int64_t patience_us(const struct transfer *transfer)
{
    return transfer->wait_until_us < transfer->deadline_us ? transfer->wait_until_us : transfer->deadline_us;
}

void transport_set_timer(struct transport *transport)
{
    int64_t at_us = transport->curl_timer_us;

    if (transport->finished.first)
        at_us = 0;
    if (transport->held.first && transport->running_count < transport->descriptors_max &&
        transport->short_until_us < at_us)
        at_us = transport->short_until_us; /* 0: at once */
    for (const struct transfer *transfer = transport->waiting.first; transfer; transfer = transfer->next)
        if (patience_us(transfer) < at_us)
            at_us = patience_us(transfer);
    transport->host.set_timer(transport->host.arg, at_us, timer_expired, transport);
}

static void end_late_waiters(struct transport *transport, int64_t now_us)
{
    struct transfer *next;

    for (struct transfer *transfer = transport->waiting.first; transfer; transfer = next) {
        next = transfer->next;
        if (patience_us(transfer) <= now_us)
            transfer_fail(transfer, TRANSFER_UNREACHABLE, "the name's address did not come in time");
    }
}
