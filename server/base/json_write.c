#include "server/base/json_write.h"

#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/base/number.h"
#include "server/base/utf8.h"

#include <math.h>
#include <stdio.h>

void json_write_init(struct json_write *json, struct buffer *out)
{
    *json = (struct json_write){.out = out};
}

/* --- structure --- */

static void before_value(struct json_write *json)
{
    if (json->after_key)
        json->after_key = false;
    else if (json->comma[json->depth])
        buffer_append_byte(json->out, ',');
    json->comma[json->depth] = true;
}

static void begin(struct json_write *json, char opening)
{
    before_value(json);
    if (json->depth + 1U == ARRAY_LENGTH(json->comma)) {
        json->out->failed = true;
        return;
    }
    buffer_append_byte(json->out, opening);
    json->comma[++json->depth] = false;
}

static void end(struct json_write *json, char closing)
{
    if (json->depth > 0)
        json->depth--;
    buffer_append_byte(json->out, closing);
}

void json_object_begin(struct json_write *json)
{
    begin(json, '{');
}

void json_object_end(struct json_write *json)
{
    end(json, '}');
}

void json_array_begin(struct json_write *json)
{
    begin(json, '[');
}

void json_array_end(struct json_write *json)
{
    end(json, ']');
}

/* --- strings --- */

static void append_escape(struct buffer *out, unsigned char byte)
{
    static const char short_forms[0x60] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    if (byte < sizeof(short_forms) && short_forms[byte])
        buffer_append(out, (char[]){'\\', short_forms[byte]}, 2);
    else
        buffer_append_format(out, "\\u%04x", byte);
}

static void append_string(struct buffer *out, struct text text)
{
    const char *at = text.data;
    const char *stop = text.data + text.length_bytes;
    buffer_append_byte(out, '"');
    while (at < stop) {
        const char *from = at;
        while (at < stop && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\')
            at++;
        utf8_append_mended(out, (struct text){from, (size_t)(at - from)});
        if (at < stop)
            append_escape(out, (unsigned char)*at++);
    }
    buffer_append_byte(out, '"');
}

void json_key_text(struct json_write *json, struct text key)
{
    before_value(json);
    append_string(json->out, key);
    buffer_append_byte(json->out, ':');
    json->after_key = true;
}

void json_key(struct json_write *json, const char *key)
{
    json_key_text(json, text_of(key));
}

/* --- values --- */

void json_raw(struct json_write *json, struct text value)
{
    before_value(json);
    if (value.data)
        buffer_append(json->out, value.data, value.length_bytes);
    else
        buffer_append(json->out, "null", 4);
}

void json_write_null(struct json_write *json)
{
    json_raw(json, TEXT_NONE);
}

void json_bool(struct json_write *json, bool value)
{
    json_raw(json, value ? TEXT_LITERAL("true") : TEXT_LITERAL("false"));
}

void json_int(struct json_write *json, int64_t value)
{
    char text[NUMBER_BYTES];
    json_raw(json, (struct text){text, number_format_i64(value, text)});
}

static const char null_word[4] = {'n', 'u', 'l', 'l'};

static size_t format_double(double value, char *text)
{
    if (isfinite(value))
        return number_format_double(value, text);
    memcpy(text, null_word, sizeof(null_word));
    return sizeof(null_word);
}

static size_t format_float(float value, char *text)
{
    if (isfinite(value))
        return number_format_float(value, text);
    memcpy(text, null_word, sizeof(null_word));
    return sizeof(null_word);
}

void json_double(struct json_write *json, double value)
{
    char text[NUMBER_BYTES];
    json_raw(json, (struct text){text, format_double(value, text)});
}

void json_text(struct json_write *json, struct text value)
{
    if (!value.data) {
        json_write_null(json);
        return;
    }
    before_value(json);
    append_string(json->out, value);
}

void json_write_string(struct json_write *json, const char *value)
{
    json_text(json, text_of(value));
}

void json_time(struct json_write *json, int64_t utc_us)
{
    char text[RFC3339_BYTES];
    if (utc_us < 0) {
        json_write_null(json);
        return;
    }
    clock_format_rfc3339(utc_us, text);
    json_write_string(json, text);
}

/* --- "key": value --- */

void json_put_null(struct json_write *json, const char *key)
{
    json_key(json, key);
    json_write_null(json);
}

void json_put_bool(struct json_write *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_put_int(struct json_write *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

void json_put_int_or_null(struct json_write *json, const char *key, int64_t value)
{
    if (value < 0)
        json_put_null(json, key);
    else
        json_put_int(json, key, value);
}

void json_put_double(struct json_write *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

void json_put_text(struct json_write *json, const char *key, struct text value)
{
    json_key(json, key);
    json_text(json, value);
}

void json_put_string(struct json_write *json, const char *key, const char *value)
{
    json_key(json, key);
    json_write_string(json, value);
}

void json_put_raw(struct json_write *json, const char *key, struct text value)
{
    json_key(json, key);
    json_raw(json, value);
}

void json_put_time(struct json_write *json, const char *key, int64_t utc_us)
{
    json_key(json, key);
    json_time(json, utc_us);
}

/* --- arrays of numbers --- */

struct numbers_kind {
    const char *suffix;
    size_t width_bytes;
    size_t (*format)(const void *value, char *text);
};

static size_t format_u32(const void *value, char *text)
{
    uint32_t number;
    memcpy(&number, value, sizeof(number));
    return number_format_u64(number, text);
}

static size_t format_f32(const void *value, char *text)
{
    float number;
    memcpy(&number, value, sizeof(number));
    return format_float(number, text);
}

static size_t format_f64(const void *value, char *text)
{
    double number;
    memcpy(&number, value, sizeof(number));
    return format_double(number, text);
}

static size_t format_u8(const void *value, char *text)
{
    return number_format_u64(*(const uint8_t *)value, text);
}

static size_t format_i8(const void *value, char *text)
{
    return number_format_i64(*(const int8_t *)value, text);
}

static const struct numbers_kind kind_u32 = {"_u32", 4, format_u32};
static const struct numbers_kind kind_f32 = {"_f32", 4, format_f32};
static const struct numbers_kind kind_f64 = {"_f64", 8, format_f64};
static const struct numbers_kind kind_u8 = {"_u8", 1, format_u8};
static const struct numbers_kind kind_i8 = {"_i8", 1, format_i8};

enum { BLOCK = 64 };

/* Returns the length. */
static size_t write_numbers(char *text, const struct numbers_kind *kind, const char *values, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        length += kind->format(values + i * kind->width_bytes, text + length);
        text[length++] = ',';
    }
    return length;
}

/* In blocks, so that the buffer is asked once per block: for all that could be, or, near its maximum, for what is. */
static void append_numbers(struct buffer *out, const struct numbers_kind *kind, const void *values, size_t count)
{
    char block[BLOCK * (NUMBER_BYTES + 1)];
    const char *at = values;
    for (size_t done = 0; done < count; done += BLOCK, at += BLOCK * kind->width_bytes) {
        size_t left = count - done;
        size_t taken = left < BLOCK ? left : BLOCK;
        bool direct = out->maximum_bytes - out->length_bytes >= sizeof(block);
        char *place = direct ? buffer_reserve(out, sizeof(block)) : block;
        if (!place)
            return;
        size_t length = write_numbers(place, kind, at, taken) - (taken == left); /* no comma behind the last */
        if (direct)
            out->length_bytes += length;
        else
            buffer_append(out, block, length);
    }
}

static void put_base64(struct json_write *json, const char *key, const struct numbers_kind *kind, const void *values,
                       size_t count)
{
    char suffixed[128];
    int length = snprintf(suffixed, sizeof(suffixed), "%s%s", key, kind->suffix);
    if (length < 0 || (size_t)length >= sizeof(suffixed)) {
        json->out->failed = true;
        return;
    }
    json_key(json, suffixed);
    before_value(json);
    buffer_append_byte(json->out, '"');
    base64_encode(values, count * kind->width_bytes, json->out);
    buffer_append_byte(json->out, '"');
}

static void put_numbers(struct json_write *json, const char *key, const struct numbers_kind *kind, const void *values,
                        size_t count, enum json_arrays how)
{
    if (how == JSON_ARRAYS_BASE64)
        put_base64(json, key, kind, values, count);
    if (how != JSON_ARRAYS_PLAIN)
        return;
    json_key(json, key);
    json_array_begin(json);
    append_numbers(json->out, kind, values, count);
    json_array_end(json);
}

void json_put_u32s(struct json_write *json, const char *key, const uint32_t *values, size_t count, enum json_arrays how)
{
    put_numbers(json, key, &kind_u32, values, count, how);
}

void json_put_f32s(struct json_write *json, const char *key, const float *values, size_t count, enum json_arrays how)
{
    put_numbers(json, key, &kind_f32, values, count, how);
}

void json_put_f64s(struct json_write *json, const char *key, const double *values, size_t count, enum json_arrays how)
{
    put_numbers(json, key, &kind_f64, values, count, how);
}

void json_put_u8s(struct json_write *json, const char *key, const uint8_t *values, size_t count, enum json_arrays how)
{
    put_numbers(json, key, &kind_u8, values, count, how);
}

void json_put_i8s(struct json_write *json, const char *key, const int8_t *values, size_t count, enum json_arrays how)
{
    put_numbers(json, key, &kind_i8, values, count, how);
}
