/* Streams: a part is made on a worker when the one before it has been taken; in between the connection is suspended. */
#include "server/base/clock.h"
#include "server/http_request.h"
#include "server/server.h"

#define PART_LIMIT_BYTES ((size_t)1 << 30)
#define STREAM_BLOCK_BYTES 65536
#define BUSY_RETRY_US (10 * US_PER_MS)

static void produce(struct job *job, struct store_reader *reader)
{
    struct request *request = (struct request *)job;
    struct stream *stream = request->call.reply.stream;
    request->produced = stream->produce(stream, reader, &request->part);
    if (request->part.failed)
        request->produced = STREAM_CUT;
}

static void ask_for_part(void *arg);

static void produced(struct job *job)
{
    struct request *request = (struct request *)job;
    request->on_worker = false;
    if (request->produced != STREAM_WAIT || request->gone)
        request_resume(request);
    else if (request->stream_woken)
        ask_for_part(request);
    else
        request->stream_waits = true;
}

static void ask_for_part(void *arg)
{
    struct request *request = arg;
    buffer_clear(&request->part);
    request->part_sent_bytes = 0;
    request->stream_waits = false;
    request->stream_woken = false;
    request->job.run = produce;
    request->job.done = produced;
    request->on_worker = workers_submit(request->server->workers, &request->job);
    if (!request->on_worker)
        loop_timer_set(request->server->loop, &request->stream_timer,
                       loop_now_us(request->server->loop) + BUSY_RETRY_US, ask_for_part, request);
}

void request_stream_wake(struct request *request)
{
    request->stream_woken = true;
    if (request->stream_waits)
        ask_for_part(request);
}

static ssize_t read_stream(void *arg, uint64_t position, char *out, size_t room_bytes)
{
    (void)position;
    struct request *request = arg;
    size_t left_bytes = request->part.length_bytes - request->part_sent_bytes;

    if (left_bytes > 0) {
        size_t taken_bytes = left_bytes < room_bytes ? left_bytes : room_bytes;
        memcpy(out, request->part.data + request->part_sent_bytes, taken_bytes);
        request->part_sent_bytes += taken_bytes;
        return (ssize_t)taken_bytes;
    }
    if (request->produced == STREAM_CUT || request->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (request->produced == STREAM_LAST)
        return MHD_CONTENT_READER_END_OF_STREAM;
    request_suspend(request);
    ask_for_part(request);
    return 0;
}

struct MHD_Response *stream_response(struct request *request)
{
    buffer_init(&request->part, PART_LIMIT_BYTES);
    request->produced = STREAM_MORE;
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, request, NULL);
}

void stream_finish(struct request *request)
{
    loop_timer_clear(request->server->loop, &request->stream_timer);
    buffer_finish(&request->part);
}
