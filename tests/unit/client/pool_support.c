#include "pool_support.h"

#include "support.h"

void answer_probes(struct pool *pool, int64_t now_us)
{
    struct engine *engine;
    int64_t at_us;

    while ((engine = pool_probe_due(pool, now_us, &at_us)))
        while (engine_probe_reply(engine, &(struct engine_reply){.status = 200, .body = text_of("{\"version\":\"1\"}")},
                                  NULL, now_us))
            ;
}

struct pool *pool_of(const struct pool_engine *settings, size_t count)
{
    char message[POOL_MESSAGE_BYTES] = "";
    struct pool *pool = pool_create(settings, count, message);

    assert_string_equal(message, "");
    answer_probes(pool, 0);
    return pool;
}
