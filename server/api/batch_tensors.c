/* A batch, or a lease, as a file of tensors: its arrays as columns, the rest as JSON in __metadata__.reply. */
#include "server/api/batches.h"

#include "server/api/leases.h"
#include "server/base/blocks.h"
#include "server/objective_call/safetensors.h"
#include "server/objective_call/tensors.h"
#include "server/render/columns.h"
#include "server/render/lease.h"
#include "server/render/render.h"
#include "server/settings/settings.h"

/* The widest first, so that all are aligned. */
static const struct {
    enum returns_array which;
    enum safetensors_type type;
} rows[] = {
    {RETURNS_SURROGATES, TENSOR_F64},     {RETURNS_CONTRIBUTIONS, TENSOR_F64}, {RETURNS_LOGPROBS, TENSOR_F32},
    {RETURNS_COMPLETION_IDS, TENSOR_U32}, {RETURNS_PROMPT_IDS, TENSOR_U32},    {RETURNS_COMPLETION_MASK, TENSOR_U8},
};
#define PARTS_MAX (ARRAY_LENGTH(rows) + 2)

struct parts {
    struct safetensors_column columns[PARTS_MAX];
    struct buffer *data[PARTS_MAX];
    size_t count;
    size_t bytes;
};

static void add_part(struct parts *parts, const char *name, enum safetensors_type type, struct buffer *data)
{
    parts->columns[parts->count] =
        (struct safetensors_column){name, type, data->length_bytes / safetensors_type_bytes[type]};
    parts->data[parts->count++] = data;
    parts->bytes += data->length_bytes;
}

static void list_parts(struct render_columns *columns, struct parts *ret_parts)
{
    *ret_parts = (struct parts){0};
    add_part(ret_parts, "cu_seqlens", TENSOR_I64, &columns->cu_seqlens);
    if (columns->arrays & 1U << RETURNS_PROMPT_IDS)
        add_part(ret_parts, "cu_prompts", TENSOR_I64, &columns->cu_prompts);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (columns->arrays & 1U << rows[i].which)
            add_part(ret_parts, returns_names[rows[i].which], rows[i].type, &columns->columns[rows[i].which]);
}

/* Each column goes when it has been copied, so that the batch is not there twice. */
static void answer_file(struct call *call, struct render_columns *columns, struct text json)
{
    struct reply *reply = &call->reply;
    struct parts parts;

    list_parts(columns, &parts);
    char *at = reply->tail = block_take(parts.bytes);
    if (!at) {
        call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this reply now");
        return;
    }
    reply->tail_bytes = parts.bytes;
    for (size_t i = 0; i < parts.count; i++) {
        if (parts.data[i]->length_bytes)
            memcpy(at, parts.data[i]->data, parts.data[i]->length_bytes);
        at += parts.data[i]->length_bytes;
        buffer_finish(parts.data[i]);
    }
    safetensors_write_header(&reply->body, parts.columns, parts.count, "reply", json);
    call_answer_bytes(call, 200, SAFETENSORS_MEDIA_TYPE);
}

void batch_tensors_answer(struct call *call, struct text batch_id)
{
    _cleanup_(render_columns_finish) struct render_columns columns;
    _cleanup_buffer_ struct buffer json;

    size_t maximum_bytes = (size_t)call->settings->memory_budget_bytes;
    render_columns_init(&columns, 0, maximum_bytes);
    buffer_init(&json, maximum_bytes);
    int status = render_batch_columns(call, batch_id, &columns, &json);
    if (status < 0)
        return;
    if (status > 0) /* it runs: there is nothing but its state */
        render_answer_batch(call, batch_id);
    else
        answer_file(call, &columns, buffer_text(&json));
}

void lease_tensors_answer(struct call *call, struct text run, struct text lease_id, const struct lease_share *share)
{
    _cleanup_(render_columns_finish) struct render_columns columns;
    _cleanup_buffer_ struct buffer json;

    size_t maximum_bytes = (size_t)call->settings->memory_budget_bytes;
    render_columns_init(&columns, 0, maximum_bytes);
    buffer_init(&json, maximum_bytes);
    if (render_lease_columns(call, run, lease_id, share, &columns, &json) == 0)
        answer_file(call, &columns, buffer_text(&json));
}
