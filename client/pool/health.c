/* The circuit breaker: the effect of requests and probes on an engine's state. The budgets for repeats. */
#include "client/pool/pool_private.h"
#include "server/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

#define RETRY_TOKENS_PER_S 1.0 /* an engine's; up to RETRY_TOKENS_MIN */

/* --- states -------------------------------------------------------------------------------------- */

bool engine_is_usable(const struct engine *engine)
{
    return (engine->state == ENGINE_UP || engine->state == ENGINE_HALF_OPEN) && !engine->draining && !engine->removed;
}

bool engine_is_sound(const struct engine *engine)
{
    return (engine->state == ENGINE_UP || (engine->state == ENGINE_COOLING && engine->doubts < POOL_DOUBTS_MAX)) &&
           !engine->broken && !engine->draining && !engine->removed;
}

static bool state_is_lost(enum engine_state state)
{
    return state == ENGINE_UNKNOWN || state == ENGINE_DOWN || state == ENGINE_REFUSED;
}

bool engine_is_lost(const struct engine *engine)
{
    return state_is_lost(engine->state);
}

void engine_set_state(struct engine *engine, enum engine_state state, int64_t now_us, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(engine->why, sizeof(engine->why), format, arguments);
    va_end(arguments);
    if (state == engine->state)
        return;
    if (!state_is_lost(state))
        engine->lost_us = 0;
    else if (!engine_is_lost(engine))
        engine->lost_us = now_us;
    engine->state = state;
    engine->since_us = now_us;
}

static void open_or_up(struct engine *engine, int64_t now_us)
{
    if (engine->broken || engine->doubts >= POOL_DOUBTS_MAX)
        engine_set_state(engine, ENGINE_HALF_OPEN, now_us,
                         "%u failures in a row, single requests until it samples: %.150s", engine->doubts,
                         engine->stats.last_error.message);
    else
        engine_set_state(engine, ENGINE_UP, now_us, "%s", "");
}

void engine_refresh(struct engine *engine, int64_t now_us)
{
    if (engine->unasked && engine->state == ENGINE_DOWN && engine->paused_until_us <= now_us) {
        engine->broken = true;
        open_or_up(engine, now_us);
    }
    if (engine->state == ENGINE_COOLING && engine->paused_until_us <= now_us)
        open_or_up(engine, now_us);
}

/* --- failures ------------------------------------------------------------------------------------ */

int64_t pool_pause_us(unsigned failures)
{
    unsigned doublings = failures > 1 ? failures - 1 : 0;

    return doublings > 10 || POOL_PAUSE_MIN_US << doublings > POOL_PAUSE_MAX_US ? POOL_PAUSE_MAX_US
                                                                                : POOL_PAUSE_MIN_US << doublings;
}

static void take_down(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    engine->gone =
        engine->gone || error->code == SAMPLE_ENGINE_UNREACHABLE; /* a cut connection, too, means that it died */
    engine->paused_until_us = now_us + pool_pause_us(engine->failures);
    engine_set_state(engine, ENGINE_DOWN, now_us, "%.200s", error->message);
}

/* The many that were in flight when it began to refuse count once. */
static void cool_down(const struct pool_rules *rules, struct engine *engine, const struct sample_error *error,
                      int64_t now_us)
{
    bool pausing = engine->state == ENGINE_COOLING && engine->paused_until_us > now_us;
    int64_t asked_us = error->retry_after_us;
    int64_t until_us;

    if (engine_is_lost(engine))
        return;
    if (!pausing) {
        engine->failures++;
        engine_limit_overloaded(engine);
    }
    if (asked_us > rules->pause_max_us) { /* no pause lasts an hour: a single request asks again */
        asked_us = rules->pause_max_us;
        engine->broken = true;
    }
    until_us = now_us + (asked_us > 0 ? asked_us : pool_pause_us(engine->failures));
    if (!pausing || (asked_us > 0 && until_us > engine->paused_until_us))
        engine->paused_until_us = until_us;
    engine_set_state(engine, ENGINE_COOLING, now_us, "%.200s", error->message);
}

/* Failures that the request may have caused count, too: a sound engine gives samples between them. */
static void doubt(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    if (error->code == SAMPLE_ENGINE_OVERLOADED)
        return;
    engine->doubts++;
    if (engine->doubts >= POOL_DOUBTS_MAX && now_us >= engine->trial_at_us) /* the many in flight count once */
        engine->trial_at_us = now_us + pool_pause_us(++engine->trials);
}

static bool is_fault(const struct sample_error *error)
{
    return error->code == SAMPLE_ENGINE_TIMEOUT || error->code == SAMPLE_ENGINE_UNREACHABLE ||
           (error->code == SAMPLE_ENGINE_ERROR && error->retryable);
}

/* A fault of its own; false: it has not got so far that it is taken down. */
static bool fault(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    if (error->code == SAMPLE_ENGINE_TIMEOUT)
        engine_limit_overloaded(engine);
    if (engine->state != ENGINE_UP || ++engine->failures < POOL_FAULTS_MAX)
        return false;
    engine->failures = 1;
    engine->broken = true;
    take_down(engine, error, now_us);
    return true;
}

static void engine_failed(const struct pool_rules *rules, struct engine *engine, const struct sample_error *error,
                          int64_t now_us)
{
    engine->last_error = *error;
    doubt(engine, error, now_us);
    if (error->code == SAMPLE_ENGINE_OVERLOADED || error->retry_after_us > 0) {
        cool_down(rules, engine, error, now_us);
        return;
    }
    if (engine_is_lost(engine))
        return;
    if (error->not_connected) {
        engine->failures++;
        take_down(engine, error, now_us);
    } else if ((!is_fault(error) || !fault(engine, error, now_us)) && engine->doubts >= POOL_DOUBTS_MAX &&
               engine->state != ENGINE_COOLING) {
        open_or_up(engine, now_us);
    }
}

void engine_gave_sample(struct engine *engine, int64_t now_us)
{
    engine->doubts = engine->trials = 0;
    if (engine_is_lost(engine) || engine->state == ENGINE_COOLING)
        return;
    engine->broken = false;
    engine->failures = 0;
    engine->trial_at_us = 0;
    if (engine->state == ENGINE_HALF_OPEN)
        open_or_up(engine, now_us);
}

/* The end of a check of a sound engine. Samples in flight are better evidence than a late GET. */
static void check_ended(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    if (!error) {
        engine->check_failures = 0;
        return;
    }
    engine->check_failures++;
    if (!error->not_connected && (engine->in_flight > 0 || engine->check_failures < POOL_FAULTS_MAX))
        return;
    engine->last_error = *error;
    engine->failures++;
    take_down(engine, error, now_us);
}

void engine_probe_ended(struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    engine->probing = false;
    engine->probed_at_us = now_us;
    if (!engine_is_lost(engine)) {
        check_ended(engine, error, now_us);
        return;
    }
    if (error) {
        engine->last_error = *error;
        engine->failures++;
        take_down(engine, error, now_us);
        return;
    }
    engine->failures = 0;
    engine->check_failures = 0;
    engine->last_error = (struct sample_error){0};
    open_or_up(engine, now_us);
}

void engine_refuse(struct engine *engine, const char *why, int64_t now_us)
{
    engine->probing = false;
    engine->probed_at_us = now_us;
    engine->paused_until_us = now_us + POOL_PAUSE_MAX_US;
    engine_set_state(engine, ENGINE_REFUSED, now_us, "%s", why);
}

/* --- requests ------------------------------------------------------------------------------------ */

void pool_begin(struct pool *pool, struct engine *engine, int64_t now_us)
{
    (void)pool;
    engine->in_flight++;
    engine->stats.requests++;
    if (engine->state == ENGINE_HALF_OPEN && !engine->trial_began_us)
        engine->trial_began_us = now_us;
}

void pool_end_cancelled(struct pool *pool, struct engine *engine)
{
    (void)pool;
    engine->in_flight--;
    if (engine->in_flight == 0)
        engine->trial_began_us = 0;
}

/* The request was no trial: it showed nothing about the engine. */
static void put_off_trial(struct engine *engine, int64_t now_us)
{
    if (engine->state == ENGINE_HALF_OPEN && engine->trial_at_us <= now_us)
        engine->trial_at_us = now_us + pool_pause_us(engine->trials);
}

void pool_end(struct pool *pool, struct engine *engine, const struct pool_result *result, int64_t now_us)
{
    pool_end_cancelled(pool, engine);
    if (engine_was_hurried(engine, result)) {
        put_off_trial(engine, now_us);
        return;
    }
    stats_note(engine, result, now_us);
    if (result->error) {
        engine->trial_began_us = 0;
        engine_failed(&pool->rules, engine, result->error, now_us);
        return;
    }
    if (result->began_us)
        engine_usual_sample(engine, now_us - result->began_us, result->token_count);
    engine_limit_sample(engine, result, now_us);
    engine_gave_sample(engine, now_us);
}

/* --- repeats ------------------------------------------------------------------------------------- */

static void earn(struct retry_budget *budget, double tokens)
{
    budget->tokens += tokens;
    if (budget->tokens > RETRY_TOKENS_MAX)
        budget->tokens = RETRY_TOKENS_MAX;
}

static void refill(struct retry_budget *budget, int64_t now_us)
{
    double tokens = (double)(now_us - budget->refilled_us) / (double)US_PER_S * RETRY_TOKENS_PER_S;

    budget->refilled_us = now_us;
    if (budget->tokens < RETRY_TOKENS_MIN)
        budget->tokens = budget->tokens + tokens < RETRY_TOKENS_MIN ? budget->tokens + tokens : RETRY_TOKENS_MIN;
}

void pool_count_first(struct pool *pool, struct engine *engine, struct retry_budget *batch)
{
    earn(&engine->retries, pool->rules.retry_ratio);
    earn(batch, pool->rules.retry_ratio);
}

void pool_count_retry(struct pool *pool, struct engine *engine)
{
    (void)pool;
    engine->stats.retries++;
}

bool pool_take_retry(struct pool *pool, struct engine *engine, struct retry_budget *batch,
                     const struct sample_error *error, bool failed_before, int64_t now_us)
{
    if (error->code == SAMPLE_ENGINE_UNREACHABLE || error->code == SAMPLE_ENGINE_OVERLOADED)
        return true;
    if (!failed_before && pool_has_another(pool, engine))
        return true;
    refill(&engine->retries, now_us);
    if (engine->retries.tokens < 1 || batch->tokens < 1)
        return false;
    engine->retries.tokens--;
    batch->tokens--;
    return true;
}

int64_t pool_retry_after_us(const struct pool *pool, const struct engine *engine, const struct sample_error *error)
{
    if (error->retry_after_us <= 0 || pool_has_another(pool, engine))
        return 0;
    return error->retry_after_us < pool->rules.pause_max_us ? error->retry_after_us : pool->rules.pause_max_us;
}
