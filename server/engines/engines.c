/* The list of engines: those of the settings, and those from PUT. */
#include "server/engines/engines.h"

#include "client/adapters/adapter.h"
#include "server/base/clock.h"
#include "server/base/log.h"

#include <stdio.h>

/* --- engines from PUT ---------------------------------------------------------------------- */

struct known_engine *known_engine_create(struct text name)
{
    struct known_engine *known = xcalloc(1, sizeof(*known));
    known->name = xstrndup(name.data, name.length_bytes);
    known->in_flight = -1;
    return known;
}

static char *copy_or_null(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct known_engine *known_engine_copy(const struct known_engine *known)
{
    struct known_engine *copy = xcalloc(1, sizeof(*copy));
    *copy = *known;
    copy->name = xstrdup(known->name);
    copy->url = copy_or_null(known->url);
    copy->kind = copy_or_null(known->kind);
    copy->model = copy_or_null(known->model);
    copy->pool = copy_or_null(known->pool);
    copy->token_name = copy_or_null(known->token_name);
    copy->token = copy_or_null(known->token);
    copy->hh = (UT_hash_handle){0};
    return copy;
}

void known_engine_destroy(struct known_engine *known)
{
    if (!known)
        return;
    free(known->name);
    free(known->url);
    free(known->kind);
    free(known->model);
    free(known->pool);
    free(known->token_name);
    free(known->token);
    free(known);
}

struct known_engine *engines_known(struct engines *engines, struct text name)
{
    struct known_engine *known;
    HASH_FIND(hh, engines->known, name.data, name.length_bytes, known);
    return known;
}

/* --- the pool follows ---------------------------------------------------------------------------------- */

static struct pool_engine of_known(const struct known_engine *known)
{
    return (struct pool_engine){.name = known->name,
                                .pool = known->pool,
                                .url = known->url,
                                .kind = known->kind,
                                .model = known->model,
                                .token = known->token,
                                .in_flight_limit = known->in_flight > 0 ? (size_t)known->in_flight : 0,
                                .in_flight_learned = known->in_flight == 0,
                                .shared = known->shared,
                                .source = ENGINE_OF_API};
}

static struct pool_engine of_settings(const struct engine_settings *settings)
{
    return (struct pool_engine){.name = settings->name,
                                .pool = settings->pool,
                                .url = settings->url,
                                .kind = settings->kind,
                                .model = settings->model,
                                .token = settings->token,
                                .in_flight_limit = (size_t)settings->in_flight,
                                .in_flight_learned = settings->in_flight == 0,
                                .shared = settings->shared,
                                .source = ENGINE_OF_SETTINGS};
}

/* One that is the same stays, with what is known of it; another takes the place of the old one, which ends what it
 * has. NULL: it cannot be (there are too many). */
static struct engine *place(struct pool *pool, const struct pool_engine *wanted)
{
    char message[POOL_MESSAGE_BYTES];
    struct engine *engine = pool_find(pool, text_of(wanted->name));

    if (engine && engine_is_as(engine, wanted)) {
        pool_change(pool, engine, wanted);
        return engine;
    }
    if (engine) {
        log_event(LOG_LEVEL_INFO, "engine replaced", "engine", engine->name, "url", engine->url, NULL);
        pool_remove(pool, engine);
    }
    engine = pool_add(pool, wanted, message);
    if (engine)
        log_event(LOG_LEVEL_INFO, "engine added", "engine", engine->name, "url", engine->url, "pool",
                  named_pool_name(engine->pool), NULL);
    else
        log_event(LOG_LEVEL_ERROR, "engine not added", "engine", wanted->name, "why", message, NULL);
    return engine;
}

static void take_out(struct pool *pool, struct engine *engine)
{
    log_event(LOG_LEVEL_INFO, "engine removed", "engine", engine->name, "url", engine->url, NULL);
    pool_remove(pool, engine);
}

/* A pool has scorers alone, or none. The first one there has it, and engines of the settings come first. */
static const struct engine *in_the_way(struct pool *pool, const struct known_engine *known)
{
    const char *wanted = known->pool ? known->pool : POOL_DEFAULT;
    bool samples = engine_kind_samples(known->kind);

    for (size_t i = 0; i < pool_count(pool); i++) {
        const struct engine *other = pool_at(pool, i);
        if (other->unasked == samples && strcmp(named_pool_name(other->pool), wanted) == 0 &&
            strcmp(other->name, known->name) != 0)
            return other;
    }
    return NULL;
}

static void leave_out(struct pool *pool, struct engine *engine, const struct known_engine *known,
                      const struct engine *other)
{
    log_event(
        LOG_LEVEL_ERROR, "engine not added", "engine", known->name, "why",
        "a pool has scorers alone, or none: it waits on record until the settings are read again without the other",
        "other", other->name, NULL);
    if (engine)
        take_out(pool, engine);
}

static void follow(struct engines *engines, const struct known_engine *known)
{
    struct pool *pool = engines->pool;
    struct engine *engine = pool_find(pool, text_of(known->name));
    const struct engine *other;

    if (known->url && !(engine && engine->source == ENGINE_OF_SETTINGS)) {
        other = in_the_way(pool, known);
        if (other) {
            leave_out(pool, engine, known, other);
            return;
        }
        struct pool_engine wanted = of_known(known);
        engine = place(pool, &wanted);
    }
    if (engine)
        pool_drain(pool, engine, known->draining);
}

/* After the pool has changed: it must be looked at, and batches may have waited for it. */
static void go_on(struct engines *engines)
{
    pool_reap(engines->pool);
    if (!engines->transport)
        return;
    transport_keep_connections(engines->transport, pool_in_flight_limit(engines->pool) + 8);
    engines_probe(engines);
    if (engines->changed)
        engines->changed(engines->changed_arg);
}

static void remember(struct engines *engines, struct known_engine *known)
{
    struct known_engine *before = engines_known(engines, text_of(known->name));
    if (before) {
        HASH_DEL(engines->known, before);
        known_engine_destroy(before);
    }
    HASH_ADD_KEYPTR(hh, engines->known, known->name, strlen(known->name), known);
}

void engines_put(struct engines *engines, struct known_engine *known)
{
    remember(engines, known);
    follow(engines, known);
    go_on(engines);
}

void engines_forget(struct engines *engines, struct text name)
{
    struct known_engine *known = engines_known(engines, name);
    struct pool *pool = engines->pool;
    struct engine *engine = pool_find(pool, name);

    if (engine && engine->source == ENGINE_OF_API)
        take_out(pool, engine);
    else if (engine)
        pool_drain(pool, engine, false);
    if (known) {
        HASH_DEL(engines->known, known);
        known_engine_destroy(known);
    }
    go_on(engines);
}

static bool settings_name(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->engine_count; i++)
        if (strcmp(settings->engines[i].name, name) == 0)
            return true;
    return false;
}

void engines_follow_settings(struct engines *engines, const struct settings *settings)
{
    struct pool *pool = engines->pool;
    struct known_engine *known;
    struct known_engine *next;

    for (size_t i = pool_count(pool); i-- > 0;) {
        struct engine *engine = pool_at(pool, i);
        if (engine->source == ENGINE_OF_SETTINGS && !settings_name(settings, engine->name))
            take_out(pool, engine);
    }
    for (size_t i = 0; i < settings->engine_count; i++) {
        struct pool_engine wanted = of_settings(&settings->engines[i]);
        place(pool, &wanted);
    }
    HASH_ITER(hh, engines->known, known, next)
    {
        follow(engines, known);
    }
    go_on(engines);
}

/* --- start and end --------------------------------------------------------------------------------------- */

static struct known_engine *of_record(const struct store_engine *row)
{
    struct known_engine *known = known_engine_create(row->name);
    known->url = row->url.data ? xstrdup(row->url.data) : NULL;
    known->kind = row->kind.data ? xstrdup(row->kind.data) : NULL;
    known->model = row->model.data ? xstrdup(row->model.data) : NULL;
    known->pool = row->pool.data ? xstrdup(row->pool.data) : NULL;
    known->token_name = row->token_name.data ? xstrdup(row->token_name.data) : NULL;
    known->in_flight = row->in_flight;
    known->shared = row->shared;
    known->draining = row->draining;
    return known;
}

static void read_token(struct engines *engines, struct known_engine *known)
{
    char message[256];
    if (known->token_name && engine_token_read(engines->uses.settings, known->token_name, &known->token, message) < 0)
        log_event(LOG_LEVEL_ERROR, "the key of an engine cannot be read", "engine", known->name, "why", message, NULL);
}

static bool read_record(struct engines *engines, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    struct store_engines rows = {0};
    struct store_reader *reader = store_reader_create(engines->uses.store, ret_message);
    if (!reader)
        return false;
    enum store_status status = store_list_engines(reader, &rows);
    for (size_t i = 0; status == STORE_OK && i < rows.count; i++) {
        struct known_engine *known = of_record(&rows.engines[i]);
        read_token(engines, known);
        remember(engines, known);
        follow(engines, known);
    }
    store_engines_finish(&rows);
    store_reader_destroy(reader);
    if (status != STORE_OK)
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "the engines on record cannot be read");
    return status == STORE_OK;
}

struct engines *engines_create(const struct engines_options *options, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    const struct settings *settings = options->settings;
    _cleanup_free_ struct pool_engine *wanted = xcalloc(settings->engine_count + 1, sizeof(*wanted));
    struct engines *engines = xcalloc(1, sizeof(*engines));

    engines->uses = *options;
    engines->settings_read_at_us = engines->settings_tried_at_us = clock_utc_us();
    engines_note_settings(engines, settings);
    for (size_t i = 0; i < settings->engine_count; i++)
        wanted[i] = of_settings(&settings->engines[i]);
    engines->pool = pool_create(wanted, settings->engine_count, ret_message);
    if (engines->pool && read_record(engines, ret_message))
        return engines;
    engines_destroy(engines);
    return NULL;
}

void engines_connect(struct engines *engines, struct transport *transport)
{
    engines->transport = transport;
}

void engines_subscribe(struct engines *engines, void (*changed)(void *arg), void *arg)
{
    engines->changed = changed;
    engines->changed_arg = arg;
}

void engines_destroy(struct engines *engines)
{
    struct known_engine *known;
    struct known_engine *next;
    if (!engines)
        return;
    engines_reload_forget(engines);
    engines_forget_probes(engines);
    HASH_ITER(hh, engines->known, known, next)
    {
        HASH_DEL(engines->known, known);
        known_engine_destroy(known);
    }
    pool_destroy(engines->pool);
    engines_forget_settings(engines);
    free(engines);
}
