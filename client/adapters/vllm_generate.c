/* vLLM, /inference/v1/generate: ids in, ids out, with the versions of the weights; the text is asked for afterwards.
 *
 * Needs --enable-scale-out. Its sampling parameters are the engine's own, so that no generation_config.json fills
 * gaps. */
#include "client/adapters/reply.h"

enum step { STEP_TOKENIZE, STEP_GENERATE, STEP_DETOKENIZE };

static enum step step_of(const struct exchange *exchange)
{
    return (exchange->request->prompt_ids ? STEP_GENERATE : STEP_TOKENIZE) + exchange->step;
}

static bool prepares(const struct exchange *exchange)
{
    return step_of(exchange) == STEP_TOKENIZE;
}

static const char *lacks(const struct sampling *sampling)
{
    return sampling->stop_count ? "stop" : NULL;
}

/* --- requests ------------------------------------------------------------------------------------ */

static void put_generate(struct json_write *json, const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;
    const struct sampling *sampling = &request->sampling;

    put_prompt_ids(json, "token_ids", exchange);
    put_optional_text(json, "request_id", request->request_id);
    put_optional_text(json, "cache_salt", request->cache_salt);
    json_put_bool(json, "stream", false);
    json_key(json, "sampling_params");
    json_object_begin(json);
    json_put_int(json, "n", 1);
    put_sampling(json, sampling, &vllm_dialect);
    put_soft_int(json, sampling, "min_tokens", 0);
    json_put_int(json, "seed", (int64_t)seed_of_63_bits(request->seed));
    json_put_int(json, "logprobs", 0);
    put_stops(json, sampling, true);
    put_engine_options(json, sampling);
    json_object_end(json);
}

/* The end-of-sequence id is no text. */
static size_t ids_with_text(const struct sample *sample)
{
    return sample->id_count - (sample->eos_in_ids ? 1 : 0);
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    static const char *const paths[] = {"/tokenize", "/inference/v1/generate", "/detokenize"};
    enum step step = step_of(exchange);
    struct json_write json;

    ret_call->path = paths[step];
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    put_optional_text(&json, "model", exchange->request->model);
    if (step == STEP_TOKENIZE)
        put_vllm_tokenize(&json, exchange->request);
    else if (step == STEP_GENERATE)
        put_generate(&json, exchange);
    else
        json_put_u32s(&json, "tokens", exchange->pending.ids, ids_with_text(&exchange->pending), JSON_ARRAYS_PLAIN);
    json_object_end(&json);
}

/* --- replies ------------------------------------------------------------------------------------- */

static enum exchange_outcome take_ids(struct exchange *exchange, const struct engine_reply *reply,
                                      struct sample *ret_sample, struct sample_error *ret_error)
{
    static const struct draft_facts facts = {.read = draft_read_openai, .seed_honoured = true, .text_follows = true};
    enum exchange_outcome outcome = draft_take(exchange, &facts, reply, ret_sample, ret_error);

    if (outcome == EXCHANGE_SAMPLE && !ret_sample->ids) {
        sample_finish(ret_sample);
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the reply has no token ids");
    }
    if (outcome != EXCHANGE_SAMPLE || !ids_with_text(ret_sample))
        return outcome;
    exchange->pending = *ret_sample;
    *ret_sample = (struct sample){.memory = NULL};
    exchange->step++;
    return EXCHANGE_NEXT;
}

static enum exchange_outcome take_text(struct exchange *exchange, const struct engine_reply *reply,
                                       struct sample *ret_sample, struct sample_error *ret_error)
{
    static const struct draft_member members[] = {{"prompt", draft_read_text}, DRAFT_COMMON_MEMBERS};
    struct reply_draft draft;
    struct sample parts = exchange->pending;
    enum exchange_outcome outcome;

    draft_init(&draft, reply->body);
    outcome = draft_read_body(&draft, reply, members, ARRAY_LENGTH(members), ret_error);
    parts.text = buffer_text(&draft.text);
    parts.text_replaced = draft.replaced;
    if (outcome == EXCHANGE_NEXT && draft.error.present)
        outcome = refuse_engine_error(ret_error, 500, &draft.error, reply);
    else if (outcome == EXCHANGE_NEXT && (!draft.has_text || draft.text.failed || !sample_pack(&parts, ret_sample)))
        outcome = refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the engine gave no text for the ids");
    else if (outcome == EXCHANGE_NEXT)
        outcome = EXCHANGE_SAMPLE;
    draft_finish(&draft);
    return outcome;
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    enum step step = step_of(exchange);

    if (!status_is_success(reply->status))
        return refuse_status(ret_error, reply);
    if (step == STEP_TOKENIZE)
        return exchange_take_prompt_ids(exchange, reply, ret_error);
    if (step == STEP_GENERATE)
        return take_ids(exchange, reply, ret_sample, ret_error);
    return take_text(exchange, reply, ret_sample, ret_error);
}

const struct engine_adapter adapter_vllm_generate = {
    .kind = "vllm_generate",
    .gets = vllm_gets,
    .only_by_settings = true, /* it is the same server as vllm */
    .detokenize = {"prompt", true},
    .tokenize = {"prompt", "add_special_tokens"},
    .lacks = lacks,
    .lacks_why = "cannot stop at strings: it answers with ids alone",
    .prepares = prepares,
    .build = build,
    .parse = parse,
    .seed_sent = seed_of_63_bits,
};
