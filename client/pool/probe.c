/* The time of each probe of an engine, and the changes by its findings. */
#include "client/pool/pool_private.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

#define ASK_AGAIN_US INT64_C(60000000) /* questions that came to no end, doubling */
#define ASK_AGAIN_MAX 5

/* --- begin and end --------------------------------------------------------------------------------- */

static bool should_ask(const struct engine *engine, int64_t now_us)
{
    if (engine->gone || (!engine->facts.capabilities.asked && engine->asked_in_vain == 0))
        return true;
    return !engine->facts.capabilities.asked && engine->asked_in_vain < ASK_AGAIN_MAX && now_us >= engine->ask_at_us;
}

static void begin_probe(const struct pool *pool, struct engine *engine, int64_t now_us)
{
    bool ask_samples = pool->rules.ask_samples && (engine->trial_by_probe || should_ask(engine, now_us));
    struct probe_rules rules = {.adapter = engine->adapter,
                                .url = engine->url,
                                .model = engine->model_is_set ? text_of(engine->model) : TEXT_NONE,
                                .has_key = engine->token != NULL,
                                .ask_tokens = ask_samples || (pool->rules.ask_samples && engine_is_lost(engine)),
                                .ask_samples = ask_samples};

    if (engine->gone && !engine->kind_is_set)
        rules.adapter = NULL; /* something else may have come back */
    engine->probing = true;
    engine->look_now = false;
    engine->looked_us = now_us;
    engine->probe = xcalloc(1, sizeof(*engine->probe));
    probe_init(engine->probe, &rules);
}

void engine_probe_finish(struct engine *engine)
{
    if (engine->probe)
        probe_finish(engine->probe);
    free(engine->probe);
    engine->probe = NULL;
}

/* --- findings ---------------------------------------------------------------------------------- */

static bool differs(const char *before, const char *after)
{
    return *before && *after && strcmp(before, after) != 0;
}

/* If the settings name one model of a list, the order of the list says nothing. */
static bool has_another_model(const struct engine *engine, const struct engine_facts *after)
{
    return !(engine->model_is_set && after->lists_models) && differs(engine->facts.model, after->model);
}

/* Another server, or the same one with something else in it. */
static bool is_another(const struct engine *engine, const struct engine_facts *after)
{
    const struct engine_facts *before = &engine->facts;

    return differs(before->version, after->version) || has_another_model(engine, after) ||
           differs(before->chat_template_sha256, after->chat_template_sha256) ||
           (before->adapter && before->adapter != after->adapter);
}

/* Findings that this probe did not ask for keep their values. */
static void merge(struct engine *engine, const struct probe *probe)
{
    struct engine_facts facts = probe->facts;

    if (!facts.tokenizer_sha256[0])
        memcpy(facts.tokenizer_sha256, engine->facts.tokenizer_sha256, sizeof(facts.tokenizer_sha256));
    if (!probe->rules.ask_samples)
        facts.capabilities = engine->facts.capabilities;
    engine->facts = facts;
}

static void note_questions(struct engine *engine, const struct probe *probe, int64_t now_us)
{
    if (!probe->rules.ask_samples)
        return;
    if (engine->facts.capabilities.asked) {
        engine->asked_in_vain = 0;
        return;
    }
    engine->ask_at_us = now_us + (ASK_AGAIN_US << (engine->asked_in_vain < 4 ? engine->asked_in_vain : 4));
    engine->asked_in_vain++;
}

static void adopt(struct engine *engine, const struct probe *probe, int64_t now_us)
{
    const struct engine_facts *facts = &engine->facts;

    merge(engine, probe);
    engine->listed_us = engine->looked_us;
    note_questions(engine, probe, now_us);
    engine->adapter = facts->adapter;
    engine->gone = false;
    if (facts->model[0] && !engine->model_is_set) {
        free(engine->model);
        engine->model = xstrdup(facts->model);
    }
    if (facts->context_tokens > 0)
        engine->context_tokens = facts->context_tokens;
    if (facts->slots > 0)
        engine_limit_slots(engine, facts->slots);
}

/* As good as unknown: everything is asked anew, at once. */
static void begin_anew(struct engine *engine, int64_t now_us)
{
    engine->gone = true;
    engine->asked_in_vain = 0;
    engine->agrees_us = 0;
    engine->paused_until_us = now_us;
    engine->probing = false;
    engine->probed_at_us = now_us;
    engine_set_state(engine, ENGINE_UNKNOWN, now_us, "it is another than before; it is being asked what it is");
}

/* Its settings give the model a name of their own, so the name does not show that it is another one now. */
static bool is_swapped(const struct engine *engine, const struct engine_facts *after, char why[SAMPLE_MESSAGE_BYTES])
{
    if (!engine->model_is_set || !engine->pool->pins || !has_another_model(engine, after))
        return false;
    snprintf(why, SAMPLE_MESSAGE_BYTES,
             "it serves %.60s now, and served %.60s when the unfinished batches of pool \"%.30s\" began", after->model,
             engine->facts.model, engine->pool->name);
    return true;
}

static void refuse_engine(struct engine *engine, const char *why, int64_t now_us)
{
    engine->agrees_us = 0;
    engine_refuse(engine, why, now_us);
}

/* Something else may come back in its place: then everything is asked anew. */
static void refuse_stranger(struct engine *engine, const char *why, int64_t now_us)
{
    engine->gone = engine->facts.adapter != NULL;
    refuse_engine(engine, why, now_us);
}

static void take_facts(struct engine *engine, struct probe *probe, int64_t now_us)
{
    char why[SAMPLE_MESSAGE_BYTES];

    if (probe_is_stranger(probe, why)) {
        refuse_stranger(engine, why, now_us);
        return;
    }
    bool another = engine->facts.adapter && is_another(engine, &probe->facts);

    if (another && !engine_is_lost(engine)) {
        begin_anew(engine, now_us);
        return;
    }
    if (another && is_swapped(engine, &probe->facts, why)) {
        refuse_engine(engine, why, now_us);
        return;
    }
    if (another) {
        engine->facts.tokenizer_sha256[0] = '\0';
        if (!probe->rules.ask_samples) {
            engine->facts.capabilities = (struct engine_capabilities){0};
            engine->asked_in_vain = 0;
        }
    }
    if (engine->facts.adapter && (another || engine->gone))
        engine->restarts++;
    adopt(engine, probe, now_us);
    if (probe_gave_samples(probe)) { /* its failures are from before it went */
        engine->broken = false;
        engine_gave_sample(engine, now_us);
    }
    if (pool_agrees(engine->owner, engine, why)) {
        engine->agrees_us = engine->agrees_us ? engine->agrees_us : now_us;
        engine_probe_ended(engine, NULL, now_us);
    } else {
        refuse_engine(engine, why, now_us);
    }
}

/* It was HALF_OPEN, and has given no sample again. */
static void end_trial(struct engine *engine, const struct probe *probe, int64_t now_us)
{
    if (engine->trial_by_probe && !probe_gave_samples(probe))
        engine->trial_at_us = now_us + pool_pause_us(++engine->trials);
    engine->trial_by_probe = false;
}

static bool end_probe(struct engine *engine, int64_t now_us)
{
    struct probe *probe = engine->probe;
    const struct sample_error *error = probe_failed(probe);

    engine->probe = NULL;
    end_trial(engine, probe, now_us);
    if (engine->removed)
        engine->probing = false; /* it belongs to no pool any more, so it must not say what its pool is of */
    else if (error)
        engine_probe_ended(engine, error, now_us);
    else
        take_facts(engine, probe, now_us);
    probe_finish(probe);
    free(probe);
    return false;
}

/* --- the calls -------------------------------------------------------------------------------------- */

bool engine_probe_build(struct engine *engine, int64_t now_us, struct engine_call *ret_call, int64_t *ret_timeout_us)
{
    struct probe *probe = engine->probe;

    *ret_timeout_us = PROBE_GET_TIMEOUT_US;
    if (probe_is_sampling(probe)) {
        if (!probe->samples_until_us)
            probe->samples_until_us = now_us + PROBE_SAMPLES_TIMEOUT_US;
        *ret_timeout_us = probe->samples_until_us - now_us;
        if (*ret_timeout_us <= 0)
            probe_give_up_samples(probe, "it took too long");
    }
    if (probe_build(probe, ret_call))
        return true;
    engine_call_finish(ret_call);
    return end_probe(engine, now_us);
}

bool engine_probe_reply(struct engine *engine, const struct engine_reply *reply,
                        const struct sample_error *transport_error, int64_t now_us)
{
    if (!engine->removed && probe_take(engine->probe, reply, transport_error))
        return true;
    return end_probe(engine, now_us);
}

/* --- when ------------------------------------------------------------------------------------------- */

static int64_t due_at_us(const struct pool *pool, const struct engine *engine)
{
    if (engine->probing || engine->unasked)
        return NEVER_US;
    if (engine_is_lost(engine))
        return engine->paused_until_us;
    if (engine->trial_by_probe)
        return engine->trial_at_us;
    if (engine->look_now && (engine->state == ENGINE_UP || engine->state == ENGINE_HALF_OPEN))
        return engine->probed_at_us;
    if (!pool->rules.check_us || engine->state == ENGINE_COOLING)
        return NEVER_US;
    return engine->probed_at_us + pool->rules.check_us;
}

void pool_look_again(struct pool *pool, const struct named_pool *named, int64_t now_us)
{
    for (size_t i = 0; i < pool_count(pool); i++) {
        struct engine *engine = pool_at(pool, i);

        if (engine->pool == named && now_us - engine->probed_at_us > US_PER_S)
            engine->look_now = true;
    }
}

bool pool_wants_probe(const struct pool *pool)
{
    return pool->wants_probe;
}

struct engine *pool_probe_due(struct pool *pool, int64_t now_us, int64_t *ret_at_us)
{
    *ret_at_us = NEVER_US;
    pool->wants_probe = false;
    for (size_t i = 0; i < pool_count(pool); i++) {
        struct engine *engine = pool_at(pool, i);
        int64_t at_us = due_at_us(pool, engine);

        if (at_us <= now_us) {
            begin_probe(pool, engine, now_us);
            return engine;
        }
        if (at_us < *ret_at_us)
            *ret_at_us = at_us;
    }
    return NULL;
}
