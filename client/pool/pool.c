#include "client/pool/pool_private.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

const char *const engine_state_names[] = {ENGINE_STATE_WORDS(WORD_TEXT) NULL};

/* --- settings ------------------------------------------------------------------------------------ */

static bool is_plain_ascii(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static bool is_name(const char *name)
{
    return *name && strlen(name) < POOL_NAME_BYTES && is_plain_ascii(name);
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
    if (settings->name && !is_name(settings->name))
        return "has a name that is empty, too long or not plain ASCII";
    if (settings->pool && !is_name(settings->pool))
        return "has a pool whose name is empty, too long or not plain ASCII";
    return NULL;
}

/* splitmix64's */
uint64_t hash_mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash_mix(hash);
}

static struct engine *engine_create(struct pool *pool, const struct pool_engine *settings)
{
    struct engine *engine = xcalloc(1, sizeof(*engine));

    if (settings->name)
        snprintf(engine->name, sizeof(engine->name), "%s", settings->name);
    else
        snprintf(engine->name, sizeof(engine->name), "e%zu", pool->count + 1);
    engine->owner = pool;
    engine->name_hash = hash_name(engine->name);
    engine->pool = pool_named(pool, text_of(settings->pool ? settings->pool : POOL_DEFAULT));
    engine->url = copy_url(settings->url);
    engine->token = settings->token ? xstrdup(settings->token) : NULL;
    engine->model = settings->model ? xstrdup(settings->model) : NULL;
    engine->model_is_set = settings->model;
    engine->kind_is_set = settings->kind;
    engine->adapter = settings->kind ? engine_adapter_find(text_of(settings->kind)) : NULL;
    engine->shared = settings->shared;
    engine->unasked = settings->unasked || !engine_kind_samples(settings->kind);
    engine->state = engine->unasked ? ENGINE_UP : ENGINE_UNKNOWN;
    engine->source = settings->source;
    engine->in_flight_setting = settings->in_flight_limit;
    engine->in_flight_learned = settings->in_flight_learned;
    engine_limit_init(engine);
    engine->retries = RETRY_BUDGET_NEW;
    return engine;
}

static void engine_destroy(struct engine *engine)
{
    free(engine->url);
    free(engine->token);
    free(engine->model);
    engine_probe_finish(engine);
    free(engine);
}

/* --- life ---------------------------------------------------------------------------------------- */

struct pool *pool_create(const struct pool_engine *settings, size_t count, char ret_message[POOL_MESSAGE_BYTES])
{
    struct pool *pool = xcalloc(1, sizeof(*pool));

    pool->rules = POOL_RULES_DEFAULT;
    pool_named(pool, text_of(POOL_DEFAULT));
    for (size_t i = 0; i < count; i++) {
        if (!pool_add(pool, &settings[i], ret_message)) {
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
    for (size_t i = 0; i < pool->count; i++)
        engine_destroy(pool->engines[i]);
    for (size_t i = 0; i < pool->removed_count; i++)
        engine_destroy(pool->removed[i]);
    for (size_t i = 0; i < pool->named_count; i++)
        free(pool->named[i]);
    free(pool->removed);
    free(pool->named);
    free(pool);
}

void pool_set_rules(struct pool *pool, const struct pool_rules *rules)
{
    pool->rules = *rules;
}

/* --- at run time --------------------------------------------------------------------------------- */

struct engine *pool_add(struct pool *pool, const struct pool_engine *settings, char ret_message[POOL_MESSAGE_BYTES])
{
    const char *refusal = refuse_settings(settings);
    struct engine *engine;

    if (!refusal && pool->count == POOL_ENGINES_MAX)
        refusal = "is one more than a pool takes";
    if (!refusal) {
        engine = engine_create(pool, settings);
        if (!pool_find(pool, text_of(engine->name))) {
            pool->engines[pool->count++] = engine;
            engine->pool->count++;
            return engine;
        }
        refusal = "has the name of another";
        engine_destroy(engine);
    }
    snprintf(ret_message, POOL_MESSAGE_BYTES, "engine %zu (%.80s) %s", pool->count + 1,
             settings->url ? settings->url : "no URL", refusal);
    return NULL;
}

static bool same_text(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

bool engine_is_as(const struct engine *engine, const struct pool_engine *settings)
{
    _cleanup_free_ char *url = copy_url(settings->url);
    const char *kind = engine->kind_is_set ? engine->adapter->kind : NULL;

    return strcmp(url, engine->url) == 0 && same_text(kind, settings->kind) &&
           same_text(engine->model_is_set ? engine->model : NULL, settings->model) &&
           strcmp(engine->pool->name, settings->pool ? settings->pool : POOL_DEFAULT) == 0;
}

void pool_change(struct pool *pool, struct engine *engine, const struct pool_engine *settings)
{
    (void)pool;
    if (!same_text(engine->token, settings->token)) {
        free(engine->token);
        engine->token = settings->token ? xstrdup(settings->token) : NULL;
    }
    engine->shared = settings->shared;
    engine->source = settings->source;
    if (engine->in_flight_setting != settings->in_flight_limit ||
        engine->in_flight_learned != settings->in_flight_learned) {
        engine->in_flight_setting = settings->in_flight_limit;
        engine->in_flight_learned = settings->in_flight_learned;
        engine_limit_init(engine);
    }
}

void pool_drain(struct pool *pool, struct engine *engine, bool draining)
{
    (void)pool;
    engine->draining = draining;
}

void pool_remove(struct pool *pool, struct engine *engine)
{
    if (engine->removed)
        return;
    for (size_t i = 0; i < pool->count; i++)
        if (pool->engines[i] == engine) {
            memmove(&pool->engines[i], &pool->engines[i + 1], (pool->count - i - 1) * sizeof(struct engine *));
            break;
        }
    pool->count--;
    engine->pool->count--;
    engine->removed = true;
    for (size_t i = 0; i < HOMES; i++)
        if (pool->homes[i].engine == engine)
            pool->homes[i] = (struct home){0};
    pool->removed = xrealloc(pool->removed, (pool->removed_count + 1) * sizeof(struct engine *));
    pool->removed[pool->removed_count++] = engine;
}

size_t pool_removed_count(const struct pool *pool)
{
    return pool->removed_count;
}

struct engine *pool_removed_at(struct pool *pool, size_t index)
{
    return pool->removed[index];
}

void pool_reap(struct pool *pool)
{
    size_t kept = 0;

    for (size_t i = 0; i < pool->removed_count; i++) {
        struct engine *engine = pool->removed[i];

        if (engine->in_flight > 0 || engine->probing || engine->holds > 0)
            pool->removed[kept++] = engine;
        else
            engine_destroy(engine);
    }
    pool->removed_count = kept;
}

void engine_hold(struct engine *engine)
{
    if (engine)
        engine->holds++;
}

void engine_release(struct engine *engine)
{
    if (engine)
        engine->holds--;
}

enum engine_state engine_shown_state(const struct engine *engine)
{
    if (engine->draining || engine->removed)
        return ENGINE_DRAINING;
    return engine->state == ENGINE_UNKNOWN && engine->probing ? ENGINE_PROBING : engine->state;
}

/* --- looking ------------------------------------------------------------------------------------- */

size_t pool_count(const struct pool *pool)
{
    return pool->count;
}

struct engine *pool_at(struct pool *pool, size_t index)
{
    return pool->engines[index];
}

struct engine *pool_find(struct pool *pool, struct text name)
{
    for (size_t i = 0; i < pool->count; i++)
        if (text_equals(name, pool->engines[i]->name))
            return pool->engines[i];
    return NULL;
}

size_t pool_in_flight_limit(const struct pool *pool)
{
    size_t sum = 0;

    for (size_t i = 0; i < pool->count; i++)
        sum += pool->engines[i]->in_flight_setting;
    return sum;
}

/* --- named pools --------------------------------------------------------------------------------- */

struct named_pool *pool_named_find(struct pool *pool, struct text name)
{
    for (size_t i = 0; i < pool->named_count; i++)
        if (text_equals(name, pool->named[i]->name))
            return pool->named[i];
    return NULL;
}

struct named_pool *pool_named(struct pool *pool, struct text name)
{
    struct named_pool *named = pool_named_find(pool, name);

    if (named)
        return named;
    named = xcalloc(1, sizeof(*named));
    snprintf(named->name, sizeof(named->name), "%.*s", (int)name.length_bytes, name.data);
    pool->named = xrealloc(pool->named, (pool->named_count + 1) * sizeof(struct named_pool *));
    pool->named[pool->named_count++] = named;
    return named;
}

const char *named_pool_name(const struct named_pool *named)
{
    return named->name;
}

size_t named_pool_count(const struct named_pool *named)
{
    return named->count;
}

bool pool_named_is_shared(const struct pool *pool, const struct named_pool *named)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->engines[i]->pool == named && !pool->engines[i]->shared)
            return false;
    return named->count > 0;
}
