#include "server/objective_call/tensors.h"

#include "server/base/blocks.h"
#include "server/settings/settings.h"

#include <stdio.h>
#include <string.h>

#define OFFSETS "cu_seqlens"

struct objective_tensors {
    char *body;
    struct safetensors file;
    const struct safetensor *offsets;
    size_t tokens;
    const struct field *rows[SAFETENSORS_MAX]; /* where each goes; NULL: OFFSETS */
    void *converted[SAFETENSORS_MAX];          /* float or double, see converted_type(); NULL: not needed */
};

void objective_tensors_release(struct objective_tensors *tensors)
{
    block_give(TAKE_PTR(tensors->body));
    for (size_t i = 0; i < SAFETENSORS_MAX; i++)
        block_give(TAKE_PTR(tensors->converted[i]));
}

void objective_tensors_destroy(struct objective_tensors *tensors)
{
    if (!tensors)
        return;
    objective_tensors_release(tensors);
    safetensors_finish(&tensors->file);
    free(tensors);
}

/* --- the file -------------------------------------------------------------------------------------------- */

static size_t offset_of(const struct objective_tensors *tensors, size_t sequence)
{
    return (size_t)safetensor_value(tensors->offsets, sequence);
}

static bool is_integer_type(enum safetensors_type type)
{
    return type == TENSOR_I32 || type == TENSOR_I64 || type == TENSOR_U32;
}

static int check_offsets(struct call *call, struct objective_tensors *tensors)
{
    const struct safetensor *offsets = tensors->offsets = safetensors_find(&tensors->file, OFFSETS);
    const struct safetensor *logprobs = safetensors_find(&tensors->file, "logprobs");
    double before = 0;
    char path[PATH_BYTES];

    if (!offsets || !logprobs)
        return call_refuse(call, ERR_MISSING_FIELD, offsets ? "logprobs" : OFFSETS, "this tensor is required");
    if (!is_integer_type(offsets->type) || offsets->rank != 1 || offsets->count < 2)
        return call_refuse(call, ERR_INVALID_FIELD, OFFSETS,
                           "expected I32 or I64 of shape [n+1]: where each sequence begins, and the end");
    tensors->tokens = logprobs->count;
    for (size_t i = 0; i < offsets->count; i++) {
        double offset = safetensor_value(offsets, i);
        bool rises = offset >= before && offset <= (double)tensors->tokens;
        if (!rises || (i == 0 && offset != 0))
            path_index(path, "", OFFSETS, i);
        if (i == 0 && offset != 0)
            return call_refuse(call, ERR_INVALID_FIELD, path, "the first sequence begins at 0");
        if (!rises)
            return call_refuse(call, ERR_INVALID_FIELD, path, "offsets rise from 0 to the %zu values of logprobs",
                               tensors->tokens);
        before = offset;
    }
    if (before != (double)tensors->tokens)
        return call_refuse(call, ERR_LENGTH_MISMATCH, OFFSETS, "it ends at %.0f, but logprobs has %zu values", before,
                           tensors->tokens);
    return 0;
}

static int check_lengths(struct call *call, const struct objective_tensors *tensors)
{
    for (size_t i = 0; i < tensors->file.count; i++) {
        const struct safetensor *tensor = &tensors->file.tensors[i];
        if (tensor == tensors->offsets)
            continue;
        if (tensor->rank != 1 || tensor->count != tensors->tokens)
            return call_refuse(call, ERR_LENGTH_MISMATCH, tensor->name,
                               "expected shape [%zu], one value for each token of the whole request", tensors->tokens);
    }
    return 0;
}

/* The JSON takes the body's place, so that all that follows reads it as ever. */
static int take_request(struct call *call, struct objective_tensors *tensors)
{
    struct text request = safetensors_metadata(&tensors->file, "request");
    if (!request.data)
        return call_refuse(call, ERR_MISSING_FIELD, "__metadata__.request", "the JSON of the request is missing");
    tensors->body = call->body;
    call->body = malloc(request.length_bytes + 1);
    call->body_bytes = 0;
    if (!call->body)
        return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
    memcpy(call->body, request.data, request.length_bytes);
    call->body[request.length_bytes] = '\0';
    call->body_bytes = request.length_bytes;
    return 0;
}

int objective_tensors_read(struct objective_call *objective, const char *const *lift)
{
    struct call *call = objective->call;
    struct objective_tensors *tensors = objective->tensors = xcalloc(1, sizeof *tensors);
    char message[SAFETENSORS_MESSAGE_BYTES];
    const char *name;

    if (safetensors_read((struct text){call->body, call->body_bytes}, (size_t)call->settings->body_limit_bytes,
                         &tensors->file, &name, message) < 0)
        return call_refuse(call, ERR_INVALID_FIELD, *name ? name : NULL, "this is no safetensors file: %s", message);
    if (take_request(call, tensors) < 0 || check_offsets(call, tensors) < 0 || check_lengths(call, tensors) < 0)
        return -1;
    return json_input_init(&objective->input, call, lift);
}

/* --- its arrays ------------------------------------------------------------------------------------------ */

static const struct field *find_row(const struct field *fields, size_t field_count, const char *name)
{
    for (size_t i = 0; i < field_count; i++)
        if (fields[i].kind == FIELD_NUMBERS && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* Arrays that are read through objective_values_of() may stay float. */
static bool may_be_float(const char *name)
{
    static const char *const names[] = {"logprobs",         "old_logprobs", "ref_logprobs",   "rollout_logprobs",
                                        "teacher_logprobs", "entropy",      "sum_pi_squared", "token_rewards"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_half(enum safetensors_type type)
{
    return type == TENSOR_F16 || type == TENSOR_BF16;
}

static bool is_float_type(enum safetensors_type type)
{
    return type == TENSOR_F64 || type == TENSOR_F32 || is_half(type);
}

/* No copy is needed for doubles, for floats where they may stay, and for a mask of bytes. */
static bool needs_copy(const struct safetensor *tensor)
{
    bool mask = strcmp(tensor->name, "mask") == 0;
    if (tensor->type == TENSOR_F64 || (tensor->type == TENSOR_F32 && may_be_float(tensor->name)))
        return !tensor->aligned;
    return !(mask && (tensor->type == TENSOR_U8 || tensor->type == TENSOR_BOOL));
}

/* A copy is made as double, or as float for a half where floats may stay. */
static enum safetensors_type converted_type(const struct safetensor *tensor)
{
    return is_half(tensor->type) && may_be_float(tensor->name) ? TENSOR_F32 : TENSOR_F64;
}

static void *convert(const struct safetensor *tensor)
{
    enum safetensors_type type = converted_type(tensor);
    void *values = block_take((tensor->count + 1) * safetensors_type_bytes[type]);
    if (values && type == TENSOR_F32)
        safetensor_widen(tensor, values);
    for (size_t k = 0; values && type == TENSOR_F64 && k < tensor->count; k++)
        ((double *)values)[k] = safetensor_value(tensor, k);
    return values;
}

static int prepare(struct objective_call *objective, const struct field *fields, size_t field_count)
{
    struct objective_tensors *tensors = objective->tensors;
    if (objective->count + 1 != tensors->offsets->count)
        return call_refuse(objective->call, ERR_LENGTH_MISMATCH, "sequences", "%zu sequences, but %s has %zu offsets",
                           objective->count, OFFSETS, tensors->offsets->count);
    for (size_t i = 0; i < tensors->file.count; i++) {
        const struct safetensor *tensor = &tensors->file.tensors[i];
        if (tensor == tensors->offsets)
            continue;
        tensors->rows[i] = find_row(fields, field_count, tensor->name);
        if (!tensors->rows[i])
            return call_refuse(objective->call, ERR_UNKNOWN_FIELD, tensor->name,
                               "no array of a sequence has this name");
        if (!needs_copy(tensor))
            continue;
        if (!(tensors->converted[i] = convert(tensor)))
            return call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
    }
    return 0;
}

static struct numbers slice(const struct objective_tensors *tensors, size_t place, size_t begin, size_t end)
{
    const struct safetensor *tensor = &tensors->file.tensors[place];
    const void *converted = tensors->converted[place];
    enum safetensors_type type = converted ? converted_type(tensor) : tensor->type;
    const void *at = (converted ? (const char *)converted : tensor->data) + begin * safetensors_type_bytes[type];
    struct numbers numbers = {.count = end - begin, .all_integer = !is_float_type(tensor->type)};
    if (type == TENSOR_F64)
        numbers.values = at;
    else if (type == TENSOR_F32)
        numbers.f32 = at;
    else
        numbers.u8 = at;
    return numbers;
}

int objective_tensors_fill(struct objective_call *objective, size_t index, const json_t *object,
                           const struct field *fields, size_t field_count, void *target)
{
    struct objective_tensors *tensors = objective->tensors;
    if (!tensors)
        return 0;
    if (index == 0 && prepare(objective, fields, field_count) < 0)
        return -1;
    size_t begin = offset_of(tensors, index);
    size_t end = offset_of(tensors, index + 1);
    for (size_t i = 0; i < tensors->file.count; i++) {
        const struct field *row = tensors->rows[i];
        if (!row)
            continue;
        if (json_object_get(object, row->name) || numbers_are_given((struct numbers *)((char *)target + row->offset)))
            return objective_refuse(objective, ERR_INVALID_FIELD, index, row->name, NO_TOKEN,
                                    "it is given as a tensor and in the JSON");
        *(struct numbers *)((char *)target + row->offset) = slice(tensors, i, begin, end);
    }
    return 0;
}

bool objective_tensors_place(const struct objective_call *objective, size_t index, const char *name, size_t token,
                             size_t *ret_element)
{
    const struct objective_tensors *tensors = objective->tensors;
    if (!tensors || !safetensors_find(&tensors->file, name))
        return false;
    *ret_element = offset_of(tensors, index) + token;
    return true;
}

struct objective_values objective_values_of(const struct numbers *numbers)
{
    return (struct objective_values){.f64 = numbers->values, .f32 = numbers->f32};
}

/* --- the reply ------------------------------------------------------------------------------------------- */

/* JSON without arrays, which becomes the metadata. */
static void write_scalars(struct objective_call *objective, const struct objective_request *request,
                          const struct objective_result *result, struct buffer *ret_json)
{
    struct buffer *body = &objective->call->reply.body;
    int arrays = objective->arrays;
    objective->arrays = JSON_ARRAYS_NONE;
    objective_reply_write(objective, request, result);
    objective->arrays = arrays;
    *ret_json = *body;
    buffer_init(body, ret_json->maximum_bytes);
}

/* The data are where the evaluation has put them: only the header is written, and both are sent as they are. */
static void write_file(struct objective_call *objective, struct text json)
{
    struct reply *reply = &objective->call->reply;
    struct safetensors_column columns[OBJECTIVE_OUTPUTS + 1] = {{OFFSETS, TENSOR_I64, objective->count + 1}};
    size_t count = 1;
    size_t tokens = 0;

    for (size_t i = 0; i < objective->count; i++)
        tokens += objective->sequences[i].tokens;
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++)
        if (objective_output_is_wanted(objective, k))
            columns[count++] =
                (struct safetensors_column){objective_outputs[k].name, objective_output_type(objective, k), tokens};
    safetensors_write_header(&reply->body, columns, count, "reply", json);
    reply->tail = TAKE_PTR(objective->outputs);
    reply->tail_bytes = objective->outputs_bytes;
}

void objective_tensors_reply(struct objective_call *objective, const struct objective_request *request,
                             const struct objective_result *result)
{
    if (!objective->call->accept_safetensors) {
        objective_reply_write(objective, request, result);
        return;
    }
    _cleanup_buffer_ struct buffer json;
    write_scalars(objective, request, result, &json);
    write_file(objective, buffer_text(&json));
    if (json.failed)
        objective->call->reply.body.failed = true;
}

int objective_answer(struct call *call)
{
    return call->accept_safetensors ? call_answer_bytes(call, 200, SAFETENSORS_MEDIA_TYPE)
                                    : call_answer_json(call, 200);
}
