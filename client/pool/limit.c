/* The learned limit of requests in flight: additive increase, multiplicative decrease. */
#include "client/pool/pool_private.h"

#define LEARNED_FIRST 32.0
#define LEARNED_MOST 1024
#define DECREASE 0.7
#define CROWDED 4.0         /* times the quickest time of a token: the engine is crowded */
#define AVERAGE_WEIGHT 0.05 /* of a new sample in the average */
#define FLOOR_FORGETS 1.001 /* the quickest time grows by this with every sample */

static void set_limit(struct engine *engine)
{
    size_t most = engine->in_flight_setting;

    if (engine->slots && 2 * engine->slots < most)
        most = 2 * engine->slots;
    if (engine->in_flight_learned && engine->learned_limit > (double)most)
        engine->learned_limit = (double)most;
    engine->in_flight_limit = engine->in_flight_learned ? (size_t)engine->learned_limit : most;
}

void engine_limit_init(struct engine *engine)
{
    if (!engine->in_flight_setting)
        engine->in_flight_setting = engine->in_flight_learned ? LEARNED_MOST : IN_FLIGHT_DEFAULT;
    engine->learned_limit = LEARNED_FIRST;
    set_limit(engine);
}

void engine_limit_slots(struct engine *engine, size_t slots)
{
    engine->slots = slots;
    set_limit(engine);
}

static bool is_crowded(struct engine *engine, const struct pool_result *result, int64_t now_us)
{
    double token_us;

    if (!result->token_count || !result->began_us)
        return false;
    token_us = (double)(now_us - result->began_us) / (double)result->token_count;
    engine->token_us += engine->token_us > 0 ? AVERAGE_WEIGHT * (token_us - engine->token_us) : token_us;
    engine->token_floor_us *= FLOOR_FORGETS;
    if (engine->token_floor_us <= 0 || engine->token_us < engine->token_floor_us)
        engine->token_floor_us = engine->token_us;
    return engine->token_us > CROWDED * engine->token_floor_us;
}

/* One more for each time that the whole limit gave samples; a limit that is not reached shows nothing. */
void engine_limit_sample(struct engine *engine, const struct pool_result *result, int64_t now_us)
{
    bool crowded = is_crowded(engine, result, now_us);

    if (!engine->in_flight_learned || crowded || engine->in_flight + 1 < engine->in_flight_limit)
        return;
    engine->learned_limit += 1 / engine->learned_limit;
    set_limit(engine);
}

void engine_limit_overloaded(struct engine *engine)
{
    if (!engine->in_flight_learned)
        return;
    engine->learned_limit = engine->learned_limit * DECREASE > 1 ? engine->learned_limit * DECREASE : 1;
    set_limit(engine);
}
