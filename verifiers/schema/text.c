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
