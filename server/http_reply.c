/* Replies: from a call to the library, and the canned ones that go to the socket directly. */
#include "server/base/blocks.h"
#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/http_request.h"

#include <stdio.h>
#include <sys/socket.h>

static void add_headers(struct MHD_Response *response, const struct request *request)
{
    const struct reply *reply = &request->call.reply;
    char number[24];

    MHD_add_response_header(response, "X-Request-Id", request->request_id);
    if (reply->location[0])
        MHD_add_response_header(response, "Location", reply->location);
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

/* What the library sends from where it is, until it has. */
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

enum MHD_Result reply_queue(struct request *request)
{
    struct reply *reply = &request->call.reply;
    struct MHD_Response *response = reply->stream ? stream_response(request) : body_response(reply);
    if (!response)
        return MHD_NO;
    if (reply->content_type)
        MHD_add_response_header(response, "Content-Type", reply->content_type);
    add_headers(response, request);
    enum MHD_Result queued = MHD_queue_response(request->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    request->state = REQUEST_ANSWERED;
    return queued;
}

static void send_canned(int fd, struct call *call, enum error_code code, const char *message)
{
    call_refuse(call, code, NULL, "%s", message);
    const struct buffer *body = &call->reply.body;
    const char *retry_after = call->reply.status == 429 ? "Retry-After: 1\r\n" : "";
    _cleanup_buffer_ struct buffer wire;
    buffer_init(&wire, 16384);
    buffer_append_format(&wire,
                         "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                         "X-Request-Id: %s\r\n%sConnection: close\r\n\r\n",
                         error_rows[code].status, MHD_get_reason_phrase_for((unsigned)error_rows[code].status),
                         body->length_bytes, call->request_id, retry_after);
    buffer_append(&wire, body->data, body->length_bytes);
    (void)!send(fd, wire.data, wire.length_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_RDWR);
}

void reply_canned(struct request *request, enum error_code code, const char *message)
{
    if (request->body_refused)
        return;
    request->body_refused = true;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info)
        send_canned(info->connect_fd, &request->call, code, message);
}

void reply_canned_to(int fd, enum error_code code, const char *message)
{
    struct call call;
    char request_id[ID_BYTES];
    call_init(&call);
    id_new_request(request_id);
    call.request_id = request_id;
    send_canned(fd, &call, code, message);
    call_finish(&call);
}
