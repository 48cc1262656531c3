/* The protection that the machine offers for programs, and its consequences. */
#include "server/verify/pool_private.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/settings/settings.h"
#include "server/verify/externals.h"
#include "server/verify/sandbox.h"

#define AGAIN_FIRST_US (5 * US_PER_S)
#define AGAIN_LAST_US (300 * US_PER_S)

void sandbox_settings_of(const struct settings *settings, struct sandbox_settings *ret_sandbox)
{
    *ret_sandbox = (struct sandbox_settings){
        .uid = (uid_t)settings->sandbox_uid,
        .min_level = settings->sandbox_min_level == LEAST_REDUCED ? SANDBOX_LEVEL_REDUCED : SANDBOX_LEVEL_FULL};
    if (settings->python_venv)
        snprintf(ret_sandbox->venv, sizeof ret_sandbox->venv, "%s", settings->python_venv);
    if (settings->sandbox_testlib)
        snprintf(ret_sandbox->testlib, sizeof ret_sandbox->testlib, "%s", settings->sandbox_testlib);
    externals_tell_slots(settings, ret_sandbox);
}

bool sandbox_is_enough(const struct sandbox_settings *sandbox, enum sandbox_level level)
{
    return level >= sandbox->min_level && level != SANDBOX_LEVEL_NONE;
}

void sandbox_say_refusal(const struct sandbox_settings *sandbox, const struct sandbox_report *probed,
                         char ret_message[SANDBOX_REFUSAL_BYTES])
{
    snprintf(ret_message, SANDBOX_REFUSAL_BYTES, "this machine offers level %s, and programs need %s: %s",
             sandbox_level_names[probed->level], sandbox_level_names[sandbox->min_level],
             probed->advice[0] ? probed->advice : "see rolloutd sandbox-check");
}

bool verify_trial_is_due(const struct verify_pool *pool)
{
    return pool->kind == WORKER_CODE && !pool->is_probed;
}

void verify_trial_begin(struct verify_pool *pool)
{
    if (verify_trial_is_due(pool) && spawner_probe(&pool->spawner, &pool->sandbox) < 0)
        verify_retry_later(pool);
}

/* The next attempt is set first: the spawner may be away. */
static void try_again(void *arg)
{
    struct verify_pool *pool = arg;

    pool->again_us = pool->again_us ? 2 * pool->again_us : AGAIN_FIRST_US;
    if (pool->again_us > AGAIN_LAST_US)
        pool->again_us = AGAIN_LAST_US;
    loop_timer_set(pool->loop, &pool->again, clock_monotonic_us() + pool->again_us, try_again, pool);
    if (pool->spawner_source)
        (void)spawner_probe(&pool->spawner, &pool->sandbox);
}

void verify_pool_try_again(struct verify_pool *pool)
{
    if (!pool->refusal[0])
        return;
    pool->again_us = 0;
    try_again(pool);
}

/* While programs do not run the machine is tried now and then; a level at which they do is kept. */
static void set_level(struct verify_pool *pool, const struct sandbox_report *probed)
{
    pool->probed = *probed;
    pool->is_probed = true;
    pool->sandbox.level = probed->level;
    loop_timer_clear(pool->loop, &pool->again);
    if (sandbox_is_enough(&pool->sandbox, probed->level)) {
        pool->refusal[0] = '\0';
        return;
    }
    sandbox_say_refusal(&pool->sandbox, probed, pool->refusal);
    if (!pool->again_us)
        pool->again_us = AGAIN_FIRST_US;
    loop_timer_set(pool->loop, &pool->again, clock_monotonic_us() + pool->again_us, try_again, pool);
}

void verify_trial_end(struct verify_pool *pool, const struct sandbox_report *probed)
{
    bool is_news = !pool->is_probed || memcmp(&pool->probed, probed, sizeof *probed) != 0;

    if (pool->is_probed && !pool->refusal[0])
        return; /* one that was asked for meanwhile */
    set_level(pool, probed);
    if (!is_news)
        return;
    log_event(LOG_LEVEL_INFO, "sandbox", "level", sandbox_level_names[probed->level], "failed_step",
              probed->step[0] ? probed->step : NULL, "advice", probed->advice[0] ? probed->advice : NULL, NULL);
    if (pool->refusal[0] && pool->queued)
        verify_refuse_soon(pool);
}

static void refuse(void *arg)
{
    struct verify_pool *pool = arg;

    verify_fail_queued(pool, SANDBOX_UNAVAILABLE, pool->refusal);
}

void verify_refuse_soon(struct verify_pool *pool)
{
    loop_timer_set(pool->loop, &pool->refuse, clock_monotonic_us(), refuse, pool);
}

void verify_pool_write_sandbox(struct json_write *json, const struct verify_pool *pool)
{
    json_key(json, "sandbox");
    json_object_begin(json);
    json_put_string(json, "level", pool->is_probed ? sandbox_level_names[pool->probed.level] : NULL);
    json_put_string(json, "min_level", sandbox_level_names[pool->sandbox.min_level]);
    if (pool->is_probed)
        json_put_bool(json, "programs_run", !pool->refusal[0]);
    else
        json_put_null(json, "programs_run");
    json_put_string(json, "why", pool->refusal[0] ? pool->refusal : NULL);
    json_object_end(json);
}

enum sandbox_level verify_pool_level(const struct verify_pool *pool)
{
    return pool->probed.level;
}
