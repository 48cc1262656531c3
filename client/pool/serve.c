/* Checks that an engine serves the model of a batch and every option of its sampling. */
#include "client/adapters/reply.h"
#include "client/pool/pool_private.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

static bool knows_its_models(const struct engine *engine)
{
    return engine->facts.lists_models && engine->facts.models_whole &&
           (engine->state == ENGINE_UP || engine->state == ENGINE_COOLING || engine->state == ENGINE_HALF_OPEN);
}

bool engine_may_serve(const struct engine *engine, struct text model)
{
    return !model.data || !knows_its_models(engine) || (engine->model && text_equals(model, engine->model)) ||
           engine_facts_list(&engine->facts, model);
}

static const char *lacks(const struct engine *engine, const struct pool_want *want)
{
    return want->sampling && engine->adapter ? engine_adapter_lacks(engine->adapter, want->sampling) : NULL;
}

bool engine_suits(const struct engine *engine, const struct pool_want *want)
{
    return engine->pool == want->pool && !(want->sampling && engine->unasked) &&
           engine_may_serve(engine, want->model) && !lacks(engine, want);
}

static bool one_suits(const struct pool *pool, const struct pool_want *want)
{
    for (size_t i = 0; i < pool->count; i++)
        if (engine_suits(pool->engines[i], want))
            return true;
    return false;
}

/* Its list of models is older than the wish, and it will tell it again (after a pause, if it has one): an adapter may
 * have been loaded since. */
static bool is_to_look_again(const struct engine *engine, const struct pool_want *want)
{
    return engine->pool == want->pool && !engine_may_serve(engine, want->model) && engine->listed_us < want->since_us;
}

bool pool_unsuited(struct pool *pool, const struct pool_want *want, int64_t now_us, bool *ret_wait)
{
    *ret_wait = false;
    if (named_pool_count(want->pool) == 0 || one_suits(pool, want))
        return false;
    for (size_t i = 0; i < pool->count; i++) {
        struct engine *engine = pool->engines[i];

        if (!is_to_look_again(engine, want))
            continue;
        *ret_wait = true;
        if (!engine->probing && (engine->looked_us < want->since_us || now_us - engine->probed_at_us > US_PER_S))
            engine->look_now = pool->wants_probe = true;
    }
    return true;
}

/* --- messages ------------------------------------------------------------------------------------ */

void pool_advise_model(const struct pool *pool, const struct named_pool *named, struct text model,
                       char ret_advice[ADVICE_BYTES])
{
    _cleanup_(name_list_finish) struct name_list list = {0};

    for (size_t i = 0; i < pool->count; i++) {
        const struct engine *engine = pool->engines[i];
        const char *name = engine->pool == named && !engine->draining ? engine->facts.models : "";

        for (; *name; name += strcspn(name, "\n") + 1)
            name_list_add(&list, (struct text){name, strcspn(name, "\n")});
    }
    if (list.count == 0)
        snprintf(ret_advice, ADVICE_BYTES, "none is served");
    else
        name_list_advise(model, &list, ret_advice);
}

void pool_unsuited_error(const struct pool *pool, const struct pool_want *want, struct sample_error *ret_error)
{
    char advice[ADVICE_BYTES];

    *ret_error = (struct sample_error){.code = SAMPLE_ENGINE_ERROR};
    for (size_t i = 0; i < pool->count; i++) {
        const struct engine *engine = pool->engines[i];

        if (engine->pool != want->pool)
            continue;
        if (want->sampling && engine->unasked) {
            error_message(ret_error, "the engine %s of pool \"%s\" samples nothing: verifiers alone ask it",
                          engine->name, want->pool->name);
            continue;
        }
        if (!engine_may_serve(engine, want->model)) {
            pool_advise_model(pool, want->pool, want->model, advice);
            error_message(ret_error, "no engine of pool \"%s\" serves the model \"%.*s\"; %s", want->pool->name,
                          (int)want->model.length_bytes, want->model.data, advice);
            return;
        }
        if (lacks(engine, want))
            error_message(ret_error, "%s: an engine of kind %s %s", lacks(engine, want), engine->adapter->kind,
                          engine->adapter->lacks_why);
    }
}
