/* The choice of the engine for the next sample. */
#include "client/pool/pool_private.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

#define TRIAL_PATIENCE_US INT64_C(5000000)
#define SPILL_RATIO 1.5 /* of the mean share; more goes to another engine */
#define HOME_KEPT_US INT64_C(600000000)
#define LOOK_AGAIN_US INT64_C(1000000)
#define IDLE_SHARE 0.125 /* of its limit: an engine so idle is never too busy for its prefixes */

static bool belongs(const struct engine *engine, const struct named_pool *named)
{
    return engine->pool == named;
}

bool pool_has_another(const struct pool *pool, const struct engine *engine)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->engines[i] != engine && belongs(pool->engines[i], engine->pool) && engine_is_sound(pool->engines[i]))
            return true;
    return false;
}

/* The same, for this sample. */
static bool has_another(const struct pool *pool, const struct engine *engine, const struct pool_want *want)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->engines[i] != engine && engine_suits(pool->engines[i], want) && engine_is_sound(pool->engines[i]))
            return true;
    return false;
}

/* --- half open ----------------------------------------------------------------------------------- */

/* The only engine of its pool may take minutes for a sample: while its trial does not fail, more may follow. */
static size_t trial_room(const struct engine *engine, bool is_alone, int64_t now_us)
{
    int64_t began_us = engine->trial_began_us ? engine->trial_began_us : engine->since_us;
    int64_t doublings = (now_us - began_us) / TRIAL_PATIENCE_US;

    if (!is_alone)
        return 1;
    return (size_t)1 << (doublings < 0 ? 0 : doublings > 16 ? 16 : doublings);
}

/* A sample that is broken off before its usual time decides nothing; a probe can take the time. (Where probes have
 * shown nothing for as long as a pool is waited for, such samples go there after all: they shall not wait for ever.) */
static bool is_too_short(const struct pool *pool, const struct engine *engine, const struct pool_want *want,
                         int64_t now_us)
{
    return pool->rules.ask_samples && !engine->unasked && !engine_has_time(engine, want) &&
           now_us - engine->since_us < pool->rules.down_timeout_us;
}

/* Nothing for it now, though it has room. want->avoid: where the sample to be sent has failed before. */
static bool is_spared(const struct pool *pool, const struct engine *engine, const struct pool_want *want,
                      int64_t now_us)
{
    bool is_alone = !has_another(pool, engine, want);

    if (engine->state != ENGINE_HALF_OPEN || (is_alone && !engine->broken))
        return false;
    return (engine == want->avoid && !is_alone) || now_us < engine->trial_at_us || engine->trial_by_probe ||
           engine->in_flight >= trial_room(engine, is_alone, now_us) || is_too_short(pool, engine, want, now_us);
}

static bool has_room(const struct pool *pool, const struct engine *engine, const struct pool_want *want, int64_t now_us)
{
    return engine_is_usable(engine) && engine->in_flight < engine->in_flight_limit &&
           !is_spared(pool, engine, want, now_us);
}

/* Of those whose trial is due, and cannot be this sample. */
static void ask_for_trials(struct pool *pool, const struct pool_want *want, int64_t now_us)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];

        if (engine->state != ENGINE_HALF_OPEN || !belongs(engine, want->pool) || engine->draining || engine->probing ||
            engine->in_flight > 0 || now_us < engine->trial_at_us || !is_too_short(pool, engine, want, now_us) ||
            (!engine->broken && !has_another(pool, engine, want)))
            continue;
        engine->trial_by_probe = pool->wants_probe = true;
    }
}

/* --- the least loaded ---------------------------------------------------------------------------- */

/* Less of its limit in use; then the one that was picked longest ago. */
static bool is_better(const struct engine *left, const struct engine *right)
{
    size_t left_load = left->in_flight * right->in_flight_limit;
    size_t right_load = right->in_flight * left->in_flight_limit;

    return left_load != right_load ? left_load < right_load : left->picked < right->picked;
}

static struct engine *least_loaded(struct pool *pool, const struct pool_want *want, bool strictly, int64_t now_us)
{
    struct engine *best = NULL;

    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];

        if (engine_suits(engine, want) && !(strictly && engine == want->avoid) &&
            has_room(pool, engine, want, now_us) && (!best || is_better(engine, best)))
            best = engine;
    }
    return best;
}

/* A trial must not wait until the sound engines are busier than one that is idle. */
static struct engine *due_for_trial(struct pool *pool, const struct pool_want *want, int64_t now_us)
{
    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];

        if (engine->state == ENGINE_HALF_OPEN && engine_suits(engine, want) && engine != want->avoid &&
            has_another(pool, engine, want) && has_room(pool, engine, want, now_us))
            return engine;
    }
    return NULL;
}

/* --- affinity ------------------------------------------------------------------------------------ */

/* A pausing engine keeps its prefixes, though it gets no work now. */
static bool may_be_home(const struct engine *engine)
{
    return (engine->state == ENGINE_UP || engine->state == ENGINE_COOLING) && !engine->draining;
}

/* Rendezvous hashing: when an engine goes or comes, only its own prefixes move. `usable`: among those only that can
 * be a home now. */
static struct engine *rendezvous(const struct pool *pool, const struct pool_want *want, bool usable)
{
    struct engine *home = NULL;
    uint64_t highest = 0;

    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];
        uint64_t score = hash_mix(want->prefix ^ engine->name_hash);

        if (engine_suits(engine, want) && (!usable || may_be_home(engine)) && (!home || score > highest)) {
            home = engine;
            highest = score;
        }
    }
    return home;
}

/* The place of this prefix; or, if there is none, the one that may be taken for it. */
static struct home *place_of(struct pool *pool, const struct pool_want *want)
{
    uint64_t key = hash_mix(want->prefix);
    struct home *places = &pool->homes[key % (HOMES / HOMES_BESIDE) * HOMES_BESIDE];
    struct home *oldest = places;

    for (struct home *place = places; place < places + HOMES_BESIDE; place++) {
        if (place->engine && place->prefix == want->prefix && place->engine->pool == want->pool)
            return place;
        if (oldest->engine && (!place->engine || place->used_us < oldest->used_us))
            oldest = place;
    }
    return oldest;
}

/* More than its share of the requests in flight at the engines that could take this sample. */
static bool is_overloaded(const struct pool *pool, const struct engine *home, const struct pool_want *want)
{
    double in_flight = 1;
    double limit = 0;
    double own = (double)home->in_flight + 1;

    for (size_t i = 0; i < pool->count; i++)
        if (engine_suits(pool->engines[i], want) && may_be_home(pool->engines[i])) {
            in_flight += (double)pool->engines[i]->in_flight;
            limit += (double)pool->engines[i]->in_flight_limit;
        }
    return own > IDLE_SHARE * (double)home->in_flight_limit && own > 1 &&
           own * limit > SPILL_RATIO * in_flight * (double)home->in_flight_limit;
}

uint64_t pool_prefix(struct text prompt)
{
    uint64_t hash = prompt.length_bytes;

    for (size_t at = 0; at < prompt.length_bytes; at += sizeof(hash)) {
        size_t left_bytes = prompt.length_bytes - at;
        uint64_t word = 0;

        memcpy(&word, prompt.data + at, left_bytes < sizeof(word) ? left_bytes : sizeof(word));
        hash = hash_mix((hash ^ word) + UINT64_C(0x9e3779b97f4a7c15));
    }
    return hash ? hash : 1;
}

/* A prefix moves when its engine goes, and stays moved when that engine comes back: an engine that flaps must not take
 * its prefixes to and fro. The move is forgotten after HOME_KEPT_US without use, and is not noted where the first
 * engine has not sampled yet (at the start the first one that is probed would get all prefixes). */
static struct engine *find_home(struct pool *pool, const struct pool_want *want, int64_t now_us)
{
    struct home *place = place_of(pool, want);
    bool is_known = place->engine && place->prefix == want->prefix && engine_suits(place->engine, want) &&
                    now_us - place->used_us < HOME_KEPT_US;
    struct engine *home = is_known && may_be_home(place->engine) ? place->engine : rendezvous(pool, want, true);

    if (!home)
        return NULL;
    struct engine *first = rendezvous(pool, want, false);
    if (home != first && first->stats.samples > 0)
        *place = (struct home){.prefix = want->prefix, .engine = home, .used_us = now_us};
    else if (is_known)
        *place = (struct home){0};
    return home;
}

/* NULL: no home that can take it now. */
static struct engine *home_of(struct pool *pool, const struct pool_want *want, int64_t now_us)
{
    struct engine *home = find_home(pool, want, now_us);

    if (!home || !engine_suits(home, want) || home == want->avoid || !has_room(pool, home, want, now_us) ||
        is_overloaded(pool, home, want))
        return NULL;
    return home;
}

/* --- none ---------------------------------------------------------------------------------------- */

/* When an engine that cannot be picked now may be. */
static int64_t usable_at_us(const struct pool *pool, const struct engine *engine, const struct pool_want *want,
                            int64_t now_us)
{
    if (engine->draining)
        return NEVER_US;
    if (engine->state == ENGINE_COOLING)
        return engine->paused_until_us;
    if (engine->state != ENGINE_HALF_OPEN)
        return engine->probing ? NEVER_US : engine->paused_until_us;
    bool is_alone = !has_another(pool, engine, want);
    if ((engine == want->avoid && !is_alone) || (engine->in_flight > 0 && now_us >= engine->trial_at_us && !is_alone))
        return NEVER_US; /* the trial is not for this sample, or it runs */
    return now_us < engine->trial_at_us ? engine->trial_at_us : now_us + TRIAL_PATIENCE_US;
}

/* From when on an engine for this sample is missed. An engine that cannot take the sample says nothing about that,
 * however well it is. */
static int64_t missed_since_us(const struct pool *pool, const struct pool_want *want)
{
    int64_t since_us = want->since_us;
    bool others_usable = false;

    for (size_t i = 0; i < pool->count; i++) {
        const struct engine *engine = pool->engines[i];

        if (!engine_suits(engine, want)) {
            others_usable = others_usable || (belongs(engine, want->pool) && engine_is_usable(engine));
            continue;
        }
        since_us = engine->usable_us > since_us ? engine->usable_us : since_us;
        since_us = engine->lost_us > since_us ? engine->lost_us : since_us;
    }
    return !others_usable && want->pool->usable_us > since_us ? want->pool->usable_us : since_us;
}

static enum pool_answer answer_without(struct pool *pool, const struct pool_want *want, int64_t now_us,
                                       int64_t *ret_at_us)
{
    bool usable = false;

    *ret_at_us = NEVER_US;
    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];

        if (!engine_suits(engine, want))
            continue;
        if (engine->state == ENGINE_UP && engine_is_usable(engine))
            return POOL_BUSY;
        if (engine->state == ENGINE_HALF_OPEN && engine_is_usable(engine) && !is_spared(pool, engine, want, now_us))
            return POOL_BUSY;
        int64_t at_us = usable_at_us(pool, engine, want, now_us);
        *ret_at_us = at_us < *ret_at_us ? at_us : *ret_at_us;
        usable = usable || engine_is_usable(engine) || (engine->state == ENGINE_COOLING && !engine->draining);
    }
    if (usable)
        return POOL_WAIT;
    int64_t until_us = missed_since_us(pool, want) + pool->rules.down_timeout_us;
    *ret_at_us = until_us < *ret_at_us ? until_us : *ret_at_us;
    return now_us >= until_us ? POOL_DOWN : POOL_WAIT;
}

void pool_down_error(const struct pool *pool, const struct pool_want *want, struct sample_error *ret_error)
{
    const struct engine *last = NULL;

    for (size_t i = 0; i < pool->count; i++)
        if (engine_suits(pool->engines[i], want) &&
            (!last || pool->engines[i]->paused_until_us > last->paused_until_us))
            last = pool->engines[i];
    bool is_refused = last && engine_shown_state(last) == ENGINE_REFUSED;
    if (last && last->last_error.message[0] && !last->draining && !is_refused) {
        *ret_error = last->last_error;
    } else {
        *ret_error = (struct sample_error){.code = SAMPLE_ENGINE_UNREACHABLE};
        snprintf(ret_error->message, sizeof(ret_error->message), "no engine of pool \"%.64s\" can be used%s%s%s%.140s",
                 want->pool->name, last ? ": the last is " : "",
                 last ? engine_state_names[engine_shown_state(last)] : "", is_refused ? ": " : "",
                 is_refused ? last->why : "");
    }
    ret_error->retryable = ret_error->resample = false;
    ret_error->retry_after_us = 0;
}

/* --- the choice ---------------------------------------------------------------------------------- */

static void refresh(struct pool *pool, struct named_pool *named, int64_t now_us)
{
    for (size_t i = 0; i < pool->count; i++) {
        if (!belongs(pool->engines[i], named))
            continue;
        engine_refresh(pool->engines[i], now_us);
        if (engine_is_usable(pool->engines[i]))
            pool->engines[i]->usable_us = named->usable_us = now_us;
    }
}

enum pool_answer pool_pick(struct pool *pool, const struct pool_want *asked, int64_t now_us, struct engine **ret_engine,
                           int64_t *ret_at_us)
{
    struct pool_want want = *asked;
    struct engine *best;
    bool wait;

    *ret_at_us = now_us;
    *ret_engine = NULL;
    if (!want.pool)
        want.pool = pool->named[0];
    refresh(pool, want.pool, now_us);
    if (pool_unsuited(pool, &want, now_us, &wait)) {
        *ret_at_us = now_us + LOOK_AGAIN_US;
        return wait ? POOL_WAIT : POOL_UNSUITED;
    }
    ask_for_trials(pool, &want, now_us);
    best = due_for_trial(pool, &want, now_us);
    if (!best && want.prefix)
        best = home_of(pool, &want, now_us);
    if (!best)
        best = least_loaded(pool, &want, true, now_us);
    if (!best && want.avoid)
        best = least_loaded(pool, &want, false, now_us);
    if (!best)
        return answer_without(pool, &want, now_us, ret_at_us);
    best->picked = ++pool->picks;
    *ret_engine = best;
    return POOL_PICKED;
}
