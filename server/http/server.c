/* libmicrohttpd: start and stop, and the states of a request. First-call checks are in http/checks.c. */
#include "server/http/server_private.h"

#include "server/base/clock.h"
#include "server/base/ids.h"
#include "server/base/log.h"
#include "server/runtime/memory.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CONNECTION_MEMORY_BYTES ((size_t)128 * 1024)
#define QUEUE_RETRY_AFTER_S 1
#define LISTEN_BACKLOG 4096
#define LIGHT_BODY_BYTES ((size_t)256 * 1024) /* a larger one keeps a worker for milliseconds */

/* --- a request's life ----------------------------------------------------------------------------- */

static void *begin_request(void *arg, const char *uri, struct MHD_Connection *connection)
{
    struct http *http = arg;
    struct link *link = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct request *request = xcalloc(1, sizeof(*request));
    if (!link_begin(link, request)) {
        log_event(LOG_LEVEL_ERROR, "a request came past the gate and is not handled", NULL);
        free(request);
        return NULL; /* handle() closes the connection */
    }
    request->http = http;
    request->connection = connection;
    request->link = link;
    request->began_us = clock_monotonic_us();
    call_init(&request->call);
    request->call.settings = http->options.settings;
    buffer_init(&request->raw_uri, CONNECTION_MEMORY_BYTES);
    buffer_append_string(&request->raw_uri, uri);
    buffer_init(&request->decoded, CONNECTION_MEMORY_BYTES);
    id_new_request(request->request_id);
    request->call.request_id = request->request_id;
    stream_init(request);

    request->next = http->requests;
    if (http->requests)
        http->requests->previous = request;
    http->requests = request;
    return request;
}

/* Tells the waiter of the request that its client is gone. True: the request may end now. */
static bool let_go(struct request *request)
{
    bool (*hung_up)(struct request *, void *) = TAKE_PTR(request->hung_up);
    if (!hung_up || hung_up(request, request->hung_up_arg))
        return true;
    request->hung_up = hung_up; /* it still works with the call, and will be asked again */
    return false;
}

static void request_destroy(struct http *http, struct request *request)
{
    (void)let_go(request); /* a stream that ended before what it waits for */
    const struct route_table *routes = &http->options.routes;
    metric_http(request->route ? (size_t)(request->route - routes->rows) : routes->count, request->call.reply.status,
                clock_monotonic_us() - request->began_us);
    body_finish(request);
    stream_finish(request);
    reply_finish(request);
    struct link *link = request->link;
    call_finish(&request->call);
    buffer_finish(&request->raw_uri);
    buffer_finish(&request->decoded);
    free(request->idempotency_key);
    if (request->previous)
        request->previous->next = request->next;
    else
        http->requests = request->next;
    if (request->next)
        request->next->previous = request->previous;
    free(request);
    link_end(link);
}

static void end_request(void *arg, struct MHD_Connection *connection, void **con_cls,
                        enum MHD_RequestTerminationCode how)
{
    (void)connection;
    struct request *request = TAKE_PTR(*con_cls);
    if (!request)
        return;
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        gate_end(&request->link->gate); /* in the middle of a reply no other may follow */
    reply_unwatch(request, how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    request_destroy(arg, request);
}

void request_suspend(struct request *request)
{
    MHD_suspend_connection(request->connection);
    request->suspended = true;
}

void request_resume(struct request *request)
{
    if (!request->suspended)
        return;
    request->suspended = false;
    MHD_resume_connection(request->connection);
}

void request_hung_up(struct request *request)
{
    request->gone = true;
    request->call.abandoned = true;
    request->link->watched = false;
    loop_timer_clear(request->http->options.loop, &request->stream_timer); /* no worker may begin what ends now */
    reply_budget_leave(&request->http->replies, &request->reply_wait);
    if (request->on_worker)
        return; /* the worker's return ends it */
    if (!let_go(request))
        return; /* the worker that has the call will answer it */
    request->state = REQUEST_READY;
    request_resume(request);
}

bool request_reads_body(const struct request *request)
{
    return request->first_call_done && request->state == REQUEST_READING && !request->body_refused;
}

/* Without the patience that other refusals have: the next one waits for this one's place. */
static void refuse_client(struct link *link)
{
    reply_canned_to(link, &(struct gate_refusal){.code = ERR_QUEUE_FULL,
                                                 .message = "as many clients as connection_limit allows; try again"});
    link_cut(link);
}

static void connection_changed(void *arg, struct MHD_Connection *connection, void **socket_context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct http *http = arg;
    struct link *link = *socket_context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = link_create(http, connection);
        if (http_connections(http) > http->options.shares.clients)
            refuse_client(*socket_context);
        return;
    }
    http->made_room = true;
    gate_end(&link->gate); /* the library has taken the connection out of its lists */
    if (link->request)     /* the library forgets those whose headers it could not take */
        request_destroy(http, link->request);
    link_destroy(link);
}

/* --- work ------------------------------------------------------------------------------------------- */

static void run_on_worker(struct job *job, struct store_reader *reader)
{
    struct request *request = (struct request *)job;
    if (!request->body_completed)
        body_complete(request);
    request->body_completed = true;
    request->call.reader = reader;
    request->work(&request->call);
    request->call.reader = NULL;
    if (request->call.reply.stream)
        stream_produce(request, reader);
}

static void returned_from_worker(struct job *job)
{
    struct request *request = (struct request *)job;
    request->on_worker = false;
    if (!request->call.body)
        body_release(request);
    if (request->gone) {
        request->state = REQUEST_READY;
        request_resume(request);
    } else if (request->call.reply.stream) {
        stream_first_made(request);
    } else if (request->call.reply.status != 0 || reply_hold_whole(request) < 0) {
        request_answer(request);
    } else if (request->route->on_loop && request->work == request->route->on_worker) {
        request->route->on_loop(request->http->options.owner, request);
    } else {
        request_refuse(request, ERR_INTERNAL, NULL, "the handler gave no answer");
    }
}

/* A second part shows a batch from the record. */
static enum workers_lane lane_of(const struct request *request)
{
    if (request->work != request->route->on_worker || request->route->flags & ROUTE_RECORD)
        return LANE_RECORD;
    if (request->route->flags & ROUTE_REPORT)
        return LANE_REPORT;
    return request->body_bytes > LIGHT_BODY_BYTES ? LANE_HEAVY : LANE_REQUEST;
}

void request_continue_on_worker(struct request *request, void (*work)(struct call *call))
{
    request->work = work;
    request->hung_up = NULL; /* who waited for something on its behalf has let it go */
    request->job.lane = lane_of(request);
    request->job.run = run_on_worker;
    request->job.done = returned_from_worker;
    if (request->job.lane == LANE_RECORD)
        stream_submit(request);
    else
        request_submit(request);
}

void request_submit(struct request *request)
{
    request->on_worker = true;
    /* A request that waited for its answer is not refused now, nor in the middle of its body. */
    if (request->work != request->route->on_worker || request->piece_taken) {
        workers_submit_reserved(request->http->options.workers, &request->job);
        return;
    }
    request->on_worker = workers_submit(request->http->options.workers, &request->job);
    if (!request->on_worker) {
        metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_PARSE, 1);
        request->call.reply.retry_after_s = QUEUE_RETRY_AFTER_S;
        request_refuse(request, ERR_QUEUE_FULL, NULL, "all workers are busy and their queue is full; try again");
    }
}

/* The library takes no reply before the end of a body. */
static void answer_early(struct request *request)
{
    reply_stop_waiting(request);
    reply_early(request);
    request->hung_up = NULL;
    request->link->watched = false;
    request->state = REQUEST_READING;
    request_resume(request);
}

void request_answer(struct request *request)
{
    if (request->call.body_more) {
        answer_early(request);
        return;
    }
    reply_stop_waiting(request);
    if (!request->call.reply.stream)
        (void)reply_hold_whole(request);
    else if (!stream_may_answer(request))
        return;
    if (request->call.reply.stream && request->hung_up) {
        request->state = REQUEST_READY; /* it keeps waiting for its parts, and its client may hang up */
        request_resume(request);
        return;
    }
    request->hung_up = NULL;
    request->link->watched = false;
    request->state = REQUEST_READY;
    request_resume(request);
}

void request_refuse(struct request *request, enum error_code code, const char *path, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    call_refuse(&request->call, code, path, "%s", message);
    request_answer(request);
}

void request_on_hangup(struct request *request, bool (*hung_up)(struct request *request, void *arg), void *arg)
{
    request->hung_up = hung_up;
    request->hung_up_arg = arg;
}

struct call *request_call(struct request *request)
{
    return &request->call;
}

void http_write_refusals(const struct http *http, struct text request_id, int64_t limit, struct json_write *json)
{
    refusals_write(&http->refusals, request_id, limit, json);
}

void request_client(const struct request *request, char ret_client[CLIENT_BYTES])
{
    link_write_client(request->link, CLIENT_BYTES, ret_client);
}

void request_take_more(struct request *request)
{
    request->hung_up = NULL;
    request->link->watched = false;
    request->body_completed = false;
    request->piece_taken = true;
    request->state = REQUEST_READING;
    body_go_on(request);
    request_resume(request);
}

/* The body, or a piece of it, is there: hand the call to the route's first part. */
static enum MHD_Result begin_work(struct request *request, bool more)
{
    request->call.body_more = more;
    loop_timer_clear(request->http->options.loop, &request->body_timer);
    request->state = REQUEST_WAITING;
    if (request->route->on_worker)
        request_continue_on_worker(request, request->route->on_worker);
    else
        request->route->on_loop(request->http->options.owner, request);
    if (request->state == REQUEST_READY)
        return reply_queue(request);
    if (request->state == REQUEST_READING) /* refused in the middle of its body */
        return MHD_YES;
    request_suspend(request);
    link_watch_hangup(request->link);
    return MHD_YES;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **con_cls)
{
    (void)arg;
    (void)connection;
    (void)url;
    struct request *request = *con_cls;

    if (!request)
        return MHD_NO;
    if (!request->first_call_done) {
        request->first_call_done = true;
        snprintf(request->method, sizeof(request->method), "%s", method);
        if (check_first_call(request, method, version) < 0) {
            /* Answered now, the library closes the connection: only if a body would come. */
            if (request->call.reply.close)
                return reply_queue(request);
            request->state = REQUEST_READY;
            return MHD_YES;
        }
        body_begin(request);
        link_reads_body(request->link);
        return MHD_YES;
    }
    if (request->gone)
        return MHD_NO;
    if (request->body_refused) { /* its client has a second to read the refusal */
        enum MHD_Result goes_on = *upload_bytes > 0 && request->call.body_more ? MHD_YES : MHD_NO;
        *upload_bytes = 0;
        return goes_on;
    }
    if (*upload_bytes > 0) {
        bool taken = body_take(request, upload, *upload_bytes);
        *upload_bytes = 0;
        if (taken && body_has_piece(request))
            return begin_work(request, true);
        return taken ? MHD_YES : MHD_NO;
    }
    if (request->state == REQUEST_READING)
        return begin_work(request, false);
    return request->state == REQUEST_READY ? reply_queue(request) : MHD_YES;
}

/* --- the daemon ----------------------------------------------------------------------------------------- */

static void log_library(void *arg, const char *format, va_list args) _printf_(2, 0);

static void log_library(void *arg, const char *format, va_list args)
{
    (void)arg;
    char line[512];
    vsnprintf(line, sizeof(line), format, args);
    log_event(LOG_LEVEL_DEBUG, "http library", "says", line, NULL);
}

static size_t keep_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static void ready(void *arg, uint32_t events)
{
    (void)arg;
    (void)events; /* http_run() follows every batch of events */
}

static int bind_address(const struct settings *settings)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
    int one = 1;

    int fd = socket(settings->listen_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (settings->listen_ipv6) {
        *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(settings->listen_port)};
        inet_pton(AF_INET6, settings->listen_host, &six->sin6_addr);
    } else {
        *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(settings->listen_port)};
        inet_pton(AF_INET, settings->listen_host, &four->sin_addr);
    }
    socklen_t address_bytes = settings->listen_ipv6 ? sizeof(*six) : sizeof(*four);
    if (bind(fd, (struct sockaddr *)&address, address_bytes) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t bound_bytes = sizeof(bound);
    if (getsockname(fd, &bound.any, &bound_bytes) < 0)
        return 0;
    return ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
}

/* A few connections more than there may be: they are told so, where the library would let them wait. */
static bool start_daemon(struct http *http, const struct settings *settings)
{
    const struct descriptor_shares *shares = &http->options.shares;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, http,
        MHD_OPTION_EXTERNAL_LOGGER, log_library, http, MHD_OPTION_LISTEN_SOCKET, http->listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(shares->clients + shares->refusals), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(settings->connection_timeout_us / US_PER_S), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED, end_request, http, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changed, http, MHD_OPTION_URI_LOG_CALLBACK, begin_request, http, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, http, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    return http->daemon != NULL;
}

struct http *http_create(const struct http_options *options, char ret_url[128], char message[256])
{
    const struct settings *settings = options->settings;
    struct http *http = xcalloc(1, sizeof(*http));
    http->options = *options;
    http->log = (struct http_log){.refusals = &http->refusals, .loop = options->loop};
    reply_budget_init(&http->replies, memory_for_replies_bytes(settings));
    http->listen_fd = bind_address(settings);
    if (http->listen_fd < 0) {
        snprintf(message, 256, "listen: %s cannot be bound: %s", settings->listen, strerror(errno));
        free(http);
        return NULL;
    }
    if (!start_daemon(http, settings)) {
        snprintf(message, 256, "the HTTP library did not start: %s", strerror(errno));
        close(http->listen_fd);
        free(http);
        return NULL;
    }
    http->port = bound_port(http->listen_fd);
    snprintf(ret_url, 128, settings->listen_ipv6 ? "http://[%s]:%d" : "http://%s:%d", settings->listen_host,
             http->port);
    http->source = loop_watch(options->loop, MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                              EPOLLIN, ready, http);
    return http;
}

void http_quiesce(struct http *http)
{
    if (!http->quiesced)
        (void)MHD_quiesce_daemon(http->daemon);
    http->quiesced = true;
}

void http_destroy(struct http *http)
{
    if (!http)
        return;
    http_quiesce(http);
    loop_unwatch(http->source);
    MHD_stop_daemon(http->daemon);
    close(http->listen_fd);
    http_log_finish(&http->log);
    refusals_finish(&http->refusals);
    free(http);
}

/* At its limit the library stops listening, and looks whether it may again before it sees that connections have ended,
 * not behind: without another turn those that wait would do so until something else happens. */
static bool begins_again(struct http *http)
{
    const struct descriptor_shares *shares = &http->options.shares;
    bool made_room = http->made_room;
    http->made_room = false;
    return made_room && http_connections(http) + shares->refusals >= shares->clients;
}

int64_t http_run(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    reply_budget_serve(&http->replies);
    MHD_run(http->daemon);
    if (begins_again(http))
        return 0;
    if (MHD_get_timeout(http->daemon, &timeout_ms) != MHD_YES)
        return NEVER_US;
    return timeout_ms > 3600000 ? 3600 * US_PER_S : (int64_t)timeout_ms * US_PER_MS;
}

void http_set_migrating(struct http *http, bool migrating)
{
    http->migrating = migrating;
}

void http_drain(struct http *http)
{
    http->draining = true;
}

bool http_is_draining(const struct http *http)
{
    return http->draining;
}

void http_leave(struct http *http)
{
    http->leaving = true;
}

bool http_is_leaving(const struct http *http)
{
    return http->leaving;
}

int64_t http_body_bytes(const struct http *http)
{
    return http->body_bytes;
}

int64_t http_reply_bytes(const struct http *http)
{
    return http->replies.held_bytes;
}

int http_port(const struct http *http)
{
    return http->port;
}

size_t http_connections(const struct http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

size_t http_suspended(const struct http *http)
{
    size_t count = 0;
    for (const struct request *request = http->requests; request; request = request->next)
        count += request->suspended;
    return count;
}

size_t http_active(const struct http *http)
{
    size_t count = 0;
    for (const struct request *request = http->requests; request; request = request->next)
        count += request->state != REQUEST_READING;
    return count;
}

void http_release_waiting(struct http *http)
{
    for (struct request *request = http->requests, *next; request; request = next) {
        next = request->next;
        if (request->state != REQUEST_WAITING || request->on_worker || !request->suspended)
            continue;
        if (let_go(request))
            request_refuse(request, ERR_DRAINING, NULL, "the service is shutting down");
    }
}
