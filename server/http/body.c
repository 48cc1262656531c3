/* Bodies, as they arrive. */
#include "server/base/blocks.h"
#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/http/request_private.h"
#include "server/runtime/memory.h"
#include "server/settings/settings.h"

#define PIECE_BYTES ((size_t)1024 * 1024) /* and what the library reads at once */

static void body_too_slow(void *arg)
{
    struct request *request = arg;
    reply_canned(request, ERR_BODY_TIMEOUT, "the body did not arrive within body_timeout");
}

void body_go_on(struct request *request)
{
    struct loop *loop = request->http->options.loop;
    int64_t timeout_us = request->http->options.settings->body_timeout_us;
    loop_timer_set(loop, &request->body_timer, loop_now_us(loop) + timeout_us, body_too_slow, request);
}

void body_begin(struct request *request)
{
    buffer_init(&request->body, request->body_limit_bytes);
    body_go_on(request);
}

bool body_has_piece(const struct request *request)
{
    return request->route->flags & ROUTE_PIECES && request->body.length_bytes >= PIECE_BYTES;
}

/* The announced size is allocated at once: of kept memory before the first byte, of the system only after the first
 * block has come. The kernel gives a fresh page when its bytes arrive. */
static bool store_piece(struct request *request, const char *bytes, size_t length_bytes)
{
    struct buffer *body = &request->body;
    size_t rest_bytes =
        request->announced_bytes > body->length_bytes ? request->announced_bytes - body->length_bytes : 0;
    if (!body->length_bytes && rest_bytes >= BLOCK_BYTES)
        buffer_reserve_kept(body, rest_bytes);
    if (body->length_bytes + length_bytes > BLOCK_BYTES && rest_bytes > length_bytes &&
        !buffer_reserve(body, rest_bytes))
        return false;
    buffer_append(body, bytes, length_bytes);
    return !body->failed;
}

/* All bodies, and the replies that wait for their sockets, keep within memory_budget, beside what batches hold; one body
 * alone always may come. */
static bool hold_bytes(struct request *request, size_t length_bytes)
{
    struct http *http = request->http;
    bool alone = http->body_bytes == (int64_t)request->held_bytes;
    int64_t held_bytes = http->body_bytes + http->replies.held_bytes;
    if (!alone && held_bytes + (int64_t)length_bytes > http->options.settings->memory_budget_bytes)
        return false;
    http->body_bytes += (int64_t)length_bytes;
    request->held_bytes += length_bytes;
    return true;
}

bool request_hold_parsed(struct request *request, size_t bytes)
{
    if (hold_bytes(request, bytes))
        return true;
    request_refuse(request, ERR_QUEUE_FULL, NULL, "other requests use up memory_budget; try again");
    return false;
}

void body_release(struct request *request)
{
    request->http->body_bytes -= (int64_t)request->held_bytes;
    request->held_bytes = 0;
}

bool body_take(struct request *request, const char *bytes, size_t length_bytes)
{
    if (request->body_refused)
        return false;
    request->body_bytes += length_bytes;
    if (request->body_bytes > request->body_limit_bytes) {
        reply_canned(request, ERR_BODY_TOO_LARGE,
                     request->route->flags & ROUTE_PIECES ? "the body is larger than taskset_limit"
                                                          : "the body is larger than body_limit");
        return false;
    }
    if (!hold_bytes(request, length_bytes)) {
        reply_canned(request, ERR_QUEUE_FULL, "the bodies of other requests use up memory_budget; try again");
        return false;
    }
    if (!store_piece(request, bytes, length_bytes)) {
        reply_canned(request, ERR_QUEUE_FULL, "there is no memory for this body now");
        return false;
    }
    return true;
}

void body_complete(struct request *request)
{
    struct call *call = &request->call;
    call->body_bytes = 0;
    call->body = request->body.length_bytes ? buffer_steal(&request->body, &call->body_bytes) : xcalloc(1, 1);
    if (request->route->flags & ROUTE_HASHED)
        sha256_of(call->body, call->body_bytes, call->body_sha256);
}

void body_finish(struct request *request)
{
    loop_timer_clear(request->http->options.loop, &request->body_timer);
    body_release(request);
    memory_freed(request->http->options.trim, request->body_bytes);
    buffer_finish(&request->body);
}
