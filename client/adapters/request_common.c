/* The parts that requests of several engines share. */
#include "client/adapters/reply.h"

/* Names that the service sends itself, or that would change the meaning of a reply, in any engine's spelling. */
static const char *const reserved_options[] = {
    "prompt",
    "prompt_ids",
    "input_ids",
    "token_ids",
    "text",
    "messages",
    "tools",
    "chat_template_kwargs",
    "add_generation_prompt",
    "model",
    "n",
    "n_cmpl",
    "best_of",
    "n_predict",
    "max_tokens",
    "max_new_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "stop",
    "stop_token_ids",
    "seed",
    "sampling_seed",
    "stream",
    "stream_options",
    "logprobs",
    "top_logprobs",
    "prompt_logprobs",
    "n_probs",
    "return_logprob",
    "return_tokens",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "return_prompt_token_ids",
    "logprob_start_len",
    "top_logprobs_num",
    "return_text_in_logprobs",
    "response_fields",
    "echo",
    "rid",
    "request_id",
    "cache_salt",
    "sampling_params",
    "add_special_tokens",
    "include_reasoning",
};

bool engine_options_check(struct text options, struct text *ret_name)
{
    struct json_scan scan;
    struct text key;

    *ret_name = TEXT_NONE;
    json_scan_init(&scan, options);
    for (json_scan_object(&scan); json_scan_member(&scan, &key); json_scan_skip(&scan)) {
        for (size_t i = 0; i < ARRAY_LENGTH(reserved_options); i++) {
            if (text_equals(key, reserved_options[i])) {
                *ret_name = key;
                return false;
            }
        }
        /* An escape would hide a reserved name. */
        if (memchr(key.data, '\\', key.length_bytes)) {
            *ret_name = key;
            return false;
        }
    }
    return json_scan_end(&scan);
}

bool options_have(struct text options, const char *key)
{
    struct json_scan scan;
    struct text name;

    if (!options.data)
        return false;
    json_scan_init(&scan, options);
    for (json_scan_object(&scan); json_scan_member(&scan, &name); json_scan_skip(&scan))
        if (text_equals(name, key))
            return true;
    return false;
}

void put_engine_options(struct json_write *json, const struct sampling *sampling)
{
    struct json_scan scan;
    struct text name;

    if (!sampling->engine_options.data)
        return;
    json_scan_init(&scan, sampling->engine_options);
    for (json_scan_object(&scan); json_scan_member(&scan, &name);) {
        json_key_text(json, name);
        json_raw(json, json_scan_raw(&scan));
    }
}

void put_soft_double(struct json_write *json, const struct sampling *sampling, const char *key, double value)
{
    if (!options_have(sampling->engine_options, key))
        json_put_double(json, key, value);
}

void put_soft_bool(struct json_write *json, const struct sampling *sampling, const char *key, bool value)
{
    if (!options_have(sampling->engine_options, key))
        json_put_bool(json, key, value);
}

void put_soft_int(struct json_write *json, const struct sampling *sampling, const char *key, int64_t value)
{
    if (!options_have(sampling->engine_options, key))
        json_put_int(json, key, value);
}

void put_stops(struct json_write *json, const struct sampling *sampling, bool ids_too)
{
    if (sampling->stop_count) {
        json_key(json, "stop");
        json_array_begin(json);
        for (size_t i = 0; i < sampling->stop_count; i++)
            json_text(json, sampling->stop[i]);
        json_array_end(json);
    }
    if (ids_too && sampling->stop_token_id_count)
        json_put_u32s(json, "stop_token_ids", sampling->stop_token_ids, sampling->stop_token_id_count,
                      JSON_ARRAYS_PLAIN);
}

void put_optional_text(struct json_write *json, const char *key, struct text value)
{
    if (value.data)
        json_put_text(json, key, value);
}

bool exchange_is_chat(const struct exchange *exchange)
{
    return !exchange->request->prompt_ids && !exchange->request->prompt.data;
}

bool exchange_has_ids(const struct exchange *exchange)
{
    return exchange->request->prompt_ids || exchange->prompt_ids;
}

void put_prompt_ids(struct json_write *json, const char *key, const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;

    if (request->prompt_ids)
        json_put_u32s(json, key, request->prompt_ids, request->prompt_id_count, JSON_ARRAYS_PLAIN);
    else
        json_put_u32s(json, key, exchange->prompt_ids, exchange->prompt_id_count, JSON_ARRAYS_PLAIN);
}

void put_template(struct json_write *json, const struct sample_request *request)
{
    json_put_raw(json, "messages", request->messages);
    if (request->tools.data)
        json_put_raw(json, "tools", request->tools);
    json_put_bool(json, "add_generation_prompt", true);
    if (request->sampling.chat_template_kwargs.data)
        json_put_raw(json, "chat_template_kwargs", request->sampling.chat_template_kwargs);
}

/* The engine_options that the template reads: a request that only renders needs them, too. */
static const char *const template_options[] = {"chat_template", "continue_final_message", "documents",
                                               "mm_processor_kwargs", "reasoning_effort"};

void put_template_options(struct json_write *json, const struct sampling *sampling)
{
    struct json_scan scan;
    struct text name;

    if (!sampling->engine_options.data)
        return;
    json_scan_init(&scan, sampling->engine_options);
    for (json_scan_object(&scan); json_scan_member(&scan, &name);) {
        struct text value = json_scan_raw(&scan);

        for (size_t i = 0; i < ARRAY_LENGTH(template_options); i++)
            if (text_equals(name, template_options[i]))
                json_put_raw(json, template_options[i], value);
    }
}

const struct sampling_dialect vllm_dialect = {.max_tokens = "max_tokens", .repetition = "repetition_penalty"};

void put_vllm_tokenize(struct json_write *json, const struct sample_request *request)
{
    if (request->prompt.data) {
        json_put_text(json, "prompt", request->prompt);
    } else {
        put_template(json, request); /* which writes its special tokens itself */
        put_template_options(json, &request->sampling);
    }
    json_put_bool(json, "add_special_tokens", request->prompt.data);
}

void put_sampling(struct json_write *json, const struct sampling *sampling, const struct sampling_dialect *dialect)
{
    json_put_int(json, dialect->max_tokens, sampling->max_tokens);
    json_put_double(json, "temperature", sampling->temperature);
    json_put_double(json, "top_p", sampling->top_p);
    json_put_int(json, "top_k", sampling->top_k > 0 ? sampling->top_k : dialect->top_k_off);
    json_put_double(json, "min_p", sampling->min_p);
    put_soft_double(json, sampling, dialect->repetition, 1);
    put_soft_double(json, sampling, "presence_penalty", 0);
    put_soft_double(json, sampling, "frequency_penalty", 0);
    put_soft_bool(json, sampling, "ignore_eos", false);
}

uint64_t seed_of_63_bits(uint64_t seed)
{
    return seed & INT64_MAX;
}

uint64_t seed_of_31_bits(uint64_t seed)
{
    return seed & INT32_MAX;
}
