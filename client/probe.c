/* Finding out what an engine is: a few GETs, cheapest evidence first. A kind that the settings name is never doubted;
 * its steps only learn model, context and slots. */
#include "client/pool_private.h"
#include "client/reply.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

struct facts {
    bool found; /* the reply has what only this kind of engine writes */
    struct buffer model;
    struct buffer version;
    int64_t context_tokens;
    int64_t slots;
};

#define FACT_BYTES 4096

/* --- reading ------------------------------------------------------------------------------------- */

static void read_version(struct facts *facts, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "version"))
            facts->found = scan_string_or_null(scan, &facts->version);
        else
            json_scan_skip(scan);
    }
}

static void read_model_info(struct facts *facts, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "model_path"))
            facts->found = scan_string_or_null(scan, &facts->model);
        else
            json_scan_skip(scan);
    }
}

static void read_generation_defaults(struct facts *facts, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "n_ctx"))
            facts->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
}

static void read_props(struct facts *facts, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "total_slots")) {
            facts->slots = scan_integer_or(scan, 0);
            facts->found = true;
        } else if (text_equals(key, "default_generation_settings") && json_scan_peek(scan) == JSON_KIND_OBJECT) {
            read_generation_defaults(facts, scan);
        } else if (text_equals(key, "model_alias")) {
            scan_string_or_null(scan, &facts->model);
        } else if (text_equals(key, "build_info")) {
            scan_string_or_null(scan, &facts->version);
        } else {
            json_scan_skip(scan);
        }
    }
}

static void read_model(struct facts *facts, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "id"))
            facts->found = scan_string_or_null(scan, &facts->model);
        else if (text_equals(key, "max_model_len"))
            facts->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
}

/* The first model is the base; what follows are its adapters. */
static void read_models(struct facts *facts, struct json_scan *scan)
{
    struct text key;
    size_t count = 0;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (!text_equals(key, "data") || json_scan_peek(scan) != JSON_KIND_ARRAY) {
            json_scan_skip(scan);
            continue;
        }
        for (json_scan_array(scan); json_scan_element(scan); count++) {
            if (count == 0)
                read_model(facts, scan);
            else
                json_scan_skip(scan);
        }
    }
}

/* --- steps --------------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    void (*read)(struct facts *facts, struct json_scan *scan);
    const struct engine_adapter *proves; /* what an engine is that answers so */
    const char *also_for;                /* kinds that learn something here, too */
} steps[] = {
    {"/version", read_version, &adapter_vllm, "vllm_generate"},
    {"/model_info", read_model_info, &adapter_sglang, ""},
    {"/props", read_props, &adapter_llamacpp, ""},
    {"/v1/models", read_models, &adapter_openai_compat, "vllm vllm_generate sglang"},
};

static bool step_fits(size_t step, const struct engine_adapter *adapter)
{
    const char *kinds = steps[step].also_for;
    size_t kind_bytes;

    if (!adapter || adapter == steps[step].proves)
        return true;
    kind_bytes = strlen(adapter->kind);
    for (const char *at = kinds; (at = strstr(at, adapter->kind)); at += kind_bytes)
        if ((at == kinds || at[-1] == ' ') && (at[kind_bytes] == ' ' || !at[kind_bytes]))
            return true;
    return false;
}

/* False: that was the last one. */
static bool next_step(struct engine *engine)
{
    for (engine->probe_step++; (size_t)engine->probe_step < ARRAY_LENGTH(steps); engine->probe_step++)
        if (step_fits((size_t)engine->probe_step, engine->adapter))
            return true;
    return false;
}

static void engine_probe_begin(struct engine *engine)
{
    engine->probing = true;
    engine->probe_step = -1;
    next_step(engine);
}

const char *engine_probe_path(const struct engine *engine)
{
    return steps[engine->probe_step].path;
}

static void adopt(struct engine *engine, const struct facts *facts)
{
    if (facts->model.length_bytes && !engine->model_is_set) {
        free(engine->model);
        engine->model = xstrndup(facts->model.data, facts->model.length_bytes);
    }
    if (facts->version.length_bytes)
        snprintf(engine->version, sizeof(engine->version), "%.*s", (int)facts->version.length_bytes,
                 facts->version.data);
    if (facts->context_tokens > 0)
        engine->context_tokens = facts->context_tokens;
    if (facts->slots > 0)
        engine_limit_slots(engine, (size_t)facts->slots);
}

static void read_step(struct engine *engine, const struct engine_reply *reply)
{
    struct facts facts = {.found = false};
    struct json_scan scan;

    buffer_init(&facts.model, FACT_BYTES);
    buffer_init(&facts.version, FACT_BYTES);
    json_scan_init(&scan, reply->body);
    if (json_scan_peek(&scan) == JSON_KIND_OBJECT)
        steps[engine->probe_step].read(&facts, &scan);
    if (json_scan_end(&scan) && facts.found && !facts.model.failed && !facts.version.failed) {
        if (!engine->adapter)
            engine->adapter = steps[engine->probe_step].proves;
        adopt(engine, &facts);
    }
    buffer_finish(&facts.model);
    buffer_finish(&facts.version);
}

static bool end_probe(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    engine_probe_ended(engine, error, now_us);
    return false;
}

bool engine_probe_reply(struct engine *engine, const struct engine_reply *reply,
                        const struct sample_error *transport_error, int64_t now_us)
{
    struct sample_error error = {.code = SAMPLE_ENGINE_ERROR};

    if (!reply)
        return end_probe(engine, transport_error, now_us);
    if (reply->status >= 502 && reply->status <= 504) {
        error.status = reply->status;
        refuse_status(&error, reply);
        return end_probe(engine, &error, now_us);
    }
    if (status_is_success(reply->status))
        read_step(engine, reply);
    if (next_step(engine))
        return true;
    if (engine->adapter)
        return end_probe(engine, NULL, now_us);
    error.status = reply->status;
    error_message(&error, "nothing at %s answers like an engine (last: %d for %s)", engine->url, reply->status,
                  steps[ARRAY_LENGTH(steps) - 1].path);
    return end_probe(engine, &error, now_us);
}

struct engine *pool_probe_due(struct pool *pool, int64_t now_us, int64_t *ret_at_us)
{
    *ret_at_us = NEVER_US;
    for (size_t i = 0; i < pool_count(pool); i++) {
        struct engine *engine = pool_at(pool, i);

        if (engine->probing ||
            (engine->state != ENGINE_UNKNOWN && engine->state != ENGINE_DOWN && engine->state != ENGINE_REFUSED))
            continue;
        if (engine->paused_until_us <= now_us) {
            engine_probe_begin(engine);
            return engine;
        }
        if (engine->paused_until_us < *ret_at_us)
            *ret_at_us = engine->paused_until_us;
    }
    return NULL;
}
