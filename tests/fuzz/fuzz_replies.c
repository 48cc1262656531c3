/* Replies of engines, through a whole exchange or a whole probe.
 * Input: a byte for the kind (beyond the table: a probe), one for the request, then for each step a byte for the status
 * and the body up to the separator. */
#include "client/adapters/adapter.h"
#include "client/pool/pool.h"
#include "server/base/utf8.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

#define HOUR_US INT64_C(3600000000)

static const uint32_t prompt_ids[] = {1, 411, 907, 23};

/* Those that sample stand before those that do not. */
static size_t adapter_count(void)
{
    size_t count = 0;
    while (engine_adapters[count] && engine_adapters[count]->build)
        count++;
    return count;
}

/* Bits: how the prompt is known (2), greedy, top_p, the mode. */
static struct sample_request make_request(uint8_t bits)
{
    struct sample_request request = {
        .sampling = {.max_tokens = 16, .temperature = bits & 4 ? 0 : 1, .top_p = bits & 8 ? 0.9 : 1},
        .model = TEXT_LITERAL("demo-1b"),
        .seed = UINT64_C(8795940449617632684),
        .logprobs_mode = (enum logprobs_mode)(bits >> 4 & 1),
    };
    if ((bits & 3) == 0) {
        request.prompt_ids = prompt_ids;
        request.prompt_id_count = ARRAY_LENGTH(prompt_ids);
    } else if ((bits & 3) == 1) {
        request.prompt = TEXT_LITERAL("x");
    } else {
        request.messages = TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"x\"}]");
    }
    return request;
}

/* ret_body is the caller's to free. */
static struct engine_reply take_reply(struct text *rest, char **ret_body)
{
    static const int statuses[] = {200, 400, 401, 404, 413, 422, 429, 500, 502, 503, 504, 204, 302, 100, 0, 999};
    uint8_t bits = fuzz_take_byte(rest);
    struct engine_reply reply = {.status = statuses[bits % ARRAY_LENGTH(statuses)],
                                 .content_type =
                                     bits & 16 ? TEXT_LITERAL("text/html") : TEXT_LITERAL("application/json"),
                                 .now_utc_us = INT64_C(1750000000000000)};

    *ret_body = fuzz_take_part(rest, &reply.body.length_bytes);
    reply.body.data = *ret_body;
    if (bits & 32) /* nothing is as hostile to its parser as the body itself */
        reply.retry_after = reply.body;
    return reply;
}

/* One after the other, over all ids. */
static void check_segments(const struct sample *sample)
{
    size_t at = 0;

    for (size_t i = 0; i < sample->segment_count; i++) {
        FUZZ_CHECK(sample->segments[i].start == at && sample->segments[i].end > at);
        FUZZ_CHECK(sample->segments[i].revision.length_bytes > 0 && utf8_is_valid(sample->segments[i].revision, NULL));
        at = sample->segments[i].end;
    }
    FUZZ_CHECK(sample->segment_count != 1 && (!sample->segment_count || at == sample->id_count));
}

static void check_sample(const struct sample_request *request, const struct sample *sample)
{
    bool all_zero = sample->id_count > 1;

    FUZZ_CHECK(sample->memory && sample->text.data && utf8_is_valid(sample->text, NULL));
    FUZZ_CHECK((sample->ids != NULL) == sample->trainable && (sample->logprobs != NULL) == sample->trainable);
    FUZZ_CHECK(sample->trainable == (sample->id_count > 0));
    for (size_t i = 0; i < sample->id_count; i++) {
        FUZZ_CHECK(isfinite(sample->logprobs[i]) && sample->logprobs[i] <= 0 && sample->logprobs[i] > -9999);
        FUZZ_CHECK(sample->ids[i] <= INT32_MAX);
        all_zero &= sample->logprobs[i] == 0;
    }
    FUZZ_CHECK(!all_zero || request->sampling.temperature == 0);
    FUZZ_CHECK(sample->finish == FINISH_STOP || sample->finish == FINISH_LENGTH || sample->finish == FINISH_TOOL_CALLS);
    FUZZ_CHECK(!sample->eos_in_ids || (sample->trainable && sample->finish == FINISH_STOP));
    check_segments(sample);
    if (request->prompt_ids)
        FUZZ_CHECK(sample->prompt_id_count == request->prompt_id_count &&
                   memcmp(sample->prompt_ids, prompt_ids, sizeof(prompt_ids)) == 0);
}

static void check_error(const struct sample_error *error)
{
    struct text message = {error->message, strnlen(error->message, SAMPLE_MESSAGE_BYTES)};

    FUZZ_CHECK((unsigned)error->code <= SAMPLE_EMPTY_COMPLETION && sample_failure_names[error->code]);
    FUZZ_CHECK(message.length_bytes > 0 && message.length_bytes < SAMPLE_MESSAGE_BYTES && utf8_is_valid(message, NULL));
    for (size_t i = 0; i < message.length_bytes; i++)
        FUZZ_CHECK((unsigned char)message.data[i] >= ' ' && message.data[i] != 0x7F);
    FUZZ_CHECK(error->retry_after_us >= 0 && error->retry_after_us <= HOUR_US);
    FUZZ_CHECK(!error->resample || error->retryable);
}

static void exchange_with(const struct engine_adapter *adapter, struct text rest)
{
    struct sample_request request = make_request(fuzz_take_byte(&rest));
    enum exchange_outcome outcome = EXCHANGE_NEXT;
    struct exchange exchange;
    struct engine_call call;
    struct sample_error error;

    exchange_init(&exchange, adapter, &request);
    for (int step = 0; outcome == EXCHANGE_NEXT && step < 8 && exchange_build(&exchange, &call, &error); step++) {
        _cleanup_free_ char *body = NULL;
        struct engine_reply reply = take_reply(&rest, &body);
        struct sample sample;
        engine_call_finish(&call);
        outcome = exchange_parse(&exchange, &reply, &sample, &error);
        if (outcome == EXCHANGE_SAMPLE)
            check_sample(&request, &sample);
        else
            FUZZ_CHECK(!sample.memory);
        if (outcome == EXCHANGE_ERROR)
            check_error(&error);
        sample_finish(&sample);
    }
    FUZZ_CHECK(exchange.step < 8);
    exchange_finish(&exchange);
}

static void probe_with(struct text rest)
{
    struct pool_engine settings = {.url = "http://127.0.0.1:1"};
    char message[200];
    int64_t at_us;
    struct pool *pool = pool_create(&settings, 1, message);
    struct pool_rules rules = POOL_RULES_DEFAULT;
    rules.ask_samples = true;
    pool_set_rules(pool, &rules);
    struct engine *engine = pool_probe_due(pool, 1000000, &at_us);
    bool more = engine != NULL;

    for (int step = 0; more; step++) {
        _cleanup_free_ char *body = NULL;
        struct engine_reply reply = take_reply(&rest, &body);
        struct engine_call call;
        int64_t timeout_us;
        FUZZ_CHECK(step < 64);
        more = engine_probe_build(engine, 2000000, &call, &timeout_us);
        if (!more)
            break;
        FUZZ_CHECK(call.path && timeout_us > 0);
        engine_call_finish(&call);
        more = engine_probe_reply(engine, &reply, NULL, 2000000);
    }
    FUZZ_CHECK(engine && !engine->probing);
    FUZZ_CHECK(engine->state == ENGINE_DOWN || engine->state == ENGINE_REFUSED || engine->adapter);
    FUZZ_CHECK(engine->state == ENGINE_UP || engine->state == ENGINE_DOWN || engine->state == ENGINE_REFUSED);
    FUZZ_CHECK(engine->in_flight_limit > 0 && engine->context_tokens >= 0);
    if (engine->state == ENGINE_DOWN)
        check_error(&engine->last_error);
    pool_destroy(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    size_t kind = fuzz_take_byte(&rest) % (adapter_count() + 1);

    if (kind < adapter_count())
        exchange_with(engine_adapters[kind], rest);
    else
        probe_with(rest);
    return 0;
}
