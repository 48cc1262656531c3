#include "client/pool.h"
#include "client/probe.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

#define IN_FLIGHT_DEFAULT 256
#define FAULTS_UNTIL_DOWN 3 /* timeouts and errors of its own, in a row */

const char *const engine_state_names[] = {
    [ENGINE_UNKNOWN] = "unknown",
    [ENGINE_UP] = "up",
    [ENGINE_COOLING] = "cooling",
    [ENGINE_DOWN] = "down",
};

struct pool {
    struct engine *engines;
    size_t count;
    uint64_t picks;
};

/* --- settings ------------------------------------------------------------------------------------ */

static bool is_plain_ascii(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* Scheme and host, perhaps a port and a path; no user, query or fragment. */
static bool url_is_usable(const char *url)
{
    const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : strncmp(url, "https://", 8) == 0 ? url + 8 : NULL;

    return host && *host && *host != '/' && *host != ':' && is_plain_ascii(url) && !strpbrk(host, "@?#\"<>\\^`{|}");
}

static char *copy_url(const char *url)
{
    size_t length_bytes = strlen(url);

    while (length_bytes && url[length_bytes - 1] == '/')
        length_bytes--;
    return xstrndup(url, length_bytes);
}

static const char *refuse_settings(const struct pool_engine *settings)
{
    if (!settings->url || !url_is_usable(settings->url))
        return "is no http:// or https:// URL of a host (without user, query and fragment)";
    if (settings->kind && !engine_adapter_find(text_of(settings->kind)))
        return "has a kind that is not known";
    if (settings->token && (!*settings->token || !is_plain_ascii(settings->token)))
        return "has a token with characters that a header cannot carry";
    if (settings->name && (!*settings->name || strlen(settings->name) >= sizeof(((struct engine *)0)->name) ||
                           !is_plain_ascii(settings->name)))
        return "has a name that is empty, too long or not plain ASCII";
    return NULL;
}

static void engine_init(struct engine *engine, const struct pool_engine *settings, size_t index)
{
    if (settings->name)
        snprintf(engine->name, sizeof(engine->name), "%s", settings->name);
    else
        snprintf(engine->name, sizeof(engine->name), "e%zu", index + 1);
    engine->url = copy_url(settings->url);
    engine->token = settings->token ? xstrdup(settings->token) : NULL;
    engine->model = settings->model ? xstrdup(settings->model) : NULL;
    engine->model_is_set = settings->model;
    engine->adapter = settings->kind ? engine_adapter_find(text_of(settings->kind)) : NULL;
    engine->in_flight_setting = settings->in_flight_limit ? settings->in_flight_limit : IN_FLIGHT_DEFAULT;
    engine->in_flight_limit = engine->in_flight_setting;
}

struct pool *pool_create(const struct pool_engine *settings, size_t count, char ret_message[200])
{
    struct pool *pool;

    if (count > POOL_ENGINES_MAX) {
        snprintf(ret_message, 200, "there are %zu engines, more than %d", count, POOL_ENGINES_MAX);
        return NULL;
    }
    pool = xcalloc(1, sizeof(*pool));
    pool->engines = xcalloc(count ? count : 1, sizeof(*pool->engines));
    for (size_t i = 0; i < count; i++) {
        const char *refusal = refuse_settings(&settings[i]);

        if (!refusal) {
            engine_init(&pool->engines[i], &settings[i], i);
            if (pool_find(pool, text_of(pool->engines[i].name)))
                refusal = "has the name of another";
            pool->count = i + 1;
        }
        if (refusal) {
            snprintf(ret_message, 200, "engine %zu (%.100s) %s", i + 1, settings[i].url ? settings[i].url : "no URL",
                     refusal);
            pool_destroy(pool);
            return NULL;
        }
    }
    return pool;
}

void pool_destroy(struct pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->count; i++) {
        free(pool->engines[i].url);
        free(pool->engines[i].token);
        free(pool->engines[i].model);
    }
    free(pool->engines);
    free(pool);
}

size_t pool_count(const struct pool *pool)
{
    return pool->count;
}

struct engine *pool_at(struct pool *pool, size_t index)
{
    return &pool->engines[index];
}

struct engine *pool_find(struct pool *pool, struct text name)
{
    for (struct engine *engine = pool->engines; engine < pool->engines + pool->count; engine++)
        if (text_equals(name, engine->name))
            return engine;
    return NULL;
}

size_t pool_in_flight_limit(const struct pool *pool)
{
    size_t sum = 0;

    for (size_t i = 0; i < pool->count; i++)
        sum += pool->engines[i].in_flight_setting;
    return sum;
}

/* --- picking ------------------------------------------------------------------------------------- */

static bool is_usable(struct engine *engine, int64_t now_us)
{
    if (engine->state == ENGINE_COOLING && engine->paused_until_us <= now_us)
        engine->state = ENGINE_UP;
    return engine->state == ENGINE_UP;
}

/* Less of its limit in use; then the one that was picked longest ago. */
static bool is_better(const struct engine *left, const struct engine *right)
{
    size_t left_load = left->in_flight * right->in_flight_limit;
    size_t right_load = right->in_flight * left->in_flight_limit;

    return left_load != right_load ? left_load < right_load : left->picked < right->picked;
}

static bool is_sound(const struct engine *engine)
{
    return (engine->state == ENGINE_UP || engine->state == ENGINE_COOLING) && engine->doubts < POOL_DOUBTS_MAX;
}

bool pool_has_another(const struct pool *pool, const struct engine *engine)
{
    for (size_t i = 0; i < pool->count; i++)
        if (&pool->engines[i] != engine && is_sound(&pool->engines[i]))
            return true;
    return false;
}

/* `avoid`: where the sample to be sent has failed before. */
static bool is_spared(const struct pool *pool, const struct engine *engine, const struct engine *avoid, int64_t now_us)
{
    return engine->doubts >= POOL_DOUBTS_MAX &&
           (engine == avoid || engine->in_flight > 0 || now_us < engine->trial_at_us) && pool_has_another(pool, engine);
}

static struct engine *best_engine(struct pool *pool, const struct engine *avoid, bool strictly, int64_t now_us)
{
    struct engine *best = NULL;

    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = &pool->engines[i];

        if (is_usable(engine, now_us) && !(strictly && engine == avoid) &&
            engine->in_flight < engine->in_flight_limit && !is_spared(pool, engine, avoid, now_us) &&
            (!best || is_better(engine, best)))
            best = engine;
    }
    return best;
}

/* When an engine that is not up, or is spared, may be picked. */
static int64_t usable_at_us(const struct engine *engine, const struct engine *avoid)
{
    if (engine->state != ENGINE_UP)
        return engine->probing ? NEVER_US : engine->paused_until_us;
    return engine == avoid || engine->in_flight > 0 ? NEVER_US : engine->trial_at_us;
}

/* Why there is none. */
static enum pool_answer answer_without(struct pool *pool, const struct engine *avoid, int64_t now_us,
                                       struct engine **ret_engine, int64_t *ret_at_us)
{
    bool one_may_come = false;

    *ret_at_us = NEVER_US;
    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = &pool->engines[i];

        if (engine->state == ENGINE_UP && !is_spared(pool, engine, avoid, now_us))
            return POOL_BUSY;
        if (usable_at_us(engine, avoid) < *ret_at_us)
            *ret_at_us = usable_at_us(engine, avoid);
        if (engine->state != ENGINE_DOWN)
            one_may_come = true;
        else if (!*ret_engine || engine->paused_until_us > (*ret_engine)->paused_until_us)
            *ret_engine = engine;
    }
    if (one_may_come)
        *ret_engine = NULL;
    return one_may_come ? POOL_WAIT : POOL_DOWN;
}

enum pool_answer pool_pick(struct pool *pool, const struct engine *avoid, int64_t now_us, struct engine **ret_engine,
                           int64_t *ret_at_us)
{
    struct engine *best = best_engine(pool, avoid, true, now_us);

    *ret_at_us = now_us;
    *ret_engine = NULL;
    if (!pool->count)
        return POOL_NONE;
    if (!best && avoid)
        best = best_engine(pool, avoid, false, now_us);
    if (!best)
        return answer_without(pool, avoid, now_us, ret_engine, ret_at_us);
    best->picked = ++pool->picks;
    *ret_engine = best;
    return POOL_PICKED;
}

/* --- health -------------------------------------------------------------------------------------- */

static int64_t pause_us(unsigned failures)
{
    unsigned doublings = failures > 1 ? failures - 1 : 0;

    return doublings > 10 || POOL_PAUSE_MIN_US << doublings > POOL_PAUSE_MAX_US ? POOL_PAUSE_MAX_US
                                                                                : POOL_PAUSE_MIN_US << doublings;
}

int64_t engine_pause_us(const struct engine *engine)
{
    return pause_us(engine->failures);
}

static void take_down(struct engine *engine, int64_t now_us)
{
    engine->state = ENGINE_DOWN;
    engine->paused_until_us = now_us + engine_pause_us(engine);
}

/* The many that were in flight when it began to refuse count once. */
static void cool_down(struct engine *engine, int64_t asked_us, int64_t now_us)
{
    bool pausing = engine->state == ENGINE_COOLING && engine->paused_until_us > now_us;
    int64_t until_us;

    if (engine->state == ENGINE_DOWN)
        return;
    engine->failures += !pausing;
    until_us = now_us + (asked_us > 0 ? asked_us : engine_pause_us(engine));
    if (!pausing || (asked_us > 0 && until_us > engine->paused_until_us))
        engine->paused_until_us = until_us;
    engine->state = ENGINE_COOLING;
}

/* Whatever the request may have had to do with it: a sound engine gives samples between such failures. */
static void doubt(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    if (error->code == SAMPLE_ENGINE_OVERLOADED)
        return;
    engine->doubts++;
    if (engine->doubts >= POOL_DOUBTS_MAX && now_us >= engine->trial_at_us) /* the many in flight count once */
        engine->trial_at_us = now_us + pause_us(++engine->trials);
}

void engine_failed(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    bool is_fault = error->code == SAMPLE_ENGINE_TIMEOUT || error->code == SAMPLE_ENGINE_UNREACHABLE ||
                    (error->code == SAMPLE_ENGINE_ERROR && error->retryable);

    engine->last_error = *error;
    doubt(engine, error, now_us);
    if (error->code == SAMPLE_ENGINE_OVERLOADED || error->retry_after_us > 0) {
        cool_down(engine, error->retry_after_us, now_us);
    } else if (engine->state == ENGINE_DOWN) {
        return;
    } else if (error->not_connected) {
        engine->failures++;
        take_down(engine, now_us);
    } else if (is_fault && ++engine->failures >= FAULTS_UNTIL_DOWN) {
        engine->failures = 1;
        take_down(engine, now_us);
    }
}

void pool_begin(struct pool *pool, struct engine *engine)
{
    (void)pool;
    engine->in_flight++;
}

void pool_end_cancelled(struct pool *pool, struct engine *engine)
{
    (void)pool;
    engine->in_flight--;
}

void pool_end(struct pool *pool, struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    pool_end_cancelled(pool, engine);
    if (!error)
        engine->doubts = engine->trials = 0;
    if (error)
        engine_failed(engine, error, now_us);
    else if (engine->state == ENGINE_UP)
        engine->failures = 0;
}
