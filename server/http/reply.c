/* Replies: from a call to the library, and the canned ones that go to the socket directly. */
#include "server/base/blocks.h"
#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/http/request_private.h"
#include "server/runtime/metrics.h"

#include <stdio.h>
#include <sys/socket.h>

/* No browser may take a reply for anything else than it is, or run what it quotes. */
static const struct {
    const char *name;
    const char *value;
} guards[] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Content-Security-Policy", "default-src 'none'"},
};
enum { GUARD_POLICY = 1 };

static void add_headers(struct MHD_Response *response, const struct request *request)
{
    const struct reply *reply = &request->call.reply;
    char number[24];

    MHD_add_response_header(response, "X-Request-Id", request->request_id);
    for (size_t i = 0; i < ARRAY_LENGTH(guards); i++)
        MHD_add_response_header(response, guards[i].name,
                                i == GUARD_POLICY && reply->policy[0] ? reply->policy : guards[i].value);
    if (reply->location[0])
        MHD_add_response_header(response, "Location", reply->location);
    if (reply->failed[0])
        MHD_add_response_header(response, "X-Rolloutd-Failed", reply->failed);
    if (reply->retry_after_s > 0) {
        snprintf(number, sizeof(number), "%d", reply->retry_after_s);
        MHD_add_response_header(response, "Retry-After", number);
    }
    if (request->allow[0])
        MHD_add_response_header(response, "Allow", request->allow);
    if (reply->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (reply->close)
        MHD_add_response_header(response, "Connection", "close");
}

/* Memory that the library sends without a copy, until it has. */
struct sending {
    char *body;
    char *tail; /* NULL: nothing */
};

static void sent(void *arg)
{
    struct sending *sending = arg;
    block_give(sending->body);
    block_give(sending->tail);
    free(sending);
}

static struct MHD_Response *body_response(struct reply *reply)
{
    size_t body_bytes = 0;
    char *body = buffer_steal(&reply->body, &body_bytes);
    if (!body)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    struct sending *sending = xcalloc(1, sizeof(*sending));
    *sending = (struct sending){body, TAKE_PTR(reply->tail)};
    const struct MHD_IoVec pieces[] = {{body, body_bytes}, {sending->tail, reply->tail_bytes}};
    struct MHD_Response *response =
        sending->tail ? MHD_create_response_from_iovec(pieces, ARRAY_LENGTH(pieces), sent, sending)
                      : MHD_create_response_from_buffer_with_free_callback_cls(body_bytes, body, sent, sending);
    if (!response)
        sent(sending);
    return response;
}

/* Without its query. */
static struct text path_of(const struct request *request)
{
    struct text raw = buffer_text(&request->raw_uri);
    const char *query = memchr(raw.data, '?', raw.length_bytes);
    return (struct text){raw.data, query ? (size_t)(query - raw.data) : raw.length_bytes};
}

static void log_reply(const struct request *request)
{
    const struct reply *reply = &request->call.reply;
    if (reply->status < 400)
        return;
    http_log_write(&request->http->log, &(struct http_log_line){.request_id = request->request_id,
                                                                .method = request->method,
                                                                .path = path_of(request),
                                                                .status = reply->status,
                                                                .code = reply->code,
                                                                .field = reply->path,
                                                                .message = reply->message});
}

void reply_log_cut(const struct request *request)
{
    struct text path = path_of(request);
    _cleanup_free_ char *copy = xstrndup(path.data, path.length_bytes);
    log_event(LOG_LEVEL_WARNING, "reply cut off", "request_id", request->request_id, "method", request->method, "path",
              copy, NULL);
}

static void settle_status(struct request *request)
{
    struct reply *reply = &request->call.reply;
    if (request->route && request->route->flags & ROUTE_GATEWAY && (reply->status == 429 || reply->status == 503))
        reply->status = 504;
}

enum MHD_Result reply_queue(struct request *request)
{
    struct reply *reply = &request->call.reply;
    settle_status(request);
    log_reply(request);
    if (reply->close)
        gate_end(&request->link->gate);
    struct MHD_Response *response = reply->stream ? stream_response(request) : body_response(reply);
    if (!response)
        return MHD_NO;
    if (reply->content_type)
        MHD_add_response_header(response, "Content-Type", reply->content_type);
    add_headers(response, request);
    enum MHD_Result queued = MHD_queue_response(request->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    request->state = REQUEST_ANSWERED;
    call_drop_input(&request->call);
    body_release(request);
    reply_watch(request);
    return queued;
}

static void send_canned(struct link *link, const struct call *call)
{
    const struct buffer *body = &call->reply.body;
    _cleanup_buffer_ struct buffer wire;
    buffer_init(&wire, 16384);
    buffer_append_format(&wire,
                         "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                         "X-Request-Id: %s\r\nConnection: close\r\n",
                         call->reply.status, MHD_get_reason_phrase_for((unsigned)call->reply.status),
                         body->length_bytes, call->request_id);
    for (size_t i = 0; i < ARRAY_LENGTH(guards); i++)
        buffer_append_format(&wire, "%s: %s\r\n", guards[i].name, guards[i].value);
    buffer_append_string(&wire, call->reply.status == 429 ? "Retry-After: 1\r\n\r\n" : "\r\n");
    buffer_append(&wire, body->data, body->length_bytes);
    (void)!send(link->fd, wire.data, wire.length_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    link_linger(link);
}

void reply_canned(struct request *request, enum error_code code, const char *message)
{
    if (request->body_refused)
        return;
    request->body_refused = true;
    call_refuse(&request->call, code, NULL, "%s", message);
    settle_status(request);
    log_reply(request);
    send_canned(request->link, &request->call);
}

void reply_early(struct request *request)
{
    if (request->body_refused)
        return;
    request->body_refused = true;
    settle_status(request);
    log_reply(request);
    send_canned(request->link, &request->call);
}

void reply_canned_to(struct link *link, const struct gate_refusal *refusal)
{
    struct call call;
    char request_id[ID_BYTES];
    call_init(&call);
    id_new_request(request_id);
    call.request_id = refusal->identity[0] ? refusal->identity : request_id;
    call_refuse(&call, refusal->code, NULL, "%s", refusal->message);
    metric_http(link->http->options.routes.count, call.reply.status, 0);
    http_log_write(&link->http->log, &(struct http_log_line){.request_id = call.request_id,
                                                             .method = refusal->method,
                                                             .path = text_of(refusal->path),
                                                             .status = call.reply.status,
                                                             .code = call.reply.code,
                                                             .message = call.reply.message});
    send_canned(link, &call);
    call_finish(&call);
}
