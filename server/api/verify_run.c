/* The part of POST /v1/verify that runs on the loop: items through the pools, a bounded number at once, under one
 * deadline. And GET /v1/verifiers. */
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/verify_private.h"
#include "server/base/clock.h"
#include "server/http/http.h"
#include "server/verify/calls.h"
#include "server/verify/judges.h"

#define CONCURRENCY 64              /* items of one request in the pool at once */
#define ASKING 256                  /* the same, where servers are asked about them */
#define DEADLINE_US (30 * US_PER_S) /* beside the items' timeouts */
#define LIGHT_ITEMS 512             /* a reply with more keeps a thread for milliseconds */
#define AGAIN_US (5 * US_PER_MS)

static void pump(struct verify_request *request);

static bool is_light(const struct verify_request *request)
{
    return request->count <= LIGHT_ITEMS;
}

static void pump_again(void *arg)
{
    pump(arg);
}

static void wait_a_little(struct verify_request *request)
{
    struct loop *loop = request->context->loop;
    loop_timer_set(loop, &request->again, clock_monotonic_us() + AGAIN_US, pump_again, request);
}

/* --- the end --- */

static void render(struct job *job, struct store_reader *reader)
{
    struct verify_request *request = (struct verify_request *)job;

    (void)reader;
    request->write(request, request->call);
    verify_request_drop_items(request);
}

static void rendered(struct job *job)
{
    struct verify_request *request = (struct verify_request *)job;

    request_answer(request->client);
}

static void submit_render(struct verify_request *request)
{
    request->render.lane = is_light(request) ? LANE_REQUEST : LANE_HEAVY;
    request->render.run = render;
    request->render.done = rendered;
    request->rendering = workers_submit(request->context->workers, &request->render);
    if (!request->rendering) {
        wait_a_little(request);
        return;
    }
    loop_timer_clear(request->context->loop, &request->deadline);
    loop_timer_clear(request->context->loop, &request->again);
}

/* --- items --- */

static void item_done(struct verify_job *job)
{
    struct verify_item *item = (struct verify_item *)job;
    struct verify_request *request = item->request;

    item->running = false;
    request->running--;
    buffer_finish(&item->frame);
    pump(request);
}

static bool start_item(struct verify_request *request, struct verify_item *item)
{
    item->request = request;
    item->job.frame = item->frame.data;
    item->job.frame_bytes = item->frame.length_bytes;
    verify_job_ask(&item->job, item->list, request->context->item_timeout_us);
    item->job.lane = is_light(request) ? VERIFY_SMALL : VERIFY_BULK;
    item->job.request_id = request->call->request_id;
    item->job.done = item_done;
    item->running = verify_submit(request->context->pool, &item->job);
    request->running += item->running;
    return item->running;
}

static void pump(struct verify_request *request)
{
    while (request->next < request->count && request->running < (request->calls_us ? ASKING : CONCURRENCY)) {
        struct verify_item *item = &request->items[request->next];
        if (!item->failed && !start_item(request, item)) {
            wait_a_little(request);
            return;
        }
        request->next++;
    }
    if (request->next == request->count && request->running == 0 && !request->rendering)
        submit_render(request);
}

static void stop_items(struct verify_request *request)
{
    for (size_t i = 0; i < request->next; i++)
        if (request->items[i].running) {
            verify_cancel_job(request->context->pool, &request->items[i].job);
            request->items[i].running = false;
            verify_item_fail(&request->items[i], "deadline", "the request's time was over before this item was judged",
                             true);
        }
    request->running = 0;
}

static void expired(void *arg)
{
    struct verify_request *request = arg;

    stop_items(request);
    for (; request->next < request->count; request->next++)
        if (!request->items[request->next].failed)
            verify_item_fail(&request->items[request->next], "deadline",
                             "the request's time was over before this item was judged", true);
    submit_render(request);
}

/* How long its items may wait for servers that are asked about them; 0: none is. */
static int64_t calls_time_us(const struct verify_request *request)
{
    const struct verifier_list *list = NULL;
    int64_t longest_us = 0;
    int64_t sum_us = 0;
    int64_t time_us = 0;
    int64_t share_us = 0;

    for (size_t i = 0; i < request->count; i++) {
        const struct verify_item *item = &request->items[i];
        if (!item->list)
            continue;
        if (item->list != list)
            time_us = verify_calls_time_us(item->list, &share_us);
        list = item->list;
        longest_us = time_us > longest_us ? time_us : longest_us;
        sum_us += share_us;
    }
    return longest_us + sum_us;
}

static int64_t time_allowed_us(const struct verify_request *request)
{
    struct verify_pool_counts counts;

    verify_pool_count(request->context->pool, &counts);
    return DEADLINE_US + request->calls_us +
           request->context->item_timeout_us * (int64_t)request->count /
               (int64_t)(counts.workers_at_once ? counts.workers_at_once : 1);
}

/* The client is gone. While a worker renders, the request is answered after all. */
static bool hung_up(struct request *client, void *arg)
{
    struct verify_request *request = arg;

    (void)client;
    if (request->rendering)
        return false;
    loop_timer_clear(request->context->loop, &request->deadline);
    loop_timer_clear(request->context->loop, &request->again);
    stop_items(request);
    return true;
}

/* The pools that judges are asked in: of the shared verifiers the request's own error, of an item's its failure. False:
 * the call is refused. */
static bool check_judges(struct pool *engines, struct verify_request *request, struct call *call)
{
    struct verifier_problem problem;
    char path[PATH_BYTES];
    size_t index;

    if (request->shared && judges_check_item(engines, request->shared, &index, &problem) < 0) {
        path_index(path, "", "verifiers", index);
        path_join(path, path, "options");
        path_join(path, path, problem.name);
        call_refuse(call, ERR_VERIFIER_OPTIONS, path, "%s", problem.message);
        return false;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct verify_item *item = &request->items[i];
        if (item->list && item->list != request->shared && !item->failed &&
            judges_check_item(engines, item->list, &index, &problem) < 0)
            verify_item_fail(item, "verifier_options", problem.message, false);
    }
    return true;
}

void list_verifiers(void *owner, struct request *client)
{
    const struct server *server = owner;
    struct call *call = request_call(client);
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    verifiers_write(&json, server->code_pool);
    call_answer_json(call, 200);
    request_answer(client);
}

void verify_on_loop(void *owner, struct request *client)
{
    struct server *server = owner;
    struct call *call = request_call(client);
    struct verify_request *request = call->parsed;

    if (!check_judges(server->pool, request, call)) {
        request_answer(client);
        return;
    }
    if (!request_hold_parsed(client, verify_bytes(request)))
        return;
    request->context = &server->verify;
    request->client = client;
    request->call = call;
    request->calls_us = calls_time_us(request);
    request_on_hangup(client, hung_up, request);
    loop_timer_set(request->context->loop, &request->deadline, clock_monotonic_us() + time_allowed_us(request), expired,
                   request);
    pump(request);
}
