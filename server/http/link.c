#include "server/http/link_private.h"

#include "server/base/clock.h"
#include "server/http/request_private.h"
#include "server/settings/settings.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LINGER_US US_PER_S

/* --- the end --------------------------------------------------------------------------------------- */

/* Nothing more can come, so nothing is lost; the library gets a new edge, reads, and sees the end. */
static void nudge(void *arg)
{
    const struct link *link = arg;
    (void)shutdown(link->fd, SHUT_RD);
}

void link_cut(struct link *link)
{
    link->gate.over = true;
    (void)shutdown(link->fd, SHUT_RDWR);
}

static void cut_off(void *arg)
{
    link_cut(arg);
}

void link_linger(struct link *link)
{
    struct loop *loop = link->http->options.loop;
    link->gate.state = GATE_DEAF;
    link->gate.pass_bytes = 0;
    loop_timer_clear(loop, &link->head_timer);
    (void)shutdown(link->fd, SHUT_WR);
    loop_timer_set(loop, &link->linger, loop_now_us(loop) + LINGER_US, cut_off, link);
}

static void link_event(void *arg, uint32_t events)
{
    struct link *link = arg;
    struct loop *loop = link->http->options.loop;
    if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) || link->ended)
        return;
    link->ended = link->gate.ended = true;
    if (link->watched)
        request_hung_up(link->request);
    else
        loop_timer_set(loop, &link->nudge, loop_now_us(loop) + 1, nudge, link); /* after the library's turn */
}

void link_watch_hangup(struct link *link)
{
    link->watched = true;
    if (link->ended)
        request_hung_up(link->request);
}

/* --- heads ------------------------------------------------------------------------------------------- */

static void head_too_slow(void *arg)
{
    reply_canned_to(arg, &(struct gate_refusal){.code = ERR_BODY_TIMEOUT,
                                                .message = "the headers did not arrive within body_timeout"});
}

/* The library takes a client that sends a part of a head for an idle one: the part stays in front of the gate. */
static void set_idle_limit(const struct link *link, bool limited)
{
    unsigned seconds = limited ? (unsigned)(link->http->options.settings->connection_timeout_us / US_PER_S) : 0;
    (void)MHD_set_connection_option(link->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

/* From its first byte on a head has body_timeout; one behind a request that is under way has time. */
static void time_head(struct link *link)
{
    struct loop *loop = link->http->options.loop;
    bool comes = gate_holds_part(&link->gate) && link->answered == link->gate.heads;
    if (comes == (link->head_timer.place != 0))
        return;
    set_idle_limit(link, !comes);
    if (comes)
        loop_timer_set(loop, &link->head_timer, loop_now_us(loop) + link->http->options.settings->body_timeout_us,
                       head_too_slow, link);
    else
        loop_timer_clear(loop, &link->head_timer);
}

/* The earlier requests of this connection have their replies first. */
static void answer_refusal(struct link *link)
{
    const struct gate_refusal *refusal = &link->gate.refusal;
    bool all_answered = link->answered == link->gate.heads;
    if (link->gate.state != GATE_REFUSED)
        return;
    if (all_answered)
        reply_canned_to(link, refusal);
    else if (!refusal->head && link->begun == link->gate.heads && link->request && request_reads_body(link->request))
        reply_canned(link->request, refusal->code, refusal->message);
}

static void gate_changed(void *arg)
{
    struct link *link = arg;
    time_head(link);
    answer_refusal(link);
}

/* --- requests -------------------------------------------------------------------------------------------- */

bool link_begin(struct link *link, struct request *request)
{
    if (link->begun == link->gate.heads)
        return false;
    link->begun++;
    link->request = request;
    return true;
}

void link_reads_body(struct link *link)
{
    answer_refusal(link);
}

void link_end(struct link *link)
{
    link->request = NULL;
    link->watched = false;
    link->answered++;
    gate_changed(link);
}

void link_write_client(const struct link *link, size_t client_bytes, char *ret_client)
{
    struct sockaddr_storage address = {0};
    socklen_t address_bytes = sizeof(address);
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    *ret_client = '\0';
    if (getpeername(link->fd, (struct sockaddr *)&address, &address_bytes) == 0 &&
        getnameinfo((struct sockaddr *)&address, address_bytes, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(ret_client, client_bytes, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

struct link *link_create(struct http *http, struct MHD_Connection *connection)
{
    struct link *link = xcalloc(1, sizeof(*link));
    link->http = http;
    link->connection = connection;
    link->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    link->source = loop_watch(http->options.loop, link->fd, EPOLLRDHUP | EPOLLET, link_event, link);
    gate_open(&link->gate, link->fd, gate_changed, link);
    return link;
}

void link_destroy(struct link *link)
{
    struct loop *loop = link->http->options.loop;
    loop_timer_clear(loop, &link->nudge);
    loop_timer_clear(loop, &link->head_timer);
    loop_timer_clear(loop, &link->linger);
    loop_unwatch(link->source);
    gate_close(&link->gate);
    free(link);
}
