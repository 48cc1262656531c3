#include "client/transport/transport.h"
#include "client/transport/transport_private.h"
#include "server/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define KEPT_FOR_PROBES 2
#define SHORT_PAUSE_US (100 * US_PER_MS) /* before the system is asked again for a resource that it lacked */

/* --- lists --------------------------------------------------------------------------------------- */

static struct transfer_list *list_of(struct transport *transport, enum transfer_place place)
{
    struct transfer_list *lists[] = {
        [AT_NAME] = &transport->waiting,
        [AT_MEANS] = &transport->held,
        [AT_CURL] = &transport->running,
        [AT_END] = &transport->finished,
    };
    return lists[place];
}

static void leave_list(struct transfer *transfer)
{
    struct transfer_list *list;

    if (transfer->place == AT_NOWHERE)
        return;
    list = list_of(transfer->transport, transfer->place);
    transfer->transport->running_count -= transfer->place == AT_CURL;
    *(transfer->previous ? &transfer->previous->next : &list->first) = transfer->next;
    *(transfer->next ? &transfer->next->previous : &list->last) = transfer->previous;
    transfer->previous = transfer->next = NULL;
    transfer->place = AT_NOWHERE;
}

static void enter_list(struct transfer *transfer, enum transfer_place place)
{
    struct transfer_list *list = list_of(transfer->transport, place);

    leave_list(transfer);
    transfer->transport->running_count += place == AT_CURL;
    transfer->place = place;
    transfer->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = transfer;
    list->last = transfer;
}

/* --- one transfer -------------------------------------------------------------------------------- */

static void transfer_destroy(struct transfer *transfer)
{
    if (transfer->place == AT_CURL)
        curl_multi_remove_handle(transfer->transport->multi, transfer->easy);
    leave_list(transfer);
    transfer->transport->count--;
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    curl_slist_free_all(transfer->resolve);
    buffer_finish(&transfer->reply.body);
    buffer_finish(&transfer->own_body);
    free(transfer->url);
    free(transfer);
}

void transfer_fail(struct transfer *transfer, enum transfer_result result, const char *problem)
{
    transfer->reply.result = result;
    if (problem)
        snprintf(transfer->reply.problem, sizeof(transfer->reply.problem), "%.150s", problem);
    enter_list(transfer, AT_END);
}

/* The transfer waits, and its deadlines move with it. */
static void hold(struct transfer *transfer, int64_t now_us)
{
    if (!transfer->held_us)
        transfer->held_us = now_us;
    if (transfer->place != AT_MEANS)
        enter_list(transfer, AT_MEANS);
}

static void let_go(struct transfer *transfer, int64_t now_us)
{
    int64_t held_us = transfer->held_us ? now_us - transfer->held_us : 0;

    transfer->held_us = 0;
    transfer->wait_until_us += held_us;
    if (transfer->deadline_us < NEVER_US - held_us)
        transfer->deadline_us += held_us;
}

static bool may_begin(const struct transport *transport)
{
    return !transport->short_until_us && transport->running_count < transport->descriptors_max;
}

static void come_back_soon(struct transport *transport, int64_t now_us)
{
    if (!transport->short_until_us)
        transport->short_until_us = now_us + SHORT_PAUSE_US;
}

/* Into curl, or to its end if that does not work. */
static void launch(struct transfer *transfer)
{
    int64_t now_us = clock_monotonic_us();

    if (!may_begin(transfer->transport)) {
        hold(transfer, now_us);
        return;
    }
    if (transfer->deadline_us <= now_us) {
        transfer_fail(transfer, TRANSFER_TIMEOUT, "no time was left");
        return;
    }
    transfer_set_limits(transfer, now_us);
    if (!transfer_set_addresses(transfer) || curl_multi_add_handle(transfer->transport->multi, transfer->easy)) {
        transfer_fail(transfer, TRANSFER_UNREACHABLE, "no memory");
        return;
    }
    enter_list(transfer, AT_CURL);
}

/* As far as the name allows. */
static void proceed(struct transfer *transfer)
{
    enum resolved_state state = transfer->name ? transfer->name->state : RESOLVED_KNOWN;

    if (state == RESOLVED_KNOWN)
        launch(transfer);
    else if (state == RESOLVED_NOT) {
        come_back_soon(transfer->transport, clock_monotonic_us());
        hold(transfer, clock_monotonic_us());
    } else if (state == RESOLVED_FAILED)
        transfer_fail(transfer, TRANSFER_UNREACHABLE, transfer->name->addresses);
    else if (transfer->place != AT_NAME)
        enter_list(transfer, AT_NAME);
}

/* The pool's connection was dead before a byte came: as if it had never been tried. */
static bool may_send_again(const struct transfer *transfer)
{
    return transfer->reply.result == TRANSFER_UNREACHABLE && transfer->reply.reused && !transfer->header_bytes &&
           !transfer->sent_again;
}

static void forget_reply(struct transfer *transfer)
{
    size_t limit_bytes = transfer->reply.body.maximum_bytes;

    buffer_finish(&transfer->reply.body);
    transfer->reply = (struct transfer_reply){.result = TRANSFER_DONE, .sends = transfer->reply.sends};
    buffer_init(&transfer->reply.body, limit_bytes);
    *transfer->curl_problem = '\0';
    transfer->own_error = 0;
}

static void send_again(struct transfer *transfer)
{
    forget_reply(transfer);
    transfer->sent_again = true;
    curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
    launch(transfer);
}

/* The system has no descriptor or buffer for a socket: the engine was not even asked. */
static bool is_own_want(const struct transfer *transfer)
{
    int error = transfer->own_error;

    return transfer->reply.result == TRANSFER_UNREACHABLE && !transfer->reply.connected &&
           (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM);
}

static void take_ended(struct transfer *transfer, CURLcode code)
{
    transfer_conclude(transfer, code);
    curl_multi_remove_handle(transfer->transport->multi, transfer->easy);
    leave_list(transfer);
    if (is_own_want(transfer)) {
        forget_reply(transfer);
        come_back_soon(transfer->transport, clock_monotonic_us());
        hold(transfer, clock_monotonic_us());
        return;
    }
    if (may_send_again(transfer)) {
        send_again(transfer);
        return;
    }
    if (transfer->reply.result == TRANSFER_UNREACHABLE && transfer->name)
        resolver_distrust(transfer->name);
    enter_list(transfer, AT_END);
}

/* --- the transport ------------------------------------------------------------------------------- */

static void call_back(struct transport *transport)
{
    struct transfer *transfer;

    while ((transfer = transport->finished.first)) {
        leave_list(transfer); /* so that its callback may cancel all others */
        transfer->done(transfer->arg, &transfer->reply);
        transfer_destroy(transfer);
    }
}

/* As many as there are means for, the oldest first. */
static void begin_held(struct transport *transport)
{
    struct transfer *transfer;

    if (transport->short_until_us && transport->short_until_us <= clock_monotonic_us())
        transport->short_until_us = 0;
    while (may_begin(transport) && (transfer = transport->held.first)) {
        if (transfer->name && transfer->name->state == RESOLVED_NOT)
            transfer->name = resolver_want(transport->resolver, transfer->name->host, transfer->name->port);
        let_go(transfer, clock_monotonic_us());
        proceed(transfer);
        if (transport->held.first == transfer)
            return;
    }
}

void transport_settle(struct transport *transport)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(transport->multi, &left))) {
        struct transfer *transfer = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        take_ended(transfer, message->data.result);
    }
    call_back(transport);
    begin_held(transport);
    transport_set_timer(transport);
}

static void names_answered(void *arg)
{
    struct transport *transport = arg;
    struct transfer *next;

    for (struct transfer *transfer = transport->waiting.first; transfer; transfer = next) {
        next = transfer->next;
        proceed(transfer);
    }
    transport_settle(transport);
}

struct transfer *transport_start(struct transport *transport, const struct transfer_request *request,
                                 void (*done)(void *arg, struct transfer_reply *reply), void *arg)
{
    struct transfer *transfer = xcalloc(1, sizeof(*transfer));

    *transfer = (struct transfer){.transport = transport, .done = done, .arg = arg};
    transport->count++;
    if (transfer_setup(transfer, request))
        proceed(transfer);
    else
        transfer_fail(transfer, TRANSFER_BAD_REQUEST, NULL);
    transport_set_timer(transport);
    return transfer;
}

void transport_cancel(struct transfer *transfer)
{
    struct transport *transport = transfer->transport;

    transfer_destroy(transfer);
    transport_set_timer(transport); /* one that is held may begin */
}

bool transport_has_room(const struct transport *transport)
{
    size_t kept = transport->descriptors_max > 4 * KEPT_FOR_PROBES ? KEPT_FOR_PROBES : 0;

    return may_begin(transport) && transport->running_count < transport->descriptors_max - kept;
}

static void ignore(void *arg, struct transfer_reply *reply)
{
    (void)arg;
    (void)reply;
}

void transport_send(struct transport *transport, const struct transfer_request *request, struct buffer *body)
{
    struct transfer_request with_body = *request;
    struct transfer *transfer;

    with_body.body = buffer_text(body);
    transfer = transport_start(transport, &with_body, ignore, NULL);
    transfer->own_body = *body;
    buffer_init(body, 0);
}

static void initialise_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct transport *transport_create(const struct transport_host *host, const struct transport_settings *settings)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct transport *transport = xcalloc(1, sizeof(*transport));

    pthread_once(&once, initialise_curl);
    transport->host = *host;
    transport->curl_timer_us = NEVER_US;
    transport->descriptors_max = settings->descriptors_max ? settings->descriptors_max : SIZE_MAX;
    transport->user_agent = xstrdup(settings->user_agent ? settings->user_agent : "rolloutd");
    transport->multi = curl_multi_init();
    transport->resolver = resolver_create(&transport->host, settings->lookup, names_answered, transport);
    if (!transport->multi || !transport->resolver) {
        transport_destroy(transport);
        return NULL;
    }
    curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, transport_socket_wish);
    curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
    curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, transport_timer_wish);
    curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
    if (settings->descriptors_max) /* idle connections are closed for new ones */
        curl_multi_setopt(transport->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)settings->descriptors_max);
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS,
                      (long)(settings->connections_max ? settings->connections_max : 16));
    return transport;
}

void transport_keep_connections(struct transport *transport, size_t count)
{
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)(count ? count : 16));
}

void transport_destroy(struct transport *transport)
{
    if (!transport)
        return;
    while (transport->running.first)
        transfer_destroy(transport->running.first);
    while (transport->waiting.first)
        transfer_destroy(transport->waiting.first);
    while (transport->held.first)
        transfer_destroy(transport->held.first);
    while (transport->finished.first)
        transfer_destroy(transport->finished.first);
    if (transport->multi)
        curl_multi_cleanup(transport->multi); /* closes the connections, for which it unwatches them */
    if (transport->resolver)
        transport->host.set_timer(transport->host.arg, NEVER_US, NULL, NULL);
    resolver_destroy(transport->resolver);
    transport_forget_urls(transport);
    free(transport->user_agent);
    free(transport);
}
