/* Probes on their way: what engines are, and whether they are still there. */
#include "server/engines/engines.h"

#include "server/base/clock.h"
#include "server/base/log.h"

struct probe_flight {
    struct engines *engines;
    struct engine *engine;
    struct engine_call call;
    enum engine_state before;
    struct probe_flight *next;
};

static struct probe_flight *flight_begin(struct engines *engines, struct engine *engine)
{
    struct probe_flight *flight = xcalloc(1, sizeof(*flight));
    *flight =
        (struct probe_flight){.engines = engines, .engine = engine, .before = engine->state, .next = engines->probes};
    engines->probes = flight;
    engine_hold(engine);
    return flight;
}

static void flight_end(struct probe_flight *flight)
{
    struct probe_flight **place = &flight->engines->probes;
    while (*place != flight)
        place = &(*place)->next;
    *place = flight->next;
    engine_call_finish(&flight->call);
    free(flight);
}

void engines_forget_probes(struct engines *engines)
{
    loop_timer_clear(engines->uses.loop, &engines->probe_timer);
    while (engines->probes)
        flight_end(engines->probes);
}

static bool is_in_use(enum engine_state state)
{
    return state == ENGINE_UP || state == ENGINE_COOLING;
}

void engine_log_change(const struct engine *engine, enum engine_state before)
{
    static const char *const troubles[ENGINE_STATE_COUNT] = {
        [ENGINE_DOWN] = "engine down", [ENGINE_HALF_OPEN] = "engine half open", [ENGINE_REFUSED] = "engine refused"};
    const char *kind = engine->adapter ? engine->adapter->kind : NULL;

    if (engine->state == before)
        return;
    if (troubles[engine->state])
        log_event(LOG_LEVEL_WARNING, troubles[engine->state], "engine", engine->name, "url", engine->url, "why",
                  engine->why, NULL);
    else if (is_in_use(engine->state) && !is_in_use(before))
        log_event(LOG_LEVEL_INFO, "engine up", "engine", engine->name, "url", engine->url, "kind", kind, "model",
                  engine->model, NULL);
}

static void send_probe(struct probe_flight *flight);

static void go_on(struct probe_flight *flight)
{
    struct engines *engines = flight->engines;
    engine_log_change(flight->engine, flight->before);
    engine_release(flight->engine);
    flight_end(flight);
    pool_reap(engines->pool);
    engines_probe(engines);
    if (engines->changed)
        engines->changed(engines->changed_arg);
}

static void probed(void *arg, struct transfer_reply *reply)
{
    struct probe_flight *flight = arg;
    struct engine_reply seen = {.status = reply->status,
                                .content_type = text_of(reply->content_type),
                                .retry_after = text_of(reply->retry_after),
                                .body = buffer_text(&reply->body),
                                .now_utc_us = clock_utc_us()};
    struct sample_error error = {0};
    bool whole = reply->result == TRANSFER_DONE;
    engine_call_finish(&flight->call);
    if (!whole)
        sample_error_of_transfer(reply, &error);
    if (engine_probe_reply(flight->engine, whole ? &seen : NULL, whole ? NULL : &error, clock_monotonic_us()))
        send_probe(flight);
    else
        go_on(flight);
}

static void send_probe(struct probe_flight *flight)
{
    int64_t timeout_us;
    if (!engine_probe_build(flight->engine, clock_monotonic_us(), &flight->call, &timeout_us)) {
        go_on(flight);
        return;
    }
    struct transfer_request request = {.base_url = flight->engine->url,
                                       .path = flight->call.path,
                                       .method = flight->call.method,
                                       .bearer_token = flight->engine->token,
                                       .body =
                                           flight->call.body.length_bytes ? buffer_text(&flight->call.body) : TEXT_NONE,
                                       .timeout_us = timeout_us,
                                       .connect_timeout_us = PROBE_GET_TIMEOUT_US,
                                       .reply_limit_bytes = PROBE_REPLY_BYTES};
    transport_start(flight->engines->transport, &request, probed, flight);
}

static void probes_due(void *arg)
{
    engines_probe(arg);
}

void engines_probe(struct engines *engines)
{
    struct engine *engine;
    int64_t at_us = NEVER_US;

    while ((engine = pool_probe_due(engines->pool, clock_monotonic_us(), &at_us)))
        send_probe(flight_begin(engines, engine));
    if (at_us != NEVER_US)
        loop_timer_set(engines->uses.loop, &engines->probe_timer, at_us, probes_due, engines);
}
