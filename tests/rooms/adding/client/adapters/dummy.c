/* dummy: a server that is asked with a key of its own and answers as OpenAI does. tests/rooms/adding.py adds it to a copy of the
 * tree. */
#include "client/adapters/get.h"
#include "client/adapters/reply.h"
#include "server/base/json_write.h"

static bool prepares(const struct exchange *exchange)
{
    (void)exchange;
    return false;
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    struct json_write json;

    ret_call->path = "/v1/completions";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    json_put_text(&json, "dummy_prompt", exchange->request->prompt);
    json_object_end(&json);
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    static const struct draft_facts facts = {.read = draft_read_openai};

    return draft_take(exchange, &facts, reply, ret_sample, ret_error);
}

static uint64_t seed_sent(uint64_t seed)
{
    return seed & INT32_MAX;
}

static const struct engine_get gets[] = {GET_MODELS, GET_END};

const struct engine_adapter adapter_dummy = {
    .kind = "dummy",
    .gets = gets,
    .only_by_settings = true,
    .prepares = prepares,
    .build = build,
    .parse = parse,
    .seed_sent = seed_sent,
};
