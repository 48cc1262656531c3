/* Probing: what the pool wants to know of its engines, sent and read. */
#include "server/live.h"

#include "server/base/clock.h"
#include "server/base/log.h"

struct probe {
    struct batches *batches;
    struct engine *engine;
    struct probe *next;
};

static struct probe *probe_create(struct batches *batches, struct engine *engine)
{
    struct probe *probe = xcalloc(1, sizeof(*probe));
    *probe = (struct probe){.batches = batches, .engine = engine, .next = batches->probes};
    batches->probes = probe;
    return probe;
}

static void probe_destroy(struct probe *probe)
{
    struct probe **place = &probe->batches->probes;
    while (*place != probe)
        place = &(*place)->next;
    *place = probe->next;
    free(probe);
}

void probes_forget(struct batches *batches)
{
    while (batches->probes)
        probe_destroy(batches->probes);
}

static bool is_up(enum engine_state state)
{
    return state == ENGINE_UP || state == ENGINE_COOLING;
}

void log_engine_change(const struct engine *engine, enum engine_state before)
{
    static const char *const troubles[ENGINE_STATE_COUNT] = {
        [ENGINE_DOWN] = "engine down", [ENGINE_HALF_OPEN] = "engine half open", [ENGINE_REFUSED] = "engine refused"};
    const char *kind = engine->adapter ? engine->adapter->kind : NULL;

    if (engine->state == before)
        return;
    if (troubles[engine->state])
        log_event(LOG_LEVEL_WARNING, troubles[engine->state], "engine", engine->name, "url", engine->url, "why",
                  engine->why, NULL);
    else if (is_up(engine->state) && !is_up(before))
        log_event(LOG_LEVEL_INFO, "engine up", "engine", engine->name, "url", engine->url, "kind", kind, "model",
                  engine->model, NULL);
}

static void send_probe(struct probe *probe);

static void probed(void *arg, struct transfer_reply *reply)
{
    struct probe *probe = arg;
    struct engine_reply seen = {.status = reply->status,
                                .content_type = text_of(reply->content_type),
                                .retry_after = text_of(reply->retry_after),
                                .body = buffer_text(&reply->body),
                                .now_utc_us = clock_utc_us()};
    struct sample_error error = {0};
    bool whole = reply->result == TRANSFER_DONE;
    if (!whole)
        sample_error_of_transfer(reply, &error);
    enum engine_state before = probe->engine->state;
    if (engine_probe_reply(probe->engine, whole ? &seen : NULL, whole ? NULL : &error, clock_monotonic_us())) {
        send_probe(probe);
        return;
    }
    log_engine_change(probe->engine, before);
    struct batches *batches = probe->batches;
    probe_destroy(probe);
    pool_reap(batches->server->pool);
    probe_engines(batches);
    dispatch(batches);
}

static void send_probe(struct probe *probe)
{
    struct transfer_request request = {.base_url = probe->engine->url,
                                       .path = engine_probe_path(probe->engine),
                                       .method = "GET",
                                       .bearer_token = probe->engine->token,
                                       .timeout_us = ENGINE_PROBE_TIMEOUT_US,
                                       .connect_timeout_us = ENGINE_PROBE_TIMEOUT_US,
                                       .reply_limit_bytes = ENGINE_PROBE_REPLY_BYTES};
    transport_start(probe->batches->server->transport, &request, probed, probe);
}

void probe_engines(void *arg)
{
    struct batches *batches = arg;
    struct pool *pool = batches->server->pool;
    struct engine *engine;
    int64_t at_us = NEVER_US;

    while ((engine = pool_probe_due(pool, clock_monotonic_us(), &at_us))) {
        send_probe(probe_create(batches, engine));
    }
    if (at_us != NEVER_US)
        loop_timer_set(batches->server->loop, &batches->probe_timer, at_us, probe_engines, batches);
}
