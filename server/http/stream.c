/* Streams: a part is made on a worker when the one before it has been taken; in between the connection is suspended.
 * The first part is made before the status line is sent: an error of reading is a refusal, and a reply of one part is an
 * ordinary one. */
#include "server/base/clock.h"
#include "server/http/request_private.h"
#include "server/settings/settings.h"

#define PART_LIMIT_BYTES ((size_t)1 << 30)
#define STREAM_BLOCK_BYTES 1024               /* the library fills its connection's buffer in place of it */
#define CHUNK_BYTES ((size_t)16 * 1024)       /* given to the library at once: it keeps as much for each connection */
#define PART_BYTES ((size_t)32 * 1024)        /* for which a stream has room from before its status line to its end */
#define PART_LARGE_BYTES ((size_t)256 * 1024) /* while replies hold little */
#define SLACK_BYTES ((size_t)16 * 1024)       /* a part is as long as its room and one row */
#define HELD_BYTES (PART_BYTES + SLACK_BYTES + CHUNK_BYTES) /* by a stream at least */
#define LARGE_SHARE 4
#define BUSY_RETRY_US (10 * US_PER_MS)

/* --- a part --- */

void stream_produce(struct request *request, struct store_reader *reader)
{
    struct stream *stream = request->call.reply.stream;
    request->produced = STREAM_MORE; /* an empty part is asked for again */
    if (reply_budget_is_over(&request->http->replies))
        return;
    stream->room_bytes = request->room_bytes;
    (void)buffer_reserve(&request->part, request->room_bytes + SLACK_BYTES - request->part.length_bytes);
    request->produced = stream->produce(stream, reader, &request->part);
    if (request->part.failed)
        request->produced = STREAM_CUT;
}

static void produce(struct job *job, struct store_reader *reader)
{
    stream_produce((struct request *)job, reader);
}

/* Before a job that makes a part. */
static void choose_room(struct request *request)
{
    const struct reply_budget *budget = &request->http->replies;
    reply_hold(request, HELD_BYTES);
    bool large = budget->held_bytes + (int64_t)PART_LARGE_BYTES <= budget->limit_bytes / LARGE_SHARE;
    request->room_bytes = large ? PART_LARGE_BYTES : PART_BYTES;
    reply_hold(request, request->room_bytes + SLACK_BYTES + CHUNK_BYTES);
}

/* The part made may be smaller, or one row larger. */
static void hold_part(struct request *request)
{
    size_t bytes = request->part.capacity_bytes + CHUNK_BYTES;
    reply_hold(request, bytes > HELD_BYTES ? bytes : HELD_BYTES);
}

static void wait_for_room(struct request *request, size_t bytes, void (*room)(void *arg))
{
    request->reply_wait.bytes = bytes;
    request->reply_wait.room = room;
    request->reply_wait.arg = request;
    reply_budget_wait(&request->http->replies, &request->reply_wait);
}

static void part_made(struct job *job);

/* Appends to the part. */
static void make_part(void *arg)
{
    struct request *request = arg;
    request->job.lane = LANE_RECORD;
    request->job.run = produce;
    request->job.done = part_made;
    request->on_worker = workers_submit(request->http->options.workers, &request->job);
    if (!request->on_worker)
        loop_timer_set(request->http->options.loop, &request->stream_timer,
                       loop_now_us(request->http->options.loop) + BUSY_RETRY_US, make_part, request);
}

static void ask_for_part(void *arg)
{
    struct request *request = arg;
    buffer_finish(&request->part);
    request->part_sent_bytes = 0;
    request->stream_waits = false;
    request->stream_woken = false;
    reply_hold(request, HELD_BYTES);
    if (reply_budget_is_over(&request->http->replies)) {
        wait_for_room(request, 0, ask_for_part);
        link_watch_hangup(request->link);
        return;
    }
    choose_room(request);
    make_part(request);
}

/* --- the first part --- */

/* Not full yet: it was another request's turn. A stream that holds room already does not wait for more. */
static bool goes_on(struct request *request)
{
    if (request->produced != STREAM_MORE || request->part.length_bytes >= request->room_bytes)
        return false;
    if (!reply_budget_is_over(&request->http->replies))
        make_part(request);
    else if (request->part.length_bytes == 0)
        ask_for_part(request);
    else
        return false;
    return true;
}

void stream_first_made(struct request *request)
{
    struct reply *reply = &request->call.reply;
    hold_part(request);
    if (goes_on(request))
        return;
    if (request->produced == STREAM_CUT) {
        call_refuse_unreadable(&request->call);
    } else if (request->produced == STREAM_LAST) {
        buffer_finish(&reply->body);
        reply->body = request->part;
        buffer_init(&request->part, PART_LIMIT_BYTES);
        call_drop_stream(&request->call);
    }
    request_answer(request);
}

static void room_to_begin(void *arg)
{
    struct request *request = arg;
    loop_timer_clear(request->http->options.loop, &request->reply_timer);
    request->reply_bytes = HELD_BYTES;
    choose_room(request);
    request_submit(request);
}

static void waited_too_long(void *arg)
{
    struct request *request = arg;
    reply_budget_leave(&request->http->replies, &request->reply_wait);
    reply_refuse_room(request);
    request_answer(request);
}

void stream_submit(struct request *request)
{
    struct loop *loop = request->http->options.loop;
    if (reply_budget_take(&request->http->replies, HELD_BYTES)) {
        room_to_begin(request);
        return;
    }
    wait_for_room(request, HELD_BYTES, room_to_begin);
    loop_timer_set(loop, &request->reply_timer, loop_now_us(loop) + request->http->options.settings->reply_timeout_us,
                   waited_too_long, request);
}

/* --- the parts after it --- */

static void part_made(struct job *job)
{
    struct request *request = (struct request *)job;
    request->on_worker = false;
    if (request->gone) {
        request->state = REQUEST_READY;
        request_resume(request);
        return;
    }
    if (request->state != REQUEST_ANSWERED) {
        stream_first_made(request);
        return;
    }
    hold_part(request);
    bool empty = request->part.length_bytes == 0;
    if (empty && (request->produced == STREAM_MORE || (request->produced == STREAM_WAIT && request->stream_woken)))
        ask_for_part(request);
    else if (empty && request->produced == STREAM_WAIT)
        request->stream_waits = true;
    else
        request_resume(request);
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

    if (left_bytes > 0 && !request->gone) {
        size_t taken_bytes = left_bytes < room_bytes ? left_bytes : room_bytes;
        taken_bytes = taken_bytes < CHUNK_BYTES ? taken_bytes : CHUNK_BYTES;
        memcpy(out, request->part.data + request->part_sent_bytes, taken_bytes);
        request->part_sent_bytes += taken_bytes;
        return (ssize_t)taken_bytes;
    }
    if (request->produced == STREAM_CUT && !request->gone)
        reply_log_cut(request);
    if (request->produced == STREAM_CUT || request->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (request->produced == STREAM_LAST)
        return MHD_CONTENT_READER_END_OF_STREAM;
    request_suspend(request);
    ask_for_part(request);
    return 0;
}

static void room_to_answer(void *arg)
{
    struct request *request = arg;
    request->reply_bytes = HELD_BYTES;
    request_answer(request);
}

/* A stream whose first part is not made yet needs room for one. False: it is answered when there is room. */
bool stream_may_answer(struct request *request)
{
    if (request->reply_bytes > 0)
        return true;
    if (!reply_budget_take(&request->http->replies, HELD_BYTES)) {
        if (!request->reply_wait.link)
            wait_for_room(request, HELD_BYTES, room_to_answer);
        return false;
    }
    request->reply_bytes = HELD_BYTES;
    return true;
}

struct MHD_Response *stream_response(struct request *request)
{
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream, request, NULL);
}

void stream_init(struct request *request)
{
    buffer_init(&request->part, PART_LIMIT_BYTES);
    request->produced = STREAM_MORE;
}

void stream_finish(struct request *request)
{
    loop_timer_clear(request->http->options.loop, &request->stream_timer);
    buffer_finish(&request->part);
}
