/* Descriptions of engines: for operators, for batches that wait, for Prometheus. */
#include "server/engines/engines.h"

#include "server/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

/* --- sentences ------------------------------------------------------------------------------------------- */

static void say_known(const struct engine *engine, char ret_why[ENGINE_SENTENCE_BYTES])
{
    const struct engine_capabilities *capabilities = &engine->facts.capabilities;
    const char *what = engine->facts.wants_key ? "it wants a key for its list of models, and may want one for samples"
                       : capabilities->seeds == CAPABILITY_NO && capabilities->ids == CAPABILITY_NO
                           ? "it ignores seeds and gives no token ids, so nothing it samples can be trained on"
                       : capabilities->seeds == CAPABILITY_NO ? "it ignores seeds: its samples cannot be drawn again"
                       : capabilities->ids == CAPABILITY_NO
                           ? "it gives no token ids, so nothing it samples can be trained on"
                           : NULL;
    if (what)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "%s%s%s%s", what, capabilities->note[0] ? " (" : "",
                 capabilities->note, capabilities->note[0] ? ")" : "");
}

void engine_say_why(const struct engines *engines, const struct engine *engine, char ret_why[ENGINE_SENTENCE_BYTES])
{
    struct known_engine *known = engines_known((struct engines *)(uintptr_t)engines, text_of(engine->name));
    enum engine_state state = engine_shown_state(engine);

    ret_why[0] = '\0';
    if (engine->removed)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "it was removed: nothing new is sent, %zu requests run",
                 engine->in_flight);
    else if (state == ENGINE_DRAINING)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "somebody asked to drain it: nothing new is sent, %zu requests run",
                 engine->in_flight);
    else if (engine->why[0])
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "%s", engine->why);
    else if (engine->unasked)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES,
                 "it is not probed: only the calls of verifiers show whether it answers");
    else if (state == ENGINE_UNKNOWN)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "it was not asked yet what it is");
    else if (state == ENGINE_PROBING)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "it is being asked what it is");
    else if (known && known->token_name && !known->token && engine->source == ENGINE_OF_API)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "its key \"%s\" cannot be read, so it is asked without one",
                 known->token_name);
    else
        say_known(engine, ret_why);
}

static const char next_single[] = "it gets a single request when there is one to send";

/* The next automatic step and its time (monotonic; 0: unknown). NULL: none. */
static const char *next_of(const struct engine *engine, int64_t *ret_at_us)
{
    *ret_at_us = 0;
    if (engine->removed) /* a probe that is under way changes nothing any more */
        return NULL;
    if (engine->probing)
        return "a probe is under way";
    if (engine->unasked && engine->state == ENGINE_DOWN && !engine->draining) {
        *ret_at_us = engine->paused_until_us;
        return next_single;
    }
    switch (engine_shown_state(engine)) {
    case ENGINE_UNKNOWN:
    case ENGINE_DOWN:
    case ENGINE_REFUSED:
        *ret_at_us = engine->paused_until_us;
        return "it is probed again";
    case ENGINE_COOLING:
        *ret_at_us = engine->paused_until_us;
        return "it gets work again";
    case ENGINE_HALF_OPEN:
        *ret_at_us = engine->trial_at_us;
        return next_single;
    case ENGINE_DRAINING:
    case ENGINE_PROBING:
    case ENGINE_UP:
    case ENGINE_STATE_COUNT:
        break;
    }
    return NULL;
}

bool pool_say_why(const struct engines *engines, const struct named_pool *named, bool pauses,
                  char ret_why[ENGINE_SENTENCE_BYTES])
{
    struct pool *pool = engines->pool;
    char why[ENGINE_SENTENCE_BYTES];
    int length =
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "no engine of pool \"%s\" can be used", named_pool_name(named));
    size_t said = 0;

    for (size_t i = 0; i < pool_count(pool); i++) {
        const struct engine *engine = pool_at(pool, i);
        enum engine_state state = engine_shown_state(engine);
        if (engine->pool != named)
            continue;
        if (state == ENGINE_UP || state == ENGINE_HALF_OPEN || (state == ENGINE_COOLING && !pauses))
            return false;
        engine_say_why(engines, engine, why);
        if (length > 0 && length < ENGINE_SENTENCE_BYTES)
            length += snprintf(ret_why + length, (size_t)(ENGINE_SENTENCE_BYTES - length), "%s %s is %s (%s)",
                               said++ ? "," : ":", engine->name, engine_state_names[state], why);
    }
    if (!said)
        snprintf(ret_why, ENGINE_SENTENCE_BYTES, "no engine belongs to the pool \"%s\"", named_pool_name(named));
    return true;
}

/* --- JSON -------------------------------------------------------------------------------------------------- */

static void put_capability(struct json_write *json, const char *key, enum capability capability)
{
    json_key(json, key);
    if (capability == CAPABILITY_UNKNOWN)
        json_write_null(json);
    else
        json_bool(json, capability == CAPABILITY_YES);
}

static void write_capabilities(struct json_write *json, const struct engine_capabilities *capabilities)
{
    static const char *const seeds[] = {
        [CAPABILITY_UNKNOWN] = "unknown", [CAPABILITY_NO] = "ignored", [CAPABILITY_YES] = "honoured"};
    json_key(json, "capabilities");
    json_object_begin(json);
    put_capability(json, "ids", capabilities->ids);
    put_capability(json, "logprobs", capabilities->logprobs);
    put_capability(json, "n", capabilities->n);
    json_put_string(json, "seeds", seeds[capabilities->seeds]);
    json_put_string(json, "note", capabilities->note[0] ? capabilities->note : NULL);
    json_object_end(json);
}

static void put_word(struct json_write *json, const char *key, const char *word)
{
    json_put_string(json, key, word && *word ? word : NULL);
}

static void put_count(struct json_write *json, const char *key, int64_t count)
{
    json_key(json, key);
    if (count > 0)
        json_int(json, count);
    else
        json_write_null(json);
}

static void put_moment(struct json_write *json, const char *key, int64_t monotonic_us)
{
    json_put_time(json, key,
                  monotonic_us > 0 && monotonic_us != NEVER_US ? clock_utc_us() + monotonic_us - clock_monotonic_us()
                                                               : -1);
}

static void write_facts(struct json_write *json, const struct engine *engine)
{
    const struct engine_facts *facts = &engine->facts;
    put_count(json, "slots", (int64_t)engine->slots);
    put_count(json, "context_tokens", engine->context_tokens);
    put_word(json, "version", facts->version);
    put_word(json, "tokenizer_sha256", facts->tokenizer_sha256);
    put_word(json, "chat_template_sha256", facts->chat_template_sha256);
    put_word(json, "weight_version", facts->weight_version);
    json_put_bool(json, "shared", engine->shared);
    write_capabilities(json, &facts->capabilities);
    json_put_string(json, "logprobs_mode", logprobs_kind_names[facts->capabilities.logprobs_kind]);
}

static void write_latency(struct json_write *json, const struct engine *engine)
{
    struct engine_latency latency;
    engine_latency(engine, clock_monotonic_us(), &latency);
    json_key(json, "latency");
    json_object_begin(json);
    json_put_int(json, "samples", (int64_t)latency.samples);
    put_count(json, "p50_us", latency.p50_us);
    put_count(json, "p90_us", latency.p90_us);
    put_count(json, "p99_us", latency.p99_us);
    json_object_end(json);
}

static void write_failures(struct json_write *json, const struct engine_stats *stats)
{
    json_key(json, "failures");
    json_object_begin(json);
    for (size_t code = 0; code < SAMPLE_FAILURE_COUNT; code++)
        if (stats->failures[code])
            json_put_int(json, sample_failure_names[code], (int64_t)stats->failures[code]);
    json_object_end(json);
}

static void write_last_error(struct json_write *json, const struct engine *engine)
{
    const struct engine_stats *stats = engine_stats(engine);
    bool of_probe = !stats->last_error.message[0] && engine->last_error.message[0];
    const struct sample_error *error = of_probe ? &engine->last_error : &stats->last_error;

    json_key(json, "last_error");
    if (!error->message[0]) {
        json_write_null(json);
        return;
    }
    json_object_begin(json);
    json_put_string(json, "code", sample_failure_names[error->code]);
    json_put_string(json, "message", error->message);
    put_count(json, "status", error->status);
    put_moment(json, "at", of_probe ? engine->probed_at_us : stats->last_error_us);
    json_object_end(json);
}

static void write_work(struct json_write *json, const struct engine *engine)
{
    const struct engine_stats *stats = engine_stats(engine);
    json_put_int(json, "in_flight", (int64_t)engine->in_flight);
    json_put_int(json, "in_flight_limit", (int64_t)engine->in_flight_limit);
    json_put_bool(json, "in_flight_learned", engine->in_flight_learned);
    write_latency(json, engine);
    json_put_int(json, "requests", (int64_t)stats->requests);
    json_put_int(json, "samples", (int64_t)stats->samples);
    json_put_int(json, "retries", (int64_t)stats->retries);
    write_failures(json, stats);
    write_last_error(json, engine);
    json_put_double(json, "retry_budget", engine->retries.tokens);
}

static void write_state(struct json_write *json, const struct engines *engines, const struct engine *engine)
{
    char why[ENGINE_SENTENCE_BYTES];
    int64_t next_at_us;
    const char *next = next_of(engine, &next_at_us);

    engine_say_why(engines, engine, why);
    json_put_string(json, "state", engine_state_names[engine_shown_state(engine)]);
    put_word(json, "why", why);
    put_moment(json, "since", engine->since_us);
    json_put_string(json, "next", next);
    put_moment(json, "next_at", next_at_us);
}

void engine_write(struct json_write *json, const struct engines *engines, const struct engine *engine)
{
    json_object_begin(json);
    json_put_string(json, "name", engine->name);
    json_put_string(json, "pool", named_pool_name(engine->pool));
    json_put_string(json, "url", engine->url);
    json_put_string(json, "kind", engine->adapter ? engine->adapter->kind : NULL);
    put_word(json, "model", engine->model);
    json_put_string(json, "source", engine->source == ENGINE_OF_API ? "api" : "settings");
    json_put_bool(json, "removed", engine->removed);
    write_state(json, engines, engine);
    write_facts(json, engine);
    write_work(json, engine);
    put_moment(json, "probed_at", engine->probed_at_us);
    json_put_int(json, "restarts", (int64_t)engine->restarts);
    json_object_end(json);
}

/* --- Prometheus: the only label from outside is an engine's name, which is of A-Z a-z 0-9 . _ - ---------------- */

static void put_line(struct buffer *out, const char *format, ...) _printf_(2, 3);

static void put_line(struct buffer *out, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    buffer_append(out, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

static int64_t in_flight_of(const struct engine *engine)
{
    return (int64_t)engine->in_flight;
}

static int64_t limit_of(const struct engine *engine)
{
    return (int64_t)engine->in_flight_limit;
}

static int64_t requests_of(const struct engine *engine)
{
    return (int64_t)engine_stats(engine)->requests;
}

static int64_t samples_of(const struct engine *engine)
{
    return (int64_t)engine_stats(engine)->samples;
}

static int64_t retries_of(const struct engine *engine)
{
    return (int64_t)engine_stats(engine)->retries;
}

static int64_t restarts_of(const struct engine *engine)
{
    return (int64_t)engine->restarts;
}

static int64_t usable_of(const struct engine *engine)
{
    enum engine_state state = engine_shown_state(engine);
    return state == ENGINE_UP || state == ENGINE_COOLING || state == ENGINE_HALF_OPEN;
}

static const struct {
    const char *name;
    const char *kind;
    const char *help;
    int64_t (*value)(const struct engine *engine);
} engine_rows[] = {
    {"rolloutd_engine_usable", "gauge", "1 if the engine may get work.", usable_of},
    {"rolloutd_engine_in_flight", "gauge", "Requests at the engine.", in_flight_of},
    {"rolloutd_engine_in_flight_limit", "gauge", "Requests that the engine gets at once.", limit_of},
    {"rolloutd_engine_samples_sent_total", "counter", "Samples asked of the engine.", requests_of},
    {"rolloutd_engine_samples_total", "counter", "Samples that the engine gave.", samples_of},
    {"rolloutd_engine_repeats_total", "counter", "Samples asked of the engine that had failed before.", retries_of},
    {"rolloutd_engine_restarts_total", "counter", "How often the engine came back.", restarts_of},
};

static void put_family(struct buffer *out, const char *name, const char *kind, const char *help)
{
    put_line(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void write_failure_metrics(struct pool *pool, struct buffer *out)
{
    static const char name[] = "rolloutd_engine_failed_samples_total";
    put_family(out, name, "counter", "Samples that the engine did not give, by code.");
    for (size_t i = 0; i < pool_count(pool); i++)
        for (size_t code = 0; code < SAMPLE_FAILURE_COUNT; code++)
            put_line(out, "%s{engine=\"%s\",code=\"%s\"} %lld\n", name, pool_at(pool, i)->name,
                     sample_failure_names[code], (long long)engine_stats(pool_at(pool, i))->failures[code]);
}

static void write_state_metrics(struct pool *pool, struct buffer *out)
{
    static const char name[] = "rolloutd_engine_state";
    put_family(out, name, "gauge", "1 for the state that the engine is in.");
    for (size_t i = 0; i < pool_count(pool); i++)
        for (size_t state = 0; state < ENGINE_STATE_COUNT; state++)
            put_line(out, "%s{engine=\"%s\",state=\"%s\"} %d\n", name, pool_at(pool, i)->name,
                     engine_state_names[state], engine_shown_state(pool_at(pool, i)) == state);
}

void engines_write_metrics(const struct engines *engines, struct buffer *out)
{
    struct pool *pool = engines->pool;
    for (size_t row = 0; row < ARRAY_LENGTH(engine_rows); row++) {
        put_family(out, engine_rows[row].name, engine_rows[row].kind, engine_rows[row].help);
        for (size_t i = 0; i < pool_count(pool); i++)
            put_line(out, "%s{engine=\"%s\"} %lld\n", engine_rows[row].name, pool_at(pool, i)->name,
                     (long long)engine_rows[row].value(pool_at(pool, i)));
    }
    write_state_metrics(pool, out);
    write_failure_metrics(pool, out);
}
