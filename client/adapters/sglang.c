/* SGLang, /generate: text or ids in, ids and log-probabilities out, with the weights' version.
 *
 * Seeds are honoured only by a server in deterministic mode, and no reply says so. Log-probabilities are taken behind
 * the temperature and before the filters. A chat goes through /v1/chat/completions, whose text comes out of parsers. */
#include "client/adapters/reply.h"

#include <math.h>

static void put_sampling_params(struct json_write *json, const struct sample_request *request)
{
    static const struct sampling_dialect dialect = {
        .max_tokens = "max_new_tokens", .repetition = "repetition_penalty", .top_k_off = -1};
    const struct sampling *sampling = &request->sampling;

    json_key(json, "sampling_params");
    json_object_begin(json);
    json_put_int(json, "n", 1);
    put_sampling(json, sampling, &dialect);
    put_soft_int(json, sampling, "min_new_tokens", 0);
    put_soft_bool(json, sampling, "skip_special_tokens", true);
    put_stops(json, sampling, true);
    json_put_int(json, "sampling_seed", (int64_t)seed_of_31_bits(request->seed));
    put_engine_options(json, sampling);
    json_object_end(json);
}

static void put_generate(struct json_write *json, const struct exchange *exchange)
{
    if (exchange->request->prompt_ids)
        put_prompt_ids(json, "input_ids", exchange);
    else
        json_put_text(json, "text", exchange->request->prompt);
    put_optional_text(json, "rid", exchange->request->request_id);
    put_sampling_params(json, exchange->request);
    json_put_bool(json, "return_logprob", true);
    json_put_int(json, "logprob_start_len", -1);
    json_put_int(json, "top_logprobs_num", 0);
    json_put_bool(json, "return_text_in_logprobs", false);
    json_put_bool(json, "return_prompt_token_ids", true);
    json_put_bool(json, "stream", false);
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    struct json_write json;

    ret_call->path = exchange_is_chat(exchange) ? "/v1/chat/completions" : "/generate";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    if (exchange_is_chat(exchange)) {
        put_openai_request(&json, exchange);
        put_optional_text(&json, "rid", exchange->request->request_id);
        json_put_bool(&json, "return_token_ids", true);
        put_soft_bool(&json, &exchange->request->sampling, "separate_reasoning", false);
    } else {
        put_generate(&json, exchange);
    }
    json_object_end(&json);
}

/* [logprob or null, id, text or null] */
static void read_tuples(struct reply_draft *draft, struct json_scan *scan)
{
    if (json_scan_null(scan))
        return;
    draft->has_logprobs = true;
    for (json_scan_array(scan); json_scan_element(scan);) {
        int place = 0;

        draft->entry = (struct draft_entry){.id = ID_UNNAMED};
        for (json_scan_array(scan); json_scan_element(scan); place++) {
            if (place == 0)
                draft_read_entry_logprob(draft, scan);
            else if (place == 1)
                draft_read_entry_id(draft, scan);
            else
                json_scan_skip(scan);
        }
        if (json_scan_ok(scan))
            draft_add_entry(draft);
    }
}

static void read_matched(struct reply_draft *draft, struct json_scan *scan)
{
    _cleanup_buffer_ struct buffer matched;

    buffer_init(&matched, draft->text.maximum_bytes);
    if (json_scan_peek(scan) != JSON_KIND_STRING) {
        json_scan_skip(scan);
        return;
    }
    json_scan_string(scan, &matched);
    draft->nan_replaced = text_equals(buffer_text(&matched), "NaN happened");
    draft->stopped_by_string = true;
}

/* {"type":"stop","matched":2}, or a string on older servers, or null. */
static void read_finish(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {{"type", draft_read_finish}, {"matched", read_matched}};

    if (json_scan_peek(scan) == JSON_KIND_OBJECT)
        draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
    else
        draft_read_finish(draft, scan);
}

static void read_meta(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"finish_reason", read_finish},
        {"weight_version", draft_read_revision},
        {"output_token_logprobs", read_tuples},
        {"completion_tokens", draft_read_completion_tokens},
        {"prompt_tokens", draft_read_prompt_tokens},
        {"cached_tokens", draft_read_cached_tokens},
    };

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
}

static void read_object(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"text", draft_read_text}, {"output_ids", draft_read_ids}, {"meta_info", read_meta}, DRAFT_COMMON_MEMBERS};

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
    draft->choice_count = draft->has_text || draft->ids.present;
}

static void read_generated(struct reply_draft *draft, struct json_scan *scan)
{
    draft_read_first(draft, scan, read_object);
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    struct draft_facts facts = {.read = exchange_is_chat(exchange) ? draft_read_openai : read_generated};

    if (!status_is_success(reply->status))
        return refuse_status(ret_error, reply);
    return draft_take(exchange, &facts, reply, ret_sample, ret_error);
}

/* Without it a hang-up is seen about four seconds later. */
static void abort_request(struct text request_id, struct engine_call *ret_call)
{
    struct json_write json;

    ret_call->path = "/abort_request";
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    json_put_text(&json, "rid", request_id);
    json_object_end(&json);
}

/* --- GETs ------------------------------------------------------------------------------------ */

static void read_model_info(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "model_path"))
            findings->found = scan_string_or_null(scan, &findings->model);
        else if (text_equals(key, "weight_version") && json_scan_peek(scan) == JSON_KIND_STRING)
            json_scan_string(scan, &findings->weight_version);
        else
            json_scan_skip(scan);
    }
}

static const struct engine_get gets[] = {
    {.path = "/model_info", .read = read_model_info},
    GET_MODELS,
    {.path = "/get_model_info", .read = read_model_info, .is_last_resort = true}, /* before 0.5 */
    GET_HEALTH,
    GET_END,
};

const struct engine_adapter adapter_sglang = {
    .kind = "sglang",
    .gets = gets,
    .detokenize = {"text", true},
    .tokenize = {"prompt", "add_special_tokens"},
    .two_samples = {"/generate", "text", "max_new_tokens", "sampling_params"},
    .logprobs = LOGPROBS_BEHIND_TEMPERATURE,
    .build = build,
    .parse = parse,
    .abort = abort_request,
    .seed_sent = seed_of_31_bits,
};
