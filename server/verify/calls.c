/* The queues of pools, and the calls on their way. */
#include "server/verify/calls_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"
#include "server/verify/externals.h"
#include <stdio.h>

#define REPLY_LIMIT_BYTES ((size_t)1 << 20)
#define BODY_MAX_BYTES ((size_t)16 << 20)
#define TIMEOUT_SLACK_US (20 * US_PER_MS) /* at the verdict's deadline its timer comes first */
#define SPARE_CALLS 16                    /* of one run that are away at once, where nobody waits for them */
#define LOOK_US (100 * US_PER_MS)         /* at a pool whose places others have */

static void pump(struct call_pool *pool);

/* --- queues --------------------------------------------------------------------------------------------------- */

static void look(void *arg)
{
    pump(arg);
}

static void look_at(struct call_pool *pool, int64_t at_us)
{
    loop_timer_set(pool->calls->uses.loop, &pool->look, at_us, look, pool);
}

static struct call_pool *pool_of(struct verify_calls *calls, struct pool *pool, struct named_pool *named)
{
    struct call_pool *found = calls->pools;

    while (found && (found->pool != pool || found->named != named))
        found = found->next;
    if (found)
        return found;
    found = xcalloc(1, sizeof *found);
    *found = (struct call_pool){.calls = calls, .next = calls->pools, .pool = pool, .named = named};
    calls->pools = found;
    return found;
}

static struct call_pool *pool_for(struct verify_calls *calls, const struct verifier_spec *spec)
{
    if (spec->external)
        return pool_of(calls, calls->externals, pool_named(calls->externals, text_of(spec->external->name)));
    return pool_of(calls, calls->uses.engines, pool_named(calls->uses.engines, option_text(spec->options, "engine")));
}

static struct call_queue *queue_of(struct call_pool *pool, const char *run, bool spare)
{
    struct call_queue **end = &pool->queues;

    while (*end && ((*end)->spare != spare || !is_same_run((*end)->run, run)))
        end = &(*end)->next;
    if (*end)
        return *end;
    *end = xcalloc(1, sizeof **end);
    **end = (struct call_queue){.pool = pool,
                                .run = run ? xstrdup(run) : NULL,
                                .spare = spare,
                                .last = &(*end)->first,
                                .retries = RETRY_BUDGET_NEW};
    return *end;
}

static void queue_drop_if_unused(struct call_queue *queue)
{
    struct call_queue **link = &queue->pool->queues;

    if (queue->calls)
        return;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    free(queue->run);
    free(queue);
}

static void wait_in_queue(struct asked_call *call)
{
    struct call_queue *queue = call->verdict->queue;

    call->state = CALL_WAITS;
    call->since_us = clock_monotonic_us();
    call->next = NULL;
    call->link = queue->last;
    *queue->last = call;
    queue->last = &call->next;
    queue->waiting++;
    queue->pool->calls->waiting++;
}

static void leave_queue(struct asked_call *call)
{
    struct call_queue *queue = call->verdict->queue;

    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else
        queue->last = call->link;
    queue->waiting--;
    queue->pool->calls->waiting--;
}

/* The spare lane last; fewer on their way; of two that are alike the one that was served longest ago. */
static bool comes_before(const struct call_queue *queue, const struct call_queue *other)
{
    if (queue->spare != other->spare)
        return other->spare;
    return queue->in_flight != other->in_flight ? queue->in_flight < other->in_flight : queue->sent < other->sent;
}

/* The queue whose turn it is, among those with a waiting call. */
static struct call_queue *next_queue(const struct call_pool *pool)
{
    struct call_queue *next = NULL;

    for (struct call_queue *queue = pool->queues; queue; queue = queue->next)
        if (queue->waiting && (!queue->spare || queue->in_flight < SPARE_CALLS) && (!next || comes_before(queue, next)))
            next = queue;
    return next;
}

/* --- the end of a call ------------------------------------------------------------------------------------------ */

static void call_over(struct asked_call *call)
{
    struct asked_verdict *verdict = call->verdict;
    struct asking *asking = verdict->asking;

    call->state = CALL_OVER;
    buffer_finish(&call->sent);
    free(TAKE_PTR(call->body));
    engine_release(TAKE_PTR(call->engine));
    verdict->queue->calls--;
    if (--verdict->left > 0)
        return;
    loop_timer_clear(asking->calls->uses.loop, &verdict->deadline);
    queue_drop_if_unused(TAKE_PTR(verdict->queue));
    asking_verdict_over(asking);
}

static void call_fails(struct asked_call *call, const struct sample_error *error)
{
    call->error = *error;
    metric_add_named(METRIC_CALL_FAILURES, sample_failure_names[error->code], 1);
    call_over(call);
}

/* error NULL: it answered. */
static void leave_engine(struct asked_call *call, const struct sample_error *error)
{
    struct call_queue *queue = call->verdict->queue;
    struct call_pool *pool = queue->pool;
    const struct verify_calls_uses *uses = &pool->calls->uses;
    struct pool_result result = {.error = error, .began_us = call->sent_us, .allowed_us = call->allowed_us};
    enum engine_state before = call->engine->state;
    int64_t now_us = clock_monotonic_us();

    queue->in_flight--;
    pool->calls->in_flight--;
    metric_observe_us(METRIC_CALL_SECONDS, now_us - call->sent_us);
    pool_end(pool->pool, call->engine, &result, now_us);
    if (!error) {
        pool->failing_us = 0;
    } else {
        pool->failing_us = pool->failing_us ? pool->failing_us : now_us;
        pool->error = *error;
    }
    if (uses->called && pool->pool == uses->engines)
        uses->called(uses->called_arg, call->engine, before, error != NULL);
}

static void log_failed(const struct asked_call *call, const struct sample_error *error)
{
    const struct asking *asking = call->verdict->asking;

    log_event(LOG_LEVEL_DEBUG, "call failed", "rollout", asking->verify->rollout, "verifier",
              asking->list->specs[call->verdict->verifier].id, "engine", call->engine->name, "request", asking->name,
              "code", sample_failure_names[error->code], "message", error->message, NULL);
}

/* --- repeats ----------------------------------------------------------------------------------------------------- */

static bool may_be_repeated(struct asked_call *call, struct sample_error *error)
{
    struct call_queue *queue = call->verdict->queue;
    const struct settings *settings = queue->pool->calls->uses.settings;

    return error->retryable && call->attempts < (unsigned)settings->engine_attempts &&
           pool_take_retry(queue->pool->pool, call->engine, &queue->retries, error, call->attempts > 1,
                           clock_monotonic_us());
}

static void pause_is_over(void *arg)
{
    struct asked_call *call = arg;

    wait_in_queue(call);
    pump(call->verdict->queue->pool);
}

static void pause_before_next(struct asked_call *call, const struct sample_error *error)
{
    struct call_pool *pool = call->verdict->queue->pool;
    const struct settings *settings = pool->calls->uses.settings;
    int64_t asked_us = pool_retry_after_us(pool->pool, call->engine, error);
    int64_t now_us = clock_monotonic_us();
    uint64_t spread = (uint64_t)now_us + (uint64_t)(call - call->verdict->calls);
    int64_t delay_us =
        backoff_us(call->attempts, settings->engine_backoff_min_us, settings->engine_backoff_max_us, spread);

    call->error = *error;
    call->state = CALL_PAUSES;
    loop_timer_set(pool->calls->uses.loop, &call->again, now_us + (asked_us > delay_us ? asked_us : delay_us),
                   pause_is_over, call);
}

/* --- replies ------------------------------------------------------------------------------------------------------ */

static void note_engine(struct asked_call *call)
{
    const struct engine *engine = call->engine;
    const char *model = engine->model ? engine->model : engine->facts.model;

    snprintf(call->engine_name, sizeof call->engine_name, "%s", engine->name);
    snprintf(call->model, sizeof call->model, "%s", model);
    snprintf(call->version, sizeof call->version, "%s", engine->facts.version);
}

static void call_answered(struct asked_call *call, struct transfer_reply *reply)
{
    call->status = reply->status;
    call->reply = reply->body;
    buffer_init(&reply->body, 0);
    buffer_trim(&call->reply);
    call->error.message[0] = 0;
    call_over(call);
}

/* True: it is no answer. */
static bool is_refused(const struct transfer_reply *reply, struct sample_error *ret_error)
{
    struct engine_reply seen = {.status = reply->status,
                                .content_type = text_of(reply->content_type),
                                .retry_after = text_of(reply->retry_after),
                                .body = buffer_text(&reply->body),
                                .now_utc_us = clock_utc_us()};

    if (reply->result == TRANSFER_DONE)
        return engine_reply_refuses(&seen, ret_error);
    sample_error_of_transfer(reply, ret_error);
    return true;
}

static void replied(void *arg, struct transfer_reply *reply)
{
    struct asked_call *call = arg;
    struct call_pool *pool = call->verdict->queue->pool;
    struct sample_error error;
    bool refused = is_refused(reply, &error);

    call->transfer = NULL;
    leave_engine(call, refused ? &error : NULL);
    if (refused)
        log_failed(call, &error);
    if (!refused)
        call_answered(call, reply);
    else if (may_be_repeated(call, &error))
        pause_before_next(call, &error);
    else
        call_fails(call, &error);
    pump(pool);
}

/* --- deadlines --------------------------------------------------------------------------------------------------- */

/* Wherever it is, it is there no more. error: what its engine is told; NULL: nothing. */
static void take_back(struct asked_call *call, const struct sample_error *error)
{
    struct call_queue *queue = call->verdict->queue;

    if (call->state == CALL_WAITS)
        leave_queue(call);
    loop_timer_clear(queue->pool->calls->uses.loop, &call->again);
    if (call->state != CALL_AWAY)
        return;
    transport_cancel(TAKE_PTR(call->transfer));
    if (error) {
        leave_engine(call, error);
        return;
    }
    queue->in_flight--;
    queue->pool->calls->in_flight--;
    pool_end_cancelled(queue->pool->pool, call->engine);
}

static void say_time_is_over(const struct asked_call *call, int64_t timeout_us, struct sample_error *ret_error)
{
    bool failed = call->error.message[0];
    char limit[32];

    duration_format(timeout_us, limit);
    *ret_error = (struct sample_error){.code = SAMPLE_ENGINE_TIMEOUT, .retryable = true};
    snprintf(ret_error->message, sizeof ret_error->message, "no reply in the %s of the verdict%s%.150s", limit,
             failed ? "; before that: " : "", failed ? call->error.message : "");
}

static void time_is_over(void *arg)
{
    struct asked_verdict *verdict = arg;
    struct call_pool *pool = verdict->queue->pool;
    int64_t timeout_us = call_timeout_us(&verdict->asking->list->specs[verdict->verifier]);

    for (size_t i = 0, count = verdict->count, left = verdict->left; i < count && left > 0; i++) {
        struct asked_call *call = &verdict->calls[i];
        struct sample_error error;
        if (call->state == CALL_OVER)
            continue;
        say_time_is_over(call, timeout_us, &error);
        take_back(call, &error);
        left--; /* behind the last one the verdict may be gone */
        call_fails(call, &error);
    }
    pump(pool);
}

void calls_withdraw(struct asked_verdict *verdict)
{
    struct call_queue *queue = verdict->queue;

    if (!queue)
        return;
    loop_timer_clear(queue->pool->calls->uses.loop, &verdict->deadline);
    for (size_t i = 0; i < verdict->count; i++) {
        struct asked_call *call = &verdict->calls[i];
        if (call->state == CALL_OVER)
            continue;
        take_back(call, NULL);
        call->state = CALL_OVER;
        queue->calls--;
    }
    verdict->queue = NULL;
    look_at(queue->pool, clock_monotonic_us());
    queue_drop_if_unused(queue);
}

/* --- requests ------------------------------------------------------------------------------------------------------ */

/* The model stands first in the object, so that what follows would have to repeat a key to say another one. */
static struct text body_of(struct asked_call *call)
{
    struct text body = {call->body, call->body_bytes};
    struct json_write json;

    if (!call->wants_model || !call->engine->model)
        return body;
    buffer_finish(&call->sent);
    buffer_init(&call->sent, BODY_MAX_BYTES);
    buffer_append_string(&call->sent, "{\"model\":");
    json_write_init(&json, &call->sent);
    json_write_string(&json, call->engine->model);
    if (body.length_bytes > 2)
        buffer_append_byte(&call->sent, ',');
    buffer_append(&call->sent, body.data + 1, body.length_bytes - 1);
    return buffer_text(&call->sent);
}

static void begin_verdict(struct asked_verdict *verdict, int64_t now_us)
{
    struct asking *asking = verdict->asking;

    if (verdict->began_us)
        return;
    verdict->began_us = now_us;
    if (!asking->began_us)
        asking->began_us = now_us;
    loop_timer_set(asking->calls->uses.loop, &verdict->deadline,
                   now_us + call_timeout_us(&asking->list->specs[verdict->verifier]), time_is_over, verdict);
}

static void take_place(struct asked_call *call, struct engine *engine)
{
    struct call_queue *queue = call->verdict->queue;
    struct pool *pool = queue->pool->pool;

    leave_queue(call);
    call->state = CALL_AWAY;
    queue->in_flight++;
    queue->sent = ++queue->pool->sent;
    queue->pool->calls->in_flight++;
    engine_hold(engine);
    engine_release(call->engine);
    call->engine = engine;
    pool_begin(pool, engine, call->sent_us);
    if (++call->attempts == 1)
        pool_count_first(pool, engine, &queue->retries);
    else
        pool_count_retry(pool, engine);
}

static void send_call(struct asked_call *call, struct engine *engine, int64_t now_us)
{
    struct asked_verdict *verdict = call->verdict;
    const struct verifier_spec *spec = &verdict->asking->list->specs[verdict->verifier];
    const struct verify_calls_uses *uses = &verdict->asking->calls->uses;
    char request_id[sizeof verdict->asking->name + 64];

    begin_verdict(verdict, now_us);
    call->sent_us = now_us;
    call->allowed_us = verdict->began_us + call_timeout_us(spec) - now_us;
    take_place(call, engine);
    note_engine(call);
    metric_add(METRIC_CALLS, 0, 1);
    snprintf(request_id, sizeof request_id, "%s.%.20s.%zu.%u", verdict->asking->name, spec->verifier->name,
             call->number, call->attempts);
    struct transfer_request request = {
        .base_url = engine->url,
        .path = spec->external ? spec->external->settings->path : call->path,
        .method = "POST",
        .bearer_token = engine->token,
        .request_id = request_id,
        .body = body_of(call),
        .timeout_us = call->allowed_us + TIMEOUT_SLACK_US,
        .connect_timeout_us = uses->settings->engine_connect_timeout_us,
        .reply_limit_bytes = REPLY_LIMIT_BYTES,
    };
    call->transfer = transport_start(uses->transport, &request, replied, call);
}

/* Nothing of its pool has succeeded for as long as a pool is waited for, nor since it waits. */
static bool is_hopeless(const struct call_pool *pool, const struct asked_call *call, int64_t now_us)
{
    int64_t since_us = pool->failing_us > call->since_us ? pool->failing_us : call->since_us;

    return pool->failing_us && now_us - since_us >= pool->calls->uses.settings->engine_down_timeout_us;
}

static void look_later(struct call_pool *pool, int64_t now_us, int64_t at_us)
{
    int64_t latest_us = now_us + LOOK_US;

    look_at(pool, at_us <= now_us || at_us > latest_us ? latest_us : at_us);
}

/* Sends what may be sent. */
static void pump(struct call_pool *pool)
{
    struct call_queue *queue;

    while ((queue = next_queue(pool))) {
        struct asked_call *call = queue->first;
        int64_t now_us = clock_monotonic_us();
        struct pool_want want = {.pool = pool->named, .avoid = call->engine, .since_us = call->since_us};
        struct sample_error error = pool->error;
        struct engine *engine;
        int64_t at_us;
        enum pool_answer answer = pool_pick(pool->pool, &want, now_us, &engine, &at_us);

        if (answer == POOL_PICKED) {
            send_call(call, engine, now_us);
            continue;
        }
        if (answer == POOL_DOWN)
            pool_down_error(pool->pool, &want, &error);
        else if (answer == POOL_UNSUITED)
            pool_unsuited_error(pool->pool, &want, &error);
        else if (!is_hopeless(pool, call, now_us)) {
            look_later(pool, now_us, answer == POOL_BUSY ? now_us : at_us);
            return;
        }
        leave_queue(call);
        call_fails(call, &error);
    }
}

void calls_enter(struct asked_verdict *verdict)
{
    struct asking *asking = verdict->asking;
    struct call_pool *pool = pool_for(asking->calls, &asking->list->specs[verdict->verifier]);

    verdict->queue = queue_of(pool, asking->verify->run, asking->verify->lane == VERIFY_SPARE);
    verdict->queue->calls += verdict->count;
    for (size_t i = 0; i < verdict->count; i++)
        wait_in_queue(&verdict->calls[i]);
    look_at(pool, clock_monotonic_us());
}

/* --- from outside ------------------------------------------------------------------------------------------------- */

static struct pool *make_externals(const struct settings *settings)
{
    char message[POOL_MESSAGE_BYTES];
    struct pool *pool = pool_create(NULL, 0, message);

    pool_set_rules(pool, &(struct pool_rules){.pause_max_us = settings->engine_pause_max_us,
                                              .down_timeout_us = settings->engine_down_timeout_us,
                                              .retry_ratio = settings->engine_retry_ratio});
    for (size_t i = 0; i < settings->external_count; i++) {
        const struct external_settings *external = &settings->externals[i];
        struct pool_engine engine = {.name = external->name,
                                     .pool = external->name,
                                     .url = external->url,
                                     .token = external->token,
                                     .in_flight_limit = (size_t)external->in_flight,
                                     .shared = true,
                                     .unasked = true};
        if (external->url && !pool_add(pool, &engine, message))
            log_event(LOG_LEVEL_ERROR, "an external cannot be asked", "external", external->name, "why", message, NULL);
    }
    return pool;
}

struct verify_calls *verify_calls_create(const struct verify_calls_uses *uses, struct verify_pool *text)
{
    struct verify_calls *calls = xcalloc(1, sizeof *calls);

    calls->uses = *uses;
    calls->text = text;
    calls->externals = make_externals(uses->settings);
    verify_pool_call_by(text, &(struct verify_caller){calls, asking_begin, asking_cancel});
    return calls;
}

void verify_calls_destroy(struct verify_calls *calls)
{
    if (!calls)
        return;
    asking_forget_all(calls);
    while (calls->pools) {
        struct call_pool *pool = calls->pools;
        calls->pools = pool->next;
        loop_timer_clear(calls->uses.loop, &pool->look);
        while (pool->queues) {
            struct call_queue *queue = pool->queues;
            pool->queues = queue->next;
            free(queue->run);
            free(queue);
        }
        free(pool);
    }
    pool_destroy(calls->externals);
    free(calls);
}

bool verify_calls_share(const struct verify_calls *calls, size_t place, struct verify_calls_share *ret_share)
{
    for (const struct call_pool *pool = calls->pools; pool; pool = pool->next)
        for (const struct call_queue *queue = pool->queues; queue; queue = queue->next)
            if (place-- == 0) {
                *ret_share = (struct verify_calls_share){queue->run, named_pool_name(pool->named),
                                                         pool->pool == calls->externals,
                                                         queue->calls - queue->in_flight, queue->in_flight};
                return true;
            }
    return false;
}

void verify_calls_count(const struct verify_calls *calls, size_t *ret_waiting, size_t *ret_in_flight)
{
    *ret_waiting = calls->waiting;
    *ret_in_flight = calls->in_flight;
}
