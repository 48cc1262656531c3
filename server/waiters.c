/* Requests that wait for a batch. Each has an end: the batch's, its own wait, its client's hang-up, or the service's.
 */
#include "server/live.h"

#include "server/api_batches.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"

#include <stdio.h>

struct waiter {
    struct live_batch *live;
    struct request *request;
    struct waiter_rules rules;
    struct loop_timer timer;
    struct waiter *previous;
    struct waiter *next;
};

static struct request *waiter_remove(struct waiter *waiter)
{
    struct request *request = waiter->request;
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
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){.live = live, .request = request, .rules = *rules, .next = live->waiters};
    if (live->waiters)
        live->waiters->previous = waiter;
    live->waiters = waiter;
    if (rules->until_us != NEVER_US)
        loop_timer_set(live->server->loop, &waiter->timer, rules->until_us, wait_ended, waiter);
    request_on_hangup(request, hung_up, waiter);
}

void request_answer_batch(struct request *request, const char *batch_id)
{
    struct call *call = request_call(request);
    snprintf(call->subject, sizeof(call->subject), "%s", batch_id);
    request_continue_on_worker(request, answer_batch);
}

void waiters_answer(struct live_batch *live)
{
    while (live->waiters) {
        struct request *request = waiter_remove(live->waiters);
        request_answer_batch(request, live->id);
    }
}

void waiters_refuse(struct live_batch *live, enum error_code code, const char *message)
{
    while (live->waiters) {
        live->answered_async = true; /* nobody's hang-up may cancel what they were told goes on */
        request_refuse(waiter_remove(live->waiters), code, NULL, "%s (%s)", message, live->id);
    }
}

void waiters_release(struct live_batch *live)
{
    while (live->waiters) {
        bool created = live->waiters->rules.created;
        answer_running(live, waiter_remove(live->waiters), created);
    }
}
