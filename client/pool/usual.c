/* The usual time of a sample: a timeout before it does not count against the engine. */
#include "client/pool/pool_private.h"

#define USUAL_UNKNOWN_US INT64_C(30000000) /* vLLM's first request takes up to 25 s */
#define USUAL_LEAST_US INT64_C(750000)     /* below that, one stall of a machine looks like an engine that hangs */
#define SLOW_FORGETS 0.05                  /* of the way down to the next sample that was quicker */
#define TELLING_TOKENS 16                  /* fewer say how long a request takes, and not a token */
#define AVERAGE_WEIGHT 0.05                /* of a new sample in the average */

/* The slowest is believed at once, and forgotten slowly: lengths differ more than engines do. */
void engine_usual_sample(struct engine *engine, int64_t took_us, size_t tokens)
{
    int64_t faster_by_us = engine->slow_us - took_us;
    double token_us = tokens ? (double)took_us / (double)tokens : 0;

    engine->slow_us = faster_by_us > 0 ? engine->slow_us - (int64_t)(SLOW_FORGETS * (double)faster_by_us) : took_us;
    if (tokens >= TELLING_TOKENS)
        engine->told_token_us +=
            engine->told_token_us > 0 ? AVERAGE_WEIGHT * (token_us - engine->told_token_us) : token_us;
}

int64_t engine_usual_us(const struct engine *engine, int64_t tokens)
{
    double usual_us = engine->told_token_us * (double)tokens;

    if (engine->slow_us == 0)
        return USUAL_UNKNOWN_US;
    if (usual_us < (double)engine->slow_us)
        usual_us = (double)engine->slow_us;
    return usual_us > (double)USUAL_LEAST_US ? (int64_t)usual_us : USUAL_LEAST_US;
}

/* A limit of two seconds is two seconds, though it began a moment before the request. */
static bool is_enough(int64_t allowed_us, int64_t usual_us)
{
    return allowed_us >= usual_us - usual_us / 100;
}

bool engine_was_hurried(const struct engine *engine, const struct pool_result *result)
{
    const struct sample_error *error = result->error;

    /* with a status it is a proxy's clock, and not ours */
    return error && error->code == SAMPLE_ENGINE_TIMEOUT && error->status == 0 && result->allowed_us > 0 &&
           !is_enough(result->allowed_us, engine_usual_us(engine, result->tokens));
}

bool engine_has_time(const struct engine *engine, const struct pool_want *want)
{
    return want->left_us <= 0 || is_enough(want->left_us, engine_usual_us(engine, want->tokens));
}
