/* Requests that wait for a batch. Each has an end: the batch's, its own wait, its client's hang-up, or the service's.
 */
#include "server/batches/live.h"

#include "server/api/batches.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/unstored.h"
#include "server/render/feed.h"

#include <stdio.h>

struct waiter {
    struct live_batch *live;
    struct request *request;
    struct waiter_rules rules;
    struct feed *feed; /* NULL: it waits for the end only */
    struct loop_timer timer;
    struct waiter *previous;
    struct waiter *next;
};

static struct request *waiter_remove(struct waiter *waiter)
{
    struct request *request = waiter->request;
    request_on_hangup(request, NULL, NULL);
    loop_timer_clear(waiter->live->server->loop, &waiter->timer);
    if (waiter->previous)
        waiter->previous->next = waiter->next;
    else
        waiter->live->waiters = waiter->next;
    if (waiter->next)
        waiter->next->previous = waiter->previous;
    free(waiter);
    return request;
}

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

static void wait_ended(void *arg)
{
    struct waiter *waiter = arg;
    struct live_batch *live = waiter->live;
    bool created = waiter->rules.created;
    answer_running(live, waiter_remove(waiter), created);
    live_destroy_if_done(live);
}

static bool hung_up(struct request *request, void *arg)
{
    (void)request;
    struct waiter *waiter = arg;
    struct live_batch *live = waiter->live;
    waiter_remove(waiter);
    if (!live->waiters && !live->has_key && !live->answered_async)
        live_event(live, &(struct batch_event){.kind = EVENT_CANCEL});
    else
        live_destroy_if_done(live);
    return true;
}

static struct waiter *join(struct live_batch *live, struct request *request, const struct waiter_rules *rules)
{
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){.live = live, .request = request, .rules = *rules, .next = live->waiters};
    if (live->waiters)
        live->waiters->previous = waiter;
    live->waiters = waiter;
    request_on_hangup(request, hung_up, waiter);
    return waiter;
}

static void add_feed(struct live_batch *live, struct request *request)
{
    struct call *call = request_call(request);
    int arrays = JSON_ARRAYS_PLAIN;
    (void)call_query_arrays(call, &arrays); /* checked before */
    struct waiter *waiter = join(live, request, &(struct waiter_rules){.until_us = NEVER_US, .created = true});
    waiter->feed = feed_create(live->id, live->batch.group_count, arrays);
    for (uint32_t g = 0; g < live->batch.group_count; g++)
        if (live->batch.groups[g].closed)
            feed_group_closed(waiter->feed, g);
    call->reply.status = 200;
    call->reply.content_type = "application/x-ndjson";
    call->reply.stream = feed_stream(waiter->feed);
    request_answer(request);
}

void waiters_group_closed(struct live_batch *live, uint32_t group)
{
    for (struct waiter *waiter = live->waiters; waiter; waiter = waiter->next)
        if (waiter->feed) {
            feed_group_closed(waiter->feed, group);
            request_stream_wake(waiter->request);
        }
}

/* The feed lives on with its request; nobody tells it anything any more. */
static void leave_feed(struct waiter *waiter, void (*say)(struct feed *feed))
{
    struct feed *feed = waiter->feed;
    struct request *request = waiter_remove(waiter);
    say(feed);
    request_stream_wake(request);
}

void waiter_add(struct live_batch *live, struct request *request, const struct waiter_rules *rules)
{
    if (batch_is_terminal(&live->batch)) {
        request_answer_batch(request, live->id);
        return;
    }
    if (rules->until_us <= loop_now_us(live->server->loop)) {
        answer_running(live, request, rules->created);
        return;
    }
    if (request_call(request)->accept_ndjson) {
        add_feed(live, request);
        return;
    }
    struct waiter *waiter = join(live, request, rules);
    if (rules->until_us != NEVER_US)
        loop_timer_set(live->server->loop, &waiter->timer, rules->until_us, wait_ended, waiter);
}

void request_answer_batch(struct request *request, const char *batch_id)
{
    struct call *call = request_call(request);
    snprintf(call->subject, sizeof(call->subject), "%s", batch_id);
    request_continue_on_worker(request, call->accept_ndjson ? feed_answer_ended : answer_batch);
}

void waiters_answer(struct live_batch *live)
{
    while (live->waiters) {
        if (live->waiters->feed) {
            leave_feed(live->waiters, feed_ended);
            continue;
        }
        struct request *request = waiter_remove(live->waiters);
        if (live->unstored)
            unstored_answer(live, request);
        else
            request_answer_batch(request, live->id);
    }
}

void waiters_refuse(struct live_batch *live, enum error_code code, const char *message)
{
    for (struct waiter *waiter = live->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        if (waiter->feed)
            continue; /* its status is sent: it goes on when the store does */
        if (!waiter->rules.created && waiter->rules.until_us != NEVER_US)
            continue;                /* a GET: when its wait ends it is told how the batch stands */
        live->answered_async = true; /* nobody's hang-up may cancel what they were told goes on */
        request_refuse(waiter_remove(waiter), code, NULL, "%s (%s)", message, live->id);
    }
}

void waiters_release(struct live_batch *live)
{
    while (live->waiters) {
        if (live->waiters->feed) {
            leave_feed(live->waiters, feed_cut);
            continue;
        }
        bool created = live->waiters->rules.created;
        struct request *request = waiter_remove(live->waiters);
        if (live->unstored)
            request_refuse(request, ERR_DRAINING, NULL, "the service is shutting down; nothing of this was kept");
        else
            answer_running(live, request, created);
    }
}
