/* llama.cpp's server, /completion: ids in, ids and log-probabilities out.
 *
 * It does not tell the prompt's ids, so a text is tokenized first, and a chat rendered before that. Seeds have 32 bits
 * and the highest ones mean "random": 31 bits are used, and the reply's settings say which seed it was.
 * Log-probabilities are the model's own whatever the sampler does, unless post_sampling_probs asks for probabilities
 * behind it. They part from the ids where a character is spelled by several tokens or a stop string was hit; such a
 * sample is refused. */
#include "client/adapters/event_stream_private.h"
#include "client/adapters/reply.h"

#include <math.h>

enum step { STEP_RENDER, STEP_TOKENIZE, STEP_COMPLETE };

static enum step step_of(const struct exchange *exchange)
{
    if (exchange->request->prompt_ids)
        return STEP_COMPLETE;
    return (exchange->request->prompt.data ? STEP_TOKENIZE : STEP_RENDER) + exchange->step;
}

static bool prepares(const struct exchange *exchange)
{
    return step_of(exchange) != STEP_COMPLETE;
}

static const char *lacks(const struct sampling *sampling)
{
    return sampling->stop_token_id_count ? "stop_token_ids" : NULL;
}

static struct text prompt_text(const struct exchange *exchange)
{
    return exchange->request->prompt.data ? exchange->request->prompt : buffer_text(&exchange->rendered);
}

/* --- requests ------------------------------------------------------------------------------------ */

static void put_tokenize(struct json_write *json, const struct exchange *exchange)
{
    json_put_text(json, "content", prompt_text(exchange));
    json_put_bool(json, "add_special", true);
    json_put_bool(json, "parse_special", true);
    json_put_bool(json, "with_pieces", false);
}

/* Only the filters that are on, in the order in which other engines apply them. */
static void put_samplers(struct json_write *json, const struct sampling *sampling)
{
    if (options_have(sampling->engine_options, "samplers"))
        return;
    json_key(json, "samplers");
    json_array_begin(json);
    json_write_string(json, "temperature");
    if (sampling->min_p > 0)
        json_write_string(json, "min_p");
    if (sampling->top_k > 0)
        json_write_string(json, "top_k");
    if (sampling->top_p < 1)
        json_write_string(json, "top_p");
    json_array_end(json);
}

static void put_fields(struct json_write *json)
{
    static const char *const fields[] = {
        "index",
        "content",
        "tokens",
        "completion_probabilities",
        "stop",
        "stop_type",
        "stopping_word",
        "truncated",
        "tokens_predicted",
        "tokens_evaluated",
        "generation_settings/seed",
    };

    json_key(json, "response_fields");
    json_array_begin(json);
    for (size_t i = 0; i < ARRAY_LENGTH(fields); i++)
        json_write_string(json, fields[i]);
    json_array_end(json);
}

static void put_completion(struct json_write *json, const struct exchange *exchange)
{
    static const struct sampling_dialect dialect = {.max_tokens = "n_predict", .repetition = "repeat_penalty"};
    const struct sampling *sampling = &exchange->request->sampling;

    if (exchange_has_ids(exchange))
        put_prompt_ids(json, "prompt", exchange);
    else
        json_put_text(json, "prompt", prompt_text(exchange));
    put_sampling(json, sampling, &dialect);
    put_soft_double(json, sampling, "typical_p", 1);
    put_soft_double(json, sampling, "dynatemp_range", 0);
    put_soft_int(json, sampling, "mirostat", 0);
    put_soft_bool(json, sampling, "cache_prompt", true);
    put_samplers(json, sampling);
    put_stops(json, sampling, false);
    json_put_int(json, "seed", (int64_t)seed_of_31_bits(exchange->request->seed));
    json_put_int(json, "n_probs", 1);
    json_put_bool(json, "return_tokens", true);
    json_put_bool(json, "stream", true);
    put_fields(json);
    put_engine_options(json, sampling);
}

static void build(const struct exchange *exchange, struct engine_call *ret_call)
{
    enum step step = step_of(exchange);
    struct json_write json;

    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    if (step == STEP_RENDER) {
        ret_call->path = "/apply-template";
        put_template(&json, exchange->request);
        put_template_options(&json, &exchange->request->sampling);
    } else if (step == STEP_TOKENIZE) {
        ret_call->path = "/tokenize";
        put_tokenize(&json, exchange);
    } else {
        ret_call->path = "/completion";
        put_completion(&json, exchange);
    }
    json_object_end(&json);
}

/* --- replies ------------------------------------------------------------------------------------- */

static enum exchange_outcome take_rendered(struct exchange *exchange, const struct engine_reply *reply,
                                           struct sample_error *ret_error)
{
    static const struct draft_member members[] = {{"prompt", draft_read_text}};
    struct reply_draft draft;
    enum exchange_outcome outcome;

    draft_init(&draft, reply->body);
    outcome = draft_read_body(&draft, reply, members, ARRAY_LENGTH(members), ret_error);
    buffer_clear(&exchange->rendered);
    buffer_append(&exchange->rendered, draft.text.data, draft.text.length_bytes);
    if (outcome == EXCHANGE_NEXT && (!draft.has_text || draft.text.failed || exchange->rendered.failed))
        outcome = refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the engine did not render the chat");
    else if (outcome == EXCHANGE_NEXT)
        exchange->step++;
    draft_finish(&draft);
    return outcome;
}

/* Behind the sampler: 0 is an infinity, and less is none. */
static void read_probability(struct reply_draft *draft, struct json_scan *scan)
{
    draft_read_entry_logprob(draft, scan);
    draft->entry.logprob = log(draft->entry.logprob);
}

static void read_probabilities(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"id", draft_read_entry_id},
        {"logprob", draft_read_entry_logprob},
        {"prob", read_probability},
        {"bytes", draft_read_entry_bytes},
    };

    draft_read_entries(draft, scan, members, ARRAY_LENGTH(members));
}

static void read_seed(struct reply_draft *draft, struct json_scan *scan)
{
    draft->seed_used = scan_integer_or(scan, -1);
}

/* {"seed":42,…}: the seed that was used, 4294967295 for a random one. */
static void read_settings(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {{"seed", read_seed}};

    draft_read_members_if_any(draft, scan, members, ARRAY_LENGTH(members));
}

static void append_ids(struct reply_draft *draft, struct json_scan *scan)
{
    draft_append_ids(draft, &draft->ids, scan);
}

static void read_evaluated(struct reply_draft *draft, struct json_scan *scan)
{
    draft_read_prompt_tokens(draft, scan);
    draft->prompt_tokens_read = draft->counts[COUNT_PROMPT];
}

/* Tokens kept of prompt and sample, sometimes more than both. */
static void read_kept(struct reply_draft *draft, struct json_scan *scan)
{
    draft_read_whole(draft, scan, "tokens_cached");
}

static void read_object(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"content", draft_read_text},
        {"index", draft_read_index},
        {"tokens", append_ids},
        {"completion_probabilities", read_probabilities},
        {"stop_type", draft_read_finish},
        {"tokens_predicted", draft_read_completion_tokens},
        {"tokens_evaluated", read_evaluated},
        {"tokens_cached", read_kept},
        {"generation_settings/seed", read_seed},
        {"generation_settings", read_settings},
        {"error", draft_read_error},
    };

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
    draft->choice_count = draft->has_text || draft->ids.present;
}

/* --- streams ------------------------------------------------------------------------------------- */

/* {"content":"Hi","tokens":[17],"stop":false,"tokens_predicted":1,"completion_probabilities":[…]} for each token, and
 * at last one with "stop_type". Text that the engine held back (parts of a character) is missing; its own count
 * shows it. There is no [DONE] here, but a proxy before the engine may write one. */
struct completion_stream {
    struct event_stream events;
    size_t count;
    bool ended;
};

static bool is_done(const struct stream_event *event)
{
    return text_equals(event->data, "[DONE]");
}

/* Everything but a whole event with the end is a stream that was cut: the same tokens are asked for again. */
static enum exchange_outcome refuse_stream(struct sample_error *ret_error, const struct completion_stream *stream,
                                           const char *problem)
{
    refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the stream %s after %zu events", problem, stream->count);
    ret_error->resample = false;
    return EXCHANGE_ERROR;
}

/* NEXT: the event is in the draft. */
static enum exchange_outcome read_event(struct reply_draft *draft, struct completion_stream *stream,
                                        const struct stream_event *event, const struct engine_reply *reply,
                                        struct sample_error *ret_error)
{
    struct json_scan scan;

    json_scan_init(&scan, event->data);
    if (event->is_error)
        scan_error_object(&scan, &draft->error);
    else
        read_object(draft, &scan);
    if (!json_scan_end(&scan))
        return refuse_stream(ret_error, stream, "has an event that is no JSON object");
    if (draft->error.present)
        return refuse_engine_error(ret_error, draft->error.code_number ? (int)draft->error.code_number : 500,
                                   &draft->error, reply);
    if (draft->choice_is_another)
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the stream has events of another sample");
    stream->ended = draft->has_finish;
    stream->count++;
    return EXCHANGE_NEXT;
}

static enum exchange_outcome read_stream(struct reply_draft *draft, const struct engine_reply *reply,
                                         struct sample_error *ret_error)
{
    struct completion_stream stream = {.count = 0};
    struct stream_event event;
    enum exchange_outcome outcome = EXCHANGE_NEXT;

    event_stream_init(&stream.events, reply->body);
    while (outcome == EXCHANGE_NEXT && event_stream_next(&stream.events, &event)) {
        if (is_done(&event))
            continue;
        outcome = stream.ended ? refuse_stream(ret_error, &stream, "has events behind its end")
                               : read_event(draft, &stream, &event, reply, ret_error);
    }
    if (outcome == EXCHANGE_NEXT && !stream.ended)
        outcome = refuse_stream(ret_error, &stream, "ended without its last event");
    event_stream_finish(&stream.events);
    return outcome;
}

/* --- from bytes to a sample ------------------------------------------------------------------------ */

/* Something before the engine that does not stream answers with the whole. */
static bool is_whole(struct text body)
{
    struct json_scan scan;
    enum json_kind kind;

    json_scan_init(&scan, body);
    kind = json_scan_peek(&scan);
    return kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY;
}

/* Ids that the engine lost are no empty completion. */
static bool lost_ids(const struct reply_draft *draft)
{
    return draft->ids.present && !draft->ids.count && draft->counts[COUNT_COMPLETION] > 0;
}

static enum exchange_outcome check_reply(const struct exchange *exchange, struct reply_draft *draft,
                                         const struct json_scan *scan, const struct engine_reply *reply,
                                         struct sample *ret_sample, struct sample_error *ret_error)
{
    draft->stopped_by_string = text_equals(buffer_text(&draft->finish), "word");
    draft->seed_honoured =
        draft->seed_used >= 0 && (uint64_t)draft->seed_used == seed_of_31_bits(exchange->request->seed);
    if (json_scan_ok(scan) && lost_ids(draft))
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the engine counts %lld tokens and gives no ids",
                            (long long)draft->counts[COUNT_COMPLETION]);
    return draft_check(exchange, draft, scan, reply, ret_sample, ret_error);
}

static enum exchange_outcome take_completion(const struct exchange *exchange, const struct engine_reply *reply,
                                             struct sample *ret_sample, struct sample_error *ret_error)
{
    struct reply_draft draft;
    struct json_scan scan;
    enum exchange_outcome outcome = EXCHANGE_NEXT;

    draft_init(&draft, reply->body);
    draft.wants_bytes = exchange->request->wants_token_ends;
    json_scan_init(&scan, reply->body);
    if (is_whole(reply->body))
        draft_read_first(&draft, &scan, read_object);
    else if ((outcome = read_stream(&draft, reply, ret_error)) == EXCHANGE_NEXT)
        scan.at = scan.end; /* the events were read, one by one */
    if (outcome == EXCHANGE_NEXT)
        outcome = check_reply(exchange, &draft, &scan, reply, ret_sample, ret_error);
    draft_finish(&draft);
    return outcome;
}

static enum exchange_outcome parse(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error)
{
    enum step step = step_of(exchange);

    if (step == STEP_TOKENIZE && reply->status == 404) { /* something before the engine that lacks the route */
        exchange->step++;
        return EXCHANGE_NEXT;
    }
    if (!status_is_success(reply->status))
        return refuse_status(ret_error, reply);
    if (step == STEP_RENDER)
        return take_rendered(exchange, reply, ret_error);
    if (step == STEP_TOKENIZE)
        return exchange_take_prompt_ids(exchange, reply, ret_error);
    return take_completion(exchange, reply, ret_sample, ret_error);
}

/* --- GETs ------------------------------------------------------------------------------------ */

static void read_generation_defaults(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "n_ctx"))
            findings->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
}

static void read_props(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "total_slots")) {
            findings->slots = scan_integer_or(scan, -1);
            findings->found |= findings->slots >= 0;
        } else if (text_equals(key, "default_generation_settings") && json_scan_peek(scan) == JSON_KIND_OBJECT) {
            read_generation_defaults(findings, scan);
        } else if (text_equals(key, "model_alias")) {
            scan_string_or_null(scan, &findings->model);
        } else if (text_equals(key, "build_info")) {
            scan_string_or_null(scan, &findings->version);
        } else if (text_equals(key, "chat_template") && json_scan_peek(scan) == JSON_KIND_STRING) {
            json_scan_string(scan, &findings->chat_template);
        } else {
            json_scan_skip(scan);
        }
    }
}

static const struct engine_get gets[] = {
    {.path = "/props", .read = read_props},
    GET_MODELS_AS_LAST_RESORT,
    GET_HEALTH,
    GET_END,
};

const struct engine_adapter adapter_llamacpp = {
    .kind = "llamacpp",
    .gets = gets,
    .detokenize = {"content", false},
    .tokenize = {"content", "add_special"},
    .two_samples = {"/completion", "prompt", "n_predict"},
    .logprobs = LOGPROBS_OF_MODEL,
    .token_bytes = 2048, /* an event has the token three times: as text, as bytes, among the likeliest */
    .lacks = lacks,
    .lacks_why = "cannot stop at token ids",
    .prepares = prepares,
    .build = build,
    .parse = parse,
    .seed_sent = seed_of_31_bits,
    .repeats_seed = true,
};
