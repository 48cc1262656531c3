#include "server/batches/admission.h"

#include "server/base/clock.h"
#include "server/base/nearest.h"
#include "server/engines/engines.h"
#include "server/verify/judges.h"

#include <stdio.h>

/* Those that are asked to drain may be told otherwise, but get nothing now. */
static struct engine *next_engine(struct pool *pool, const struct named_pool *named, size_t *at)
{
    while (*at < pool_count(pool)) {
        struct engine *engine = pool_at(pool, (*at)++);
        if (engine->pool == named && !engine->draining)
            return engine;
    }
    return NULL;
}

/* --- the pool ------------------------------------------------------------------------------------- */

static int refuse_pool(struct pool *pool, struct call *call, struct text name)
{
    _cleanup_(name_list_finish) struct name_list names = {0};
    char advice[ADVICE_BYTES];

    for (size_t i = 0; i < pool_count(pool); i++)
        name_list_add(&names, text_of(named_pool_name(pool_at(pool, i)->pool)));
    name_list_advise(name, &names, advice);
    return call_refuse(call, ERR_INVALID_FIELD, "engine", "no engine belongs to the pool \"%.*s\"; %s",
                       (int)name.length_bytes, name.data, advice);
}

static int refuse_scorers(struct pool *pool, struct call *call, const struct named_pool *named)
{
    _cleanup_(name_list_finish) struct name_list names = {0};
    char advice[ADVICE_BYTES];

    for (size_t i = 0; i < pool_count(pool); i++)
        if (!pool_at(pool, i)->unasked)
            name_list_add(&names, text_of(named_pool_name(pool_at(pool, i)->pool)));
    if (names.count == 0)
        snprintf(advice, sizeof(advice), "there is no engine that samples");
    else
        name_list_advise(text_of(named_pool_name(named)), &names, advice);
    return call_refuse(call, ERR_INVALID_FIELD, "engine",
                       "the pool \"%s\" samples nothing: its engines are of kind scorer, which verifiers alone ask; %s",
                       named_pool_name(named), advice);
}

static bool is_of_scorers(struct pool *pool, const struct named_pool *named)
{
    for (size_t i = 0; i < pool_count(pool); i++)
        if (pool_at(pool, i)->pool == named && !pool_at(pool, i)->unasked)
            return false;
    return true;
}

/* --- the sampling ---------------------------------------------------------------------------------- */

/* The field that no engine of the pool can be asked for; NULL: one can be asked for everything, or is not known. */
static const char *lacking(struct pool *pool, const struct named_pool *named, const struct sampling *sampling,
                           const struct engine_adapter **ret_adapter)
{
    const char *field = NULL;
    struct engine *engine;

    for (size_t at = 0; (engine = next_engine(pool, named, &at));) {
        const char *lacks = engine->adapter ? engine_adapter_lacks(engine->adapter, sampling) : NULL;
        if (!lacks)
            return NULL;
        field = lacks;
        *ret_adapter = engine->adapter;
    }
    return field;
}

/* A group whose list is another than the batch's said it itself. */
static bool is_own(const struct batch_spec *spec, const struct group_spec *group, const char *field)
{
    return strcmp(field, "stop") == 0 ? group->sampling.stop != spec->sampling.stop
                                      : group->sampling.stop_token_ids != spec->sampling.stop_token_ids;
}

static int check_sampling(struct pool *pool, const struct named_pool *named, struct call *call,
                          const struct batch_spec *spec)
{
    char path[PATH_BYTES];

    for (size_t g = 0; g < spec->group_count; g++) {
        const struct engine_adapter *adapter = NULL;
        const char *field = lacking(pool, named, &spec->groups[g].sampling, &adapter);
        if (!field)
            continue;
        if (is_own(spec, &spec->groups[g], field))
            snprintf(path, sizeof(path), "groups[%zu].sampling.%s", g, field);
        else
            snprintf(path, sizeof(path), "sampling.%s", field);
        return call_refuse(call, ERR_INVALID_FIELD, path, "an engine of kind %s %s", adapter->kind, adapter->lacks_why);
    }
    return 0;
}

/* --- the model -------------------------------------------------------------------------------------- */

/* An engine that is away, or does not say what it has, may serve anything. */
static int check_model(struct batches *batches, const struct named_pool *named, struct call *call, struct text model)
{
    struct pool *pool = batches->uses.pool;
    char advice[ADVICE_BYTES];
    struct engine *engine;
    size_t count = 0;

    for (size_t at = 0; (engine = next_engine(pool, named, &at)); count++)
        if (engine_may_serve(engine, model))
            return 0;
    if (count == 0)
        return 0;
    pool_look_again(pool, named, clock_monotonic_us()); /* an adapter may have been loaded since */
    engines_probe(batches->uses.engines);
    pool_advise_model(pool, named, model, advice);
    return call_refuse(call, ERR_INVALID_FIELD, "model", "no engine of pool \"%s\" serves this model; %s",
                       named_pool_name(named), advice);
}

/* --- judges ------------------------------------------------------------------------------------------ */

/* where: "" or a group's path. */
static int check_list(struct pool *pool, struct call *call, const struct batch_spec *spec,
                      const struct verifier_list *list, const char *where)
{
    struct text default_pool = text_of(POOL_DEFAULT);
    struct text own = spec->origin == BATCH_GIVEN ? TEXT_NONE : spec->pool.data ? spec->pool : default_pool;
    struct verifier_problem problem;
    char path[PATH_BYTES];
    size_t index;

    if (judges_check(pool, list, own, &index, &problem) == 0)
        return 0;
    path_join(path, where, "verifiers");
    path_index(path, "", path, index);
    path_join(path, path, "options.engine");
    return call_refuse(call, ERR_VERIFIER_OPTIONS, path, "%s", problem.message);
}

int admission_check_judges(struct batches *batches, struct call *call, const struct batch_spec *spec)
{
    struct pool *pool = batches->uses.pool;
    char path[PATH_BYTES];

    if (spec->verifiers && check_list(pool, call, spec, spec->verifiers, "") < 0)
        return -1;
    for (size_t g = 0; g < spec->group_count; g++) {
        const struct verifier_list *list = spec->groups[g].verifiers;
        path_index(path, "", "groups", g);
        if (list && list != spec->verifiers && check_list(pool, call, spec, list, path) < 0)
            return -1;
    }
    return 0;
}

/* --- the whole ---------------------------------------------------------------------------------------- */

int admission_check(struct batches *batches, struct call *call, const struct batch_spec *spec)
{
    struct pool *pool = batches->uses.pool;
    struct text name = spec->pool.data ? spec->pool : text_of(POOL_DEFAULT);

    if (pool_count(pool) == 0)
        return call_refuse(call, ERR_NO_ENGINE, NULL, "no engine is configured: start rolloutd with --engine URL");
    struct named_pool *named = pool_named_find(pool, name);
    if (!named || named_pool_count(named) == 0)
        return refuse_pool(pool, call, name);
    if (is_of_scorers(pool, named))
        return refuse_scorers(pool, call, named);
    if (check_sampling(pool, named, call, spec) < 0)
        return -1;
    return spec->model.data ? check_model(batches, named, call, spec->model) : 0;
}
