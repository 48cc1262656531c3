#include "verifiers/schema/schema.h"

#include "server/base/json_big.h"
#include "server/base/number.h"

static void append_string(struct text text, struct buffer *out)
{
    size_t from = 0;

    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.length_bytes; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte >= ' ' && byte != '"' && byte != '\\')
            continue;
        buffer_append(out, text.data + from, i - from);
        buffer_append_format(out, "\\u%04x", byte);
        from = i + 1;
    }
    buffer_append(out, text.data + from, text.length_bytes - from);
    buffer_append_byte(out, '"');
}

static void append_number(const json_t *json, struct buffer *out)
{
    char written[NUMBER_BYTES];
    size_t length_bytes = json_is_integer(json) ? number_format_i64(json_integer_value(json), written)
                                                : number_format_double(json_real_value(json), written);

    buffer_append(out, written, length_bytes);
}

static void append_text(struct text text, struct buffer *out)
{
    struct text digits = json_big_digits(text);

    if (digits.data)
        buffer_append(out, digits.data, digits.length_bytes);
    else
        append_string(text, out);
}

static void append_array(const json_t *json, struct buffer *out)
{
    size_t i;
    const json_t *element;

    buffer_append_byte(out, '[');
    json_array_foreach (json, i, element) {
        if (i)
            buffer_append_byte(out, ',');
        schema_text(element, out);
    }
    buffer_append_byte(out, ']');
}

static void append_object(const json_t *json, struct buffer *out)
{
    const char *name;
    size_t name_bytes;
    const json_t *member;
    char before = '{';

    json_object_keylen_foreach((json_t *)(uintptr_t)json, name, name_bytes, member)
    {
        buffer_append_byte(out, before);
        append_string((struct text){name, name_bytes}, out);
        buffer_append_byte(out, ':');
        schema_text(member, out);
        before = ',';
    }
    buffer_append_string(out, before == '{' ? "{}" : "}");
}

void schema_text(const json_t *json, struct buffer *out)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        append_object(json, out);
        break;
    case JSON_ARRAY:
        append_array(json, out);
        break;
    case JSON_STRING:
        append_text((struct text){json_string_value(json), json_string_length(json)}, out);
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        append_number(json, out);
        break;
    case JSON_TRUE:
        buffer_append_string(out, "true");
        break;
    case JSON_FALSE:
        buffer_append_string(out, "false");
        break;
    case JSON_NULL:
        buffer_append_string(out, "null");
        break;
    }
}

/* --- the same, held against a text --- */

static bool same(struct text *rest, const char *bytes, size_t length_bytes)
{
    if (rest->length_bytes < length_bytes || memcmp(rest->data, bytes, length_bytes) != 0)
        return false;
    rest->data += length_bytes;
    rest->length_bytes -= length_bytes;
    return true;
}

static bool same_written(const json_t *json, struct text *rest)
{
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, rest->length_bytes);
    schema_text(json, &out);
    return !out.failed && same(rest, out.data, out.length_bytes);
}

/* A text that is as it is written; a control character never is what stands there. */
static bool same_plain(struct text text, struct text *rest)
{
    return same(rest, "\"", 1) && same(rest, text.data, text.length_bytes) && same(rest, "\"", 1);
}

static bool is_plain(struct text text)
{
    return !memchr(text.data, '"', text.length_bytes) && !memchr(text.data, '\\', text.length_bytes);
}

static bool same_string(const json_t *json, struct text *rest)
{
    struct text text = {json_string_value(json), json_string_length(json)};
    struct text at = *rest;

    if (!is_plain(text) || !same_plain(text, &at))
        return same_written(json, rest);
    *rest = at;
    return true;
}

static bool same_array(const json_t *json, struct text *rest)
{
    size_t i;
    const json_t *element;

    json_array_foreach (json, i, element)
        if (!same(rest, i ? "," : "[", 1) || !schema_text_is(element, rest))
            return false;
    return json_array_size(json) ? same(rest, "]", 1) : same(rest, "[]", 2);
}

static bool same_object(const json_t *json, struct text *rest)
{
    const char *name;
    size_t name_bytes;
    const json_t *member;
    const char *before = "{";

    json_object_keylen_foreach((json_t *)(uintptr_t)json, name, name_bytes, member)
    {
        struct text key = {name, name_bytes};
        if (!is_plain(key) || !same(rest, before, 1) || !same_plain(key, rest) || !same(rest, ":", 1) ||
            !schema_text_is(member, rest))
            return false;
        before = ",";
    }
    return json_object_size(json) ? same(rest, "}", 1) : same(rest, "{}", 2);
}

bool schema_text_is(const json_t *json, struct text *rest)
{
    if (json_is_object(json))
        return same_object(json, rest);
    if (json_is_array(json))
        return same_array(json, rest);
    return json_is_string(json) ? same_string(json, rest) : same_written(json, rest);
}
