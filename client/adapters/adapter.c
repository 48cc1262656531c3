#include "client/adapters/adapter.h"
#include "client/adapters/reply.h"

#include <string.h>

const char *const sample_failure_names[] = {SAMPLE_FAILURE_WORDS(WORD_TEXT)};

const char *const logprobs_mode_names[] = {LOGPROBS_MODE_WORDS(WORD_TEXT)};

const char *const finish_reason_names[] = {
    [FINISH_STOP] = "stop",
    [FINISH_LENGTH] = "length",
    [FINISH_TOOL_CALLS] = "tool_calls",
};

#define ENGINE_KIND(name) #name,
const char *const engine_kinds[] = {
#include "client/adapters/kinds.def"
    NULL};
#undef ENGINE_KIND

#define ENGINE_KIND(name) &adapter_##name,
const struct engine_adapter *const engine_adapters[] = {
#include "client/adapters/kinds.def"
    NULL};
#undef ENGINE_KIND

const struct engine_adapter *engine_adapter_find(struct text kind)
{
    for (size_t i = 0; engine_adapters[i]; i++)
        if (text_equals(kind, engine_adapters[i]->kind))
            return engine_adapters[i];
    return NULL;
}

bool engine_kind_samples(const char *kind)
{
    const struct engine_adapter *adapter = kind ? engine_adapter_find(text_of(kind)) : NULL;

    return !adapter || adapter->build;
}

const char *engine_adapter_lacks(const struct engine_adapter *adapter, const struct sampling *sampling)
{
    return adapter->lacks ? adapter->lacks(sampling) : NULL;
}

void exchange_init(struct exchange *exchange, const struct engine_adapter *adapter,
                   const struct sample_request *request)
{
    *exchange = (struct exchange){.adapter = adapter, .request = request};
    buffer_init(&exchange->rendered, ENGINE_CALL_BODY_BYTES);
}

void exchange_finish(struct exchange *exchange)
{
    free(exchange->prompt_ids);
    exchange->prompt_ids = NULL;
    exchange->prompt_id_count = 0;
    buffer_finish(&exchange->rendered);
    sample_finish(&exchange->pending);
}

bool exchange_is_preparing(const struct exchange *exchange)
{
    return exchange->adapter->prepares && exchange->adapter->prepares(exchange);
}

bool exchange_build(const struct exchange *exchange, struct engine_call *ret_call, struct sample_error *ret_error)
{
    const struct engine_adapter *adapter = exchange->adapter;
    const char *lacking = engine_adapter_lacks(adapter, &exchange->request->sampling);

    if (!adapter->build) {
        *ret_error = (struct sample_error){.code = SAMPLE_ENGINE_ERROR};
        error_message(ret_error, "an engine of kind %s samples nothing", adapter->kind);
        return false;
    }
    if (lacking) {
        *ret_error = (struct sample_error){.code = SAMPLE_ENGINE_ERROR};
        error_message(ret_error, "%s: an engine of kind %s %s", lacking, adapter->kind, adapter->lacks_why);
        return false;
    }
    *ret_call = (struct engine_call){.method = "POST"};
    buffer_init(&ret_call->body, ENGINE_CALL_BODY_BYTES);
    adapter->build(exchange, ret_call);
    if (!ret_call->body.failed)
        return true;
    engine_call_finish(ret_call);
    *ret_error = (struct sample_error){.code = SAMPLE_CONTEXT_OVERFLOW};
    error_message(ret_error, "the request would be larger than %d bytes, or memory ran out", ENGINE_CALL_BODY_BYTES);
    return false;
}

bool exchange_build_abort(const struct exchange *exchange, struct engine_call *ret_call)
{
    const struct engine_adapter *adapter = exchange->adapter;

    if (!adapter->abort || !exchange->request->request_id.data || exchange_is_preparing(exchange))
        return false;
    *ret_call = (struct engine_call){.method = "POST"};
    buffer_init(&ret_call->body, ENGINE_CALL_BODY_BYTES);
    adapter->abort(exchange->request->request_id, ret_call);
    if (!ret_call->body.failed)
        return true;
    engine_call_finish(ret_call);
    return false;
}

void engine_call_finish(struct engine_call *call)
{
    buffer_finish(&call->body);
}

enum exchange_outcome exchange_parse(struct exchange *exchange, const struct engine_reply *reply,
                                     struct sample *ret_sample, struct sample_error *ret_error)
{
    *ret_sample = (struct sample){.memory = NULL};
    *ret_error = (struct sample_error){.status = reply->status};
    return exchange->adapter->parse(exchange, reply, ret_sample, ret_error);
}

size_t exchange_reply_limit_bytes(const struct exchange *exchange)
{
    const struct sample_request *request = exchange->request;
    size_t prompt_bytes =
        request->prompt.length_bytes + request->messages.length_bytes + exchange->rendered.length_bytes;
    size_t prompt_ids = request->prompt_id_count + exchange->prompt_id_count + prompt_bytes;
    size_t tokens = request->sampling.max_tokens > 0 ? (size_t)request->sampling.max_tokens : 0;
    size_t token_bytes = exchange->adapter->token_bytes ? exchange->adapter->token_bytes : 512;
    const size_t id_bytes = 12;
    const size_t rest_bytes = 1024 * 1024;
    const size_t most_bytes = 1024 * 1024 * 1024;

    if (tokens > most_bytes / token_bytes || prompt_ids > most_bytes / id_bytes)
        return most_bytes;
    return tokens * token_bytes + prompt_ids * id_bytes + rest_bytes;
}

void sample_finish(struct sample *sample)
{
    free(sample->memory);
    *sample = (struct sample){.memory = NULL};
}
