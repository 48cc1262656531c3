#include "server/api/waiters.h"

#include "server/api/batches.h"
#include "server/api/unstored.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/observer.h"
#include "server/render/feed.h"

#include <stdio.h>

struct waiter {
    struct live_observer observer; /* first */
    struct loop *loop;
    struct request *request;
    struct waiter_rules rules;
    struct feed *feed; /* NULL: it waits for the end only */
    struct loop_timer timer;
};

/* Frees a waiter that observes nothing any more; its request. */
static struct request *waiter_destroy(struct waiter *waiter)
{
    struct request *request = waiter->request;
    request_on_hangup(request, NULL, NULL);
    loop_timer_clear(waiter->loop, &waiter->timer);
    free(waiter);
    return request;
}

static struct request *waiter_leave(struct waiter *waiter)
{
    live_unobserve(&waiter->observer);
    return waiter_destroy(waiter);
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* The batch as it stands: state, counts, what it waits for. */
static void answer_running(struct live_batch *live, struct request *request, bool created)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    live_write_running(&json, live);
    json_object_end(&json);
    if (created) {
        live->answered_async = true;
        snprintf(call->reply.location, sizeof(call->reply.location), "/v1/batches/%s", live->id);
    }
    call_answer_json(call, created ? 202 : 200);
    request_answer(request);
}

void request_answer_batch(struct request *request, const char *batch_id)
{
    struct call *call = request_call(request);
    void (*whole)(struct call *) = call->answer_batch ? call->answer_batch : answer_batch;
    snprintf(call->subject, sizeof(call->subject), "%s", batch_id);
    request_continue_on_worker(request, call->accept_ndjson ? feed_answer_ended : whole);
}

/* --- what becomes of the batch ---------------------------------------------------------------------------- */

static void group_closed(struct live_observer *observer, uint32_t group)
{
    struct waiter *waiter = (struct waiter *)observer;
    if (!waiter->feed)
        return;
    feed_group_closed(waiter->feed, group);
    request_stream_wake(waiter->request);
}

/* The feed lives on with its request; nobody tells it anything any more. */
static void end_feed(struct waiter *waiter, void (*say)(struct feed *feed))
{
    struct feed *feed = waiter->feed;
    struct request *request = waiter_destroy(waiter);
    say(feed);
    request_stream_wake(request);
}

static void ended(struct live_observer *observer)
{
    struct waiter *waiter = (struct waiter *)observer;
    struct live_batch *live = observer->live;
    if (waiter->feed)
        end_feed(waiter, feed_ended);
    else if (live->unstored)
        unstored_answer(live, waiter_destroy(waiter));
    else
        request_answer_batch(waiter_destroy(waiter), live->id);
}

static const struct {
    enum error_code code;
    const char *message;
} troubles[] = {
    [LIVE_DISK_FULL] = {ERR_DISK_FULL, "the disk is full; the batch continues and is stored when there is room"},
    [LIVE_NOT_WRITTEN] = {ERR_STORE_UNAVAILABLE, "the database cannot be written; the batch continues"},
    [LIVE_NOT_READ] = {ERR_STORE_UNAVAILABLE, "the database cannot be read; the batch continues"},
};

static void held_up(struct live_observer *observer, enum live_trouble trouble)
{
    struct waiter *waiter = (struct waiter *)observer;
    struct live_batch *live = observer->live;
    if (waiter->feed)
        return; /* its status is sent: it continues when the store does */
    if (!waiter->rules.created && waiter->rules.until_us != NEVER_US)
        return;                  /* a GET: when its wait ends it is told how the batch stands */
    live->answered_async = true; /* no hang-up may cancel a batch whose clients were told that it continues */
    request_refuse(waiter_leave(waiter), troubles[trouble].code, NULL, "%s (%s)", troubles[trouble].message, live->id);
}

/* 202 and the id, except for a score that leaves no trace, and for a client that takes any reply for its rewards. */
static void service_ends(struct live_observer *observer)
{
    struct waiter *waiter = (struct waiter *)observer;
    struct live_batch *live = observer->live;
    bool created = waiter->rules.created;
    if (waiter->feed)
        end_feed(waiter, feed_cut);
    else if (live->unstored)
        request_refuse(waiter_destroy(waiter), ERR_DRAINING, NULL,
                       "the service is shutting down; nothing of this was kept");
    else if (request_call(waiter->request)->answer_batch)
        request_refuse(waiter_destroy(waiter), ERR_DRAINING, NULL, "the service is shutting down; %s continues",
                       live->id);
    else
        answer_running(live, waiter_destroy(waiter), created);
}

static const struct live_observer_calls calls = {
    .group_closed = group_closed, .held_up = held_up, .ended = ended, .service_ends = service_ends};

/* --- what becomes of the request -------------------------------------------------------------------------- */

static void wait_ended(void *arg)
{
    struct waiter *waiter = arg;
    struct live_batch *live = waiter->observer.live;
    bool created = waiter->rules.created;
    answer_running(live, waiter_leave(waiter), created);
}

static bool hung_up(struct request *request, void *arg)
{
    (void)request;
    struct waiter *waiter = arg;
    struct live_batch *live = waiter->observer.live;
    waiter_leave(waiter);
    if (!live->observers && !live->has_key && !live->answered_async)
        live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
    return true;
}

static struct waiter *join(struct loop *loop, struct live_batch *live, struct request *request,
                           const struct waiter_rules *rules)
{
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    waiter->loop = loop;
    waiter->request = request;
    waiter->rules = *rules;
    live_observe(live, &waiter->observer, &calls);
    request_on_hangup(request, hung_up, waiter);
    return waiter;
}

static void add_feed(struct loop *loop, struct live_batch *live, struct request *request)
{
    struct call *call = request_call(request);
    int arrays = JSON_ARRAYS_PLAIN;
    (void)call_query_arrays(call, &arrays); /* checked before */
    struct waiter *waiter = join(loop, live, request, &(struct waiter_rules){.until_us = NEVER_US, .created = true});
    waiter->feed = feed_create(live->id, live->batch.group_room, arrays);
    for (uint32_t g = 0; g < live->batch.group_count; g++)
        if (live->batch.groups[g].closed && !live->batch.groups[g].dropped)
            feed_group_closed(waiter->feed, g);
    call->reply.status = 200;
    call->reply.content_type = "application/x-ndjson";
    call->reply.stream = feed_stream(waiter->feed);
    request_answer(request);
}

void waiter_add(struct loop *loop, struct live_batch *live, struct request *request, const struct waiter_rules *rules)
{
    if (batch_is_terminal(&live->batch)) {
        request_answer_batch(request, live->id);
        return;
    }
    if (rules->until_us <= loop_now_us(loop)) {
        answer_running(live, request, rules->created);
        return;
    }
    if (request_call(request)->accept_ndjson) {
        add_feed(loop, live, request);
        return;
    }
    struct waiter *waiter = join(loop, live, request, rules);
    if (rules->until_us != NEVER_US)
        loop_timer_set(loop, &waiter->timer, rules->until_us, wait_ended, waiter);
}
