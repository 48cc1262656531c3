/* vLLM, /v1/completions: text or ids in, ids and log-probabilities out. Also its copies.
 *
 * A chat is rendered to ids by /tokenize first, because the chat route's text comes out of parsers; a server without
 * that route is asked by the chat route after all. Log-probabilities are the model's own by default; with
 * --logprobs-mode processed_logprobs those of the sampling policy, and no reply says which. */
#include "client/adapters/reply.h"

enum step { STEP_COMPLETE, STEP_TOKENIZE, STEP_COMPLETE_TOKENIZED, STEP_CHAT };

static enum step step_of(const struct exchange *exchange)
{
    if (exchange->request->prompt_ids || exchange->request->prompt.data)
        return STEP_COMPLETE;
    return STEP_TOKENIZE + exchange->step;
}

static bool prepares(const struct exchange *exchange)
{
    return step_of(exchange) == STEP_TOKENIZE;
}

static void put_prompt(struct json_write *json, const struct exchange *exchange, enum step step)
{
    if (step == STEP_CHAT) {
        put_template(json, exchange->request);
        json_put_bool(json, "add_special_tokens", false);
        json_put_bool(json, "logprobs", true);
        json_put_int(json, "top_logprobs", 0);
        return;
    }
    if (exchange_has_ids(exchange)) {
        put_prompt_ids(json, "prompt", exchange);
        json_put_bool(json, "add_special_tokens", false);
    } else {
        json_put_text(json, "prompt", exchange->request->prompt);
        json_put_bool(json, "add_special_tokens", true);
    }
    json_put_int(json, "logprobs", 0);
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    const struct sample_request *request = exchange->request;
    enum step step = step_of(exchange);
    struct json_write json;

    ret_call->path = step == STEP_TOKENIZE ? "/tokenize"
                     : step == STEP_CHAT   ? "/v1/chat/completions"
                                           : "/v1/completions";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    put_optional_text(&json, "model", request->model);
    if (step == STEP_TOKENIZE) {
        put_vllm_tokenize(&json, request);
    } else {
        put_prompt(&json, exchange, step);
        json_put_int(&json, "n", 1);
        put_sampling(&json, &request->sampling, &vllm_dialect);
        put_soft_int(&json, &request->sampling, "min_tokens", 0);
        put_soft_bool(&json, &request->sampling, "skip_special_tokens", true);
        put_stops(&json, &request->sampling, true);
        json_put_int(&json, "seed", (int64_t)seed_of_63_bits(request->seed));
        json_put_bool(&json, "stream", false);
        json_put_bool(&json, "return_token_ids", true);
        json_put_bool(&json, "return_tokens_as_token_ids", true);
        put_optional_text(&json, "cache_salt", request->cache_salt);
        put_optional_text(&json, "request_id", request->request_id);
        put_engine_options(&json, &request->sampling);
    }
    json_object_end(&json);
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    static const struct draft_facts facts = {.read = draft_read_openai, .seed_honoured = true};
    enum step step = step_of(exchange);

    if (step == STEP_TOKENIZE && reply->status == 404) {
        exchange->step = STEP_CHAT - STEP_TOKENIZE;
        return EXCHANGE_NEXT;
    }
    if (!status_is_success(reply->status))
        return refuse_status(ret_error, reply);
    if (step == STEP_TOKENIZE)
        return exchange_take_prompt_ids(exchange, reply, ret_error);
    return draft_take(exchange, &facts, reply, ret_sample, ret_error);
}

/* --- GETs ------------------------------------------------------------------------------------ */

static void read_version(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "version")) {
            findings->found = scan_string_or_null(scan, &findings->version);
        } else {
            findings->is_ambiguous = true; /* many services have a version */
            json_scan_skip(scan);
        }
    }
}

static void read_weight_info(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "weight_version") && json_scan_peek(scan) == JSON_KIND_STRING)
            findings->found = json_scan_string(scan, &findings->weight_version);
        else
            json_scan_skip(scan);
    }
}

const struct engine_get vllm_gets[] = {
    {.path = "/version", .read = read_version},
    GET_MODELS,
    {.path = "/weight_info", .read = read_weight_info},
    GET_HEALTH,
    GET_END,
};

const struct engine_adapter adapter_vllm = {
    .kind = "vllm",
    .gets = vllm_gets,
    .detokenize = {"prompt", true},
    .tokenize = {"prompt", "add_special_tokens"},
    .two_samples = {"/v1/completions", "prompt", "max_tokens"},
    .prepares = prepares,
    .build = build,
    .parse = parse,
    .seed_sent = seed_of_63_bits,
};
