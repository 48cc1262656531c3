#include "server/objective_call/safetensors.h"

#include "server/base/json_scan.h"
#include "server/base/json_write.h"

#include <endian.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_BYTES 8
#define RANK_MAX 8
#define LONG_TEXT_BYTES 1024

const char *const safetensors_type_names[] = {"F64", "I64", "F32", "I32", "U32", "F16", "BF16", "I8", "U8", "BOOL"};
const uint8_t safetensors_type_bytes[] = {8, 8, 4, 4, 4, 2, 2, 1, 1, 1};

/* --- reading -------------------------------------------------------------------------------------------- */

struct reading {
    struct safetensors *file;
    const char *data;
    size_t data_bytes;
    const char **ret_name;
    char *message;
};

static _printf_(3, 4) int refuse(const struct reading *reading, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reading->message, SAFETENSORS_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    *reading->ret_name = name;
    return -1;
}

static int type_of(const json_t *dtype)
{
    for (size_t i = 0; json_is_string(dtype) && i < ARRAY_LENGTH(safetensors_type_names); i++)
        if (strcmp(json_string_value(dtype), safetensors_type_names[i]) == 0)
            return (int)i;
    return -1;
}

static int read_shape(const struct reading *reading, const json_t *shape, struct safetensor *tensor)
{
    tensor->rank = json_array_size(shape);
    tensor->count = 1;
    if (!json_is_array(shape) || tensor->rank > RANK_MAX)
        return refuse(reading, tensor->name, "shape is a list of at most %d sizes", RANK_MAX);
    for (size_t i = 0; i < tensor->rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return refuse(reading, tensor->name, "a size of its shape is no integer of at least 0");
        if (__builtin_mul_overflow(tensor->count, (size_t)json_integer_value(size), &tensor->count))
            return refuse(reading, tensor->name, "its shape is beyond any memory");
    }
    return 0;
}

static int read_offsets(const struct reading *reading, const json_t *offsets, struct safetensor *tensor)
{
    const json_t *begin = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    size_t bytes;

    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return refuse(reading, tensor->name, "data_offsets is a list of two integers");
    if (json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin) ||
        (uint64_t)json_integer_value(end) > reading->data_bytes)
        return refuse(reading, tensor->name, "data_offsets [%lld, %lld] are not within the %zu bytes of data",
                      (long long)json_integer_value(begin), (long long)json_integer_value(end), reading->data_bytes);
    tensor->begin_bytes = (size_t)json_integer_value(begin);
    size_t taken_bytes = (size_t)json_integer_value(end) - tensor->begin_bytes;
    if (__builtin_mul_overflow(tensor->count, safetensors_type_bytes[tensor->type], &bytes) || bytes != taken_bytes)
        return refuse(reading, tensor->name, "its shape wants another number of bytes than the %zu of data_offsets",
                      taken_bytes);
    tensor->data = reading->data + tensor->begin_bytes;
    tensor->aligned = (uintptr_t)tensor->data % safetensors_type_bytes[tensor->type] == 0;
    return 0;
}

static int read_tensor(const struct reading *reading, const char *name, const json_t *entry)
{
    struct safetensors *file = reading->file;
    int type = type_of(json_object_get(entry, "dtype"));

    if (file->count == SAFETENSORS_MAX)
        return refuse(reading, name, "more than %d tensors", SAFETENSORS_MAX);
    if (!json_is_object(entry) || json_object_size(entry) != 3)
        return refuse(reading, name, "a tensor has dtype, shape and data_offsets, and nothing else");
    if (type < 0)
        return refuse(reading, name, "its dtype is none of F64, F32, F16, BF16, I64, I32, U32, I8, U8, BOOL");
    struct safetensor *tensor = &file->tensors[file->count++];
    *tensor = (struct safetensor){.name = name, .type = (enum safetensors_type)type};
    if (read_shape(reading, json_object_get(entry, "shape"), tensor) < 0)
        return -1;
    return read_offsets(reading, json_object_get(entry, "data_offsets"), tensor);
}

/* By place; empty ones before what begins at the same byte. */
static int compare_places(const void *left, const void *right)
{
    const struct safetensor *a = left;
    const struct safetensor *b = right;
    if (a->begin_bytes != b->begin_bytes)
        return a->begin_bytes < b->begin_bytes ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

/* Every byte of the data belongs to exactly one tensor. */
static int check_places(const struct reading *reading)
{
    struct safetensors *file = reading->file;
    size_t at_bytes = 0;

    qsort(file->tensors, file->count, sizeof file->tensors[0], compare_places);
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensor *tensor = &file->tensors[i];
        if (tensor->begin_bytes != at_bytes)
            return refuse(reading, tensor->name,
                          tensor->begin_bytes < at_bytes ? "its data overlap those of another tensor"
                                                         : "there is a hole before its data");
        at_bytes += tensor->count * safetensors_type_bytes[tensor->type];
    }
    if (at_bytes != reading->data_bytes)
        return refuse(reading, "", "%zu bytes at the end belong to no tensor", reading->data_bytes - at_bytes);
    return 0;
}

static int check_metadata(const struct reading *reading)
{
    json_t *metadata = json_object_get(reading->file->header, "__metadata__");
    const char *key;
    json_t *value;

    if (metadata && !json_is_object(metadata))
        return refuse(reading, "__metadata__", "it is an object of texts");
    json_object_foreach (metadata, key, value) {
        if (!json_is_string(value))
            return refuse(reading, "__metadata__", "it is an object of texts");
    }
    return 0;
}

/* --- the header's text: a request in it is many times as long as the rest, and jansson reads texts byte by byte --- */

enum { PARSING = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL };

/* The scan is in front of the members of the metadata. True: one was long and is in `file`; ret_raw: between and with
 * its quotes. */
static bool read_long_text(struct json_scan *scan, struct safetensors *file, struct text *ret_raw)
{
    struct text key;
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (json_scan_peek(scan) != JSON_KIND_STRING)
            return false;
        const char *raw = scan->at;
        buffer_clear(&file->long_text);
        if (!json_scan_string(scan, &file->long_text) || scan->replaced)
            return false; /* jansson says what is wrong */
        *ret_raw = (struct text){raw, (size_t)(scan->at - raw)};
        file->long_key = key;
        if (ret_raw->length_bytes >= LONG_TEXT_BYTES && !memchr(key.data, '\\', key.length_bytes))
            return true;
    }
    return false;
}

static bool find_long_text(struct text header, struct safetensors *file, struct text *ret_raw)
{
    struct json_scan scan;
    struct text key;
    json_scan_init(&scan, header);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        if (text_equals(key, "__metadata__") && json_scan_peek(&scan) == JSON_KIND_OBJECT)
            return read_long_text(&scan, file, ret_raw);
        if (!json_scan_skip(&scan))
            return false;
    }
    return false;
}

/* NULL: it is no JSON, or has no long text. */
static json_t *parse_without_long_text(struct text header, struct safetensors *file)
{
    struct text raw;
    json_t *root = NULL;
    _cleanup_buffer_ struct buffer rest;
    buffer_init(&rest, header.length_bytes);
    buffer_init(&file->long_text, header.length_bytes);
    if (find_long_text(header, file, &raw)) {
        buffer_append(&rest, header.data, (size_t)(raw.data - header.data));
        buffer_append_string(&rest, "\"\"");
        const char *behind = raw.data + raw.length_bytes;
        buffer_append(&rest, behind, (size_t)(header.data + header.length_bytes - behind));
        root = rest.failed ? NULL : json_loadb(rest.data, rest.length_bytes, PARSING, NULL);
    }
    if (!root) {
        buffer_finish(&file->long_text);
        file->long_key = TEXT_NONE;
    }
    return root;
}

static json_t *parse_header(struct text header, struct safetensors *file, json_error_t *ret_error)
{
    json_t *root = parse_without_long_text(header, file);
    return root ? root : json_loadb(header.data, header.length_bytes, PARSING, ret_error);
}

static int read_header(struct reading *reading, struct text body, size_t header_limit_bytes)
{
    json_error_t error;
    uint64_t length_bytes;

    if (body.length_bytes < LENGTH_BYTES)
        return refuse(reading, "", "%zu bytes are too few: the length of the header has 8", body.length_bytes);
    memcpy(&length_bytes, body.data, sizeof length_bytes);
    length_bytes = le64toh(length_bytes);
    if (length_bytes > header_limit_bytes)
        return refuse(reading, "", "the header says it has %llu bytes; at most %zu are read",
                      (unsigned long long)length_bytes, header_limit_bytes);
    if (length_bytes > body.length_bytes - LENGTH_BYTES)
        return refuse(reading, "", "the header says it has %llu bytes, but only %zu follow",
                      (unsigned long long)length_bytes, body.length_bytes - LENGTH_BYTES);
    reading->data = body.data + LENGTH_BYTES + length_bytes;
    reading->data_bytes = body.length_bytes - LENGTH_BYTES - (size_t)length_bytes;
    struct text header = {body.data + LENGTH_BYTES, (size_t)length_bytes};
    reading->file->header = parse_header(header, reading->file, &error);
    if (!reading->file->header)
        return refuse(reading, "", "the header is no JSON: column %d: %.80s", error.column, error.text);
    return json_is_object(reading->file->header) ? 0 : refuse(reading, "", "the header is no JSON object");
}

int safetensors_read(struct text body, size_t header_limit_bytes, struct safetensors *ret, const char **ret_name,
                     char message[SAFETENSORS_MESSAGE_BYTES])
{
    struct reading reading = {.file = ret, .ret_name = ret_name, .message = message};
    const char *name;
    json_t *entry;

    ret->header = NULL;
    ret->count = 0;
    ret->long_key = TEXT_NONE;
    buffer_init(&ret->long_text, 0);
    if (read_header(&reading, body, header_limit_bytes) < 0 || check_metadata(&reading) < 0)
        return -1;
    json_object_foreach (ret->header, name, entry) {
        if (strcmp(name, "__metadata__") != 0 && read_tensor(&reading, name, entry) < 0)
            return -1;
    }
    return check_places(&reading);
}

void safetensors_finish(struct safetensors *file)
{
    json_decref(file->header);
    file->header = NULL;
    buffer_finish(&file->long_text);
    file->long_key = TEXT_NONE;
    file->count = 0;
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

struct text safetensors_metadata(const struct safetensors *file, const char *key)
{
    if (file->long_key.data && text_equals(file->long_key, key))
        return buffer_text(&file->long_text);
    const json_t *value = json_object_get(json_object_get(file->header, "__metadata__"), key);
    return json_is_string(value) ? (struct text){json_string_value(value), json_string_length(value)} : TEXT_NONE;
}

/* --- values -------------------------------------------------------------------------------------------- */

static uint32_t load_u32(const char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return le32toh(bits);
}

static uint64_t load_u64(const char *at)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    return le64toh(bits);
}

static uint32_t load_u16(const char *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return le16toh(bits);
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bfloat16 is the upper half of a float. */
static float float_of_bf16(uint32_t half)
{
    return float_of_bits(half << 16);
}

/* Exponent and fraction at the places that a float has them, then the exponent's bias by a multiplication, which is
 * exact and turns what was subnormal into a normal number; infinities and NaN keep the largest exponent. */
static float float_of_f16(uint32_t half)
{
    const uint32_t largest = 0x7c00;
    uint32_t magnitude = half & 0x7fff;
    float value = float_of_bits(magnitude << 13) * 0x1p112F;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits |= (half & 0x8000) << 16;
    bits |= magnitude >= largest ? UINT32_C(0x7f800000) : 0;
    return float_of_bits(bits);
}

void safetensor_widen(const struct safetensor *tensor, float *ret_values)
{
    if (tensor->type == TENSOR_BF16)
        for (size_t i = 0; i < tensor->count; i++)
            ret_values[i] = float_of_bf16(load_u16(tensor->data + 2 * i));
    else
        for (size_t i = 0; i < tensor->count; i++)
            ret_values[i] = float_of_f16(load_u16(tensor->data + 2 * i));
}

double safetensor_value(const struct safetensor *tensor, size_t i)
{
    const char *at = tensor->data + i * safetensors_type_bytes[tensor->type];
    uint32_t narrow;
    uint64_t wide;
    float single;
    double value;

    switch (tensor->type) {
    case TENSOR_F64:
        wide = load_u64(at);
        memcpy(&value, &wide, sizeof value);
        return value;
    case TENSOR_F32:
        narrow = load_u32(at);
        memcpy(&single, &narrow, sizeof single);
        return (double)single;
    case TENSOR_F16:
        return (double)float_of_f16(load_u16(at));
    case TENSOR_BF16:
        return (double)float_of_bf16(load_u16(at));
    case TENSOR_I64:
        return (double)(int64_t)load_u64(at);
    case TENSOR_I32:
        return (int32_t)load_u32(at);
    case TENSOR_U32:
        return load_u32(at);
    case TENSOR_I8:
        return (int8_t)*at;
    case TENSOR_U8:
    case TENSOR_BOOL:
        return (uint8_t)*at;
    }
    return NAN;
}

/* --- writing ------------------------------------------------------------------------------------------- */

static void write_columns(struct json_write *json, const struct safetensors_column *columns, size_t column_count)
{
    size_t at_bytes = 0;
    for (size_t i = 0; i < column_count; i++) {
        json_key(json, columns[i].name);
        json_object_begin(json);
        json_put_string(json, "dtype", safetensors_type_names[columns[i].type]);
        json_key(json, "shape");
        json_array_begin(json);
        json_int(json, (int64_t)columns[i].count);
        json_array_end(json);
        json_key(json, "data_offsets");
        json_array_begin(json);
        json_int(json, (int64_t)at_bytes);
        at_bytes += columns[i].count * safetensors_type_bytes[columns[i].type];
        json_int(json, (int64_t)at_bytes);
        json_array_end(json);
        json_object_end(json);
    }
}

void safetensors_write_header(struct buffer *out, const struct safetensors_column *columns, size_t column_count,
                              const char *metadata_key, struct text metadata)
{
    size_t start_bytes = out->length_bytes;
    struct json_write json;

    buffer_append(out, (char[LENGTH_BYTES]){0}, LENGTH_BYTES);
    json_write_init(&json, out);
    json_object_begin(&json);
    json_key(&json, "__metadata__");
    json_object_begin(&json);
    json_put_text(&json, metadata_key, metadata);
    json_object_end(&json);
    write_columns(&json, columns, column_count);
    json_object_end(&json);
    while ((out->length_bytes - start_bytes) % 8 != 0 && !out->failed)
        buffer_append_byte(out, ' ');
    if (out->failed)
        return;
    uint64_t length_bytes = htole64(out->length_bytes - start_bytes - LENGTH_BYTES);
    memcpy(out->data + start_bytes, &length_bytes, sizeof length_bytes);
}
