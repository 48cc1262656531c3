/* Bodies: in memory up to the spool threshold, then in an unlinked file that a worker reads. */
#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/http_request.h"
#include "server/server.h"
#include "server/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static void body_too_slow(void *arg)
{
    struct request *request = arg;
    reply_canned(request, ERR_BODY_TIMEOUT, "the body did not arrive within body_timeout");
}

void body_begin(struct request *request)
{
    const struct settings *settings = request->server->settings;
    buffer_init(&request->body, (size_t)settings->spool_threshold_bytes);
    request->spool_fd = -1;
    loop_timer_set(request->server->loop, &request->body_timer,
                   loop_now_us(request->server->loop) + settings->body_timeout_us, body_too_slow, request);
}

static bool write_all(int fd, const char *bytes, size_t length_bytes)
{
    while (length_bytes > 0) {
        ssize_t written = write(fd, bytes, length_bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length_bytes -= (size_t)written;
    }
    return true;
}

static bool move_to_spool(struct request *request)
{
    request->spool_fd = memfd_create("rolloutd-body", MFD_CLOEXEC);
    if (request->spool_fd < 0)
        return false;
    if (!write_all(request->spool_fd, request->body.data, request->body.length_bytes))
        return false;
    buffer_finish(&request->body);
    return true;
}

static bool store_piece(struct request *request, const char *bytes, size_t length_bytes)
{
    if (request->spool_fd >= 0)
        return write_all(request->spool_fd, bytes, length_bytes);
    if (request->body.length_bytes + length_bytes <= request->body.maximum_bytes) {
        buffer_append(&request->body, bytes, length_bytes);
        return !request->body.failed;
    }
    return move_to_spool(request) && write_all(request->spool_fd, bytes, length_bytes);
}

/* All bodies together keep within memory_budget, beside what batches hold; one alone always may come. */
static bool hold_bytes(struct request *request, size_t length_bytes)
{
    struct server *server = request->server;
    bool alone = server->body_bytes == (int64_t)request->held_bytes;
    if (!alone && server->body_bytes + (int64_t)length_bytes > server->settings->memory_budget_bytes)
        return false;
    server->body_bytes += (int64_t)length_bytes;
    request->held_bytes += length_bytes;
    return true;
}

void body_release(struct request *request)
{
    request->server->body_bytes -= (int64_t)request->held_bytes;
    request->held_bytes = 0;
}

bool body_take(struct request *request, const char *bytes, size_t length_bytes)
{
    if (request->body_refused)
        return false;
    request->body_bytes += length_bytes;
    if (request->body_bytes > request->body_limit_bytes) {
        reply_canned(request, ERR_BODY_TOO_LARGE, "the body is larger than body_limit");
        return false;
    }
    if (!hold_bytes(request, length_bytes)) {
        reply_canned(request, ERR_QUEUE_FULL, "the bodies of other requests use up memory_budget; try again");
        return false;
    }
    if (!store_piece(request, bytes, length_bytes)) {
        reply_canned(request, ERR_INTERNAL, "the body cannot be kept");
        return false;
    }
    return true;
}

static bool read_all(int fd, char *bytes, size_t length_bytes)
{
    for (size_t done = 0; done < length_bytes;) {
        ssize_t got = pread(fd, bytes + done, length_bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool body_complete(struct request *request)
{
    struct call *call = &request->call;
    if (request->body_bytes == 0) {
        call->body = xcalloc(1, 1);
    } else if (request->spool_fd >= 0) {
        call->body = malloc(request->body_bytes + 1);
        if (!call->body || !read_all(request->spool_fd, call->body, request->body_bytes))
            return false;
        call->body[request->body_bytes] = '\0';
        close(request->spool_fd);
        request->spool_fd = -1;
    } else {
        size_t stolen_bytes;
        call->body = buffer_steal(&request->body, &stolen_bytes);
    }
    if (!call->body)
        return false;
    call->body_bytes = request->body_bytes;
    sha256_of(call->body, call->body_bytes, call->body_sha256);
    return true;
}

void body_finish(struct request *request)
{
    loop_timer_clear(request->server->loop, &request->body_timer);
    body_release(request);
    memory_freed(request->server, request->body_bytes);
    buffer_finish(&request->body);
    if (request->spool_fd >= 0)
        close(request->spool_fd);
    request->spool_fd = -1;
}
