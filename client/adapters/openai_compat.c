/* openai_compat: servers of OpenAI's /v1/completions and /v1/chat/completions.
 *
 * Most such servers give text alone, or log-probabilities without ids: such a sample is text, not trainable. Where ids
 * show up (vLLM, SGLang, llama.cpp behind these routes) it is as good as any other. A completion request says every
 * sampling parameter, 0 for "off"; a chat request only standard or set ones, because hosted services refuse names
 * that they do not know. */
#include "client/adapters/reply.h"

static void put_filters(struct json_write *json, const struct sampling *sampling, bool off_too)
{
    if (off_too || sampling->top_k > 0)
        json_put_int(json, "top_k", sampling->top_k > 0 ? sampling->top_k : 0);
    if (off_too || sampling->min_p > 0)
        json_put_double(json, "min_p", sampling->min_p);
    if (off_too) {
        put_soft_double(json, sampling, "repetition_penalty", 1);
        put_soft_double(json, sampling, "repeat_penalty", 1);
    }
}

static void put_prompt(struct json_write *json, const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;

    if (exchange_is_chat(exchange)) {
        json_put_raw(json, "messages", request->messages);
        if (request->tools.data)
            json_put_raw(json, "tools", request->tools);
        if (request->sampling.chat_template_kwargs.data)
            json_put_raw(json, "chat_template_kwargs", request->sampling.chat_template_kwargs);
        json_put_bool(json, "logprobs", true);
        json_put_int(json, "top_logprobs", 1); /* 0 turns them off in llama.cpp */
        return;
    }
    if (request->prompt_ids)
        put_prompt_ids(json, "prompt", exchange);
    else
        json_put_text(json, "prompt", request->prompt);
    json_put_int(json, "logprobs", 1);
    json_put_bool(json, "return_token_ids", true);
}

void put_openai_request(struct json_write *json, const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;
    const struct sampling *sampling = &request->sampling;

    put_optional_text(json, "model", request->model);
    put_prompt(json, exchange);
    json_put_int(json, "n", 1);
    json_put_int(json, "max_tokens", sampling->max_tokens);
    json_put_double(json, "temperature", sampling->temperature);
    json_put_double(json, "top_p", sampling->top_p);
    put_soft_double(json, sampling, "presence_penalty", 0);
    put_soft_double(json, sampling, "frequency_penalty", 0);
    put_filters(json, sampling, !exchange_is_chat(exchange));
    put_stops(json, sampling, true);
    json_put_int(json, "seed", (int64_t)exchange->adapter->seed_sent(request->seed));
    json_put_bool(json, "stream", false);
    put_engine_options(json, sampling);
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    struct json_write json;

    ret_call->path = exchange_is_chat(exchange) ? "/v1/chat/completions" : "/v1/completions";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    put_openai_request(&json, exchange);
    json_object_end(&json);
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    static const struct draft_facts facts = {.read = draft_read_openai};

    if (!status_is_success(reply->status))
        return refuse_status(ret_error, reply);
    return draft_take(exchange, &facts, reply, ret_sample, ret_error);
}

static const struct engine_get gets[] = {GET_MODELS, GET_HEALTH, GET_END};

/* 31 bits: the narrowest of the servers that may stand behind these routes. */
const struct engine_adapter adapter_openai_compat = {
    .kind = "openai_compat",
    .gets = gets,
    .two_samples = {"/v1/completions", "prompt", "max_tokens"},
    .build = build,
    .parse = parse,
    .seed_sent = seed_of_31_bits,
};
