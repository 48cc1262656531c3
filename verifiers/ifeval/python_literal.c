/* Lists, dictionaries, texts, numbers and constants as Python writes them, in JSON's form. Any other text may come
 * out as no JSON: the JSON reader then refuses it. */
#include "verifiers/ifeval/python_literal_private.h"

#include "server/base/utf8.h"
#include "verifiers/ifeval/parts.h"

static const struct {
    struct text python;
    struct text json;
} constants[] = {{{"None", 4}, {"null", 4}}, {{"True", 4}, {"true", 4}}, {{"False", 5}, {"false", 5}}};

static int hex_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 32;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* As a JSON text has it; a NUL stays, and is refused there. */
static void append_character(struct buffer *out, uint32_t point)
{
    if (point == '"' || point == '\\')
        buffer_append_byte(out, '\\');
    if (point < 0x20)
        buffer_append_format(out, "\\u%04x", point);
    else
        utf8_append(out, point);
}

/* Behind \x, \u or \U: so many digits. */
static bool append_code(struct text *rest, size_t digits, struct buffer *out)
{
    uint32_t point = 0;

    if (rest->length_bytes < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_of(rest->data[i]);
        if (digit < 0)
            return false;
        point = point << 4 | (uint32_t)digit;
    }
    *rest = text_from(*rest, digits);
    append_character(out, point);
    return true;
}

/* Behind a backslash. */
static bool append_escape(struct text *rest, struct buffer *out)
{
    static const char names[] = "\\'\"ntrabfv";
    static const char values[] = "\\'\"\n\t\r\a\b\f\v";
    char name = rest->length_bytes ? *rest->data : 0;
    const char *found = name ? strchr(names, name) : NULL;

    if (!name)
        return false;
    *rest = text_from(*rest, 1);
    if (found)
        append_character(out, (unsigned char)values[found - names]);
    else if (name == 'x' || name == 'u' || name == 'U')
        return append_code(rest, name == 'x' ? 2 : name == 'u' ? 4 : 8, out);
    return found != NULL;
}

/* In either kind of quotes. */
static bool append_string(struct text *rest, struct buffer *out)
{
    uint32_t quote = character_take(rest);

    buffer_append_byte(out, '"');
    while (rest->length_bytes) {
        uint32_t point = character_take(rest);
        if (point == quote) {
            buffer_append_byte(out, '"');
            return true;
        }
        if (point == '\\' ? !append_escape(rest, out) : (append_character(out, point), false))
            return false;
    }
    return false;
}

/* JSON has no comma in front of a closing bracket. */
static void append_sign(struct buffer *out, char sign)
{
    if ((sign == ']' || sign == '}') && out->length_bytes && out->data[out->length_bytes - 1] == ',')
        out->length_bytes--;
    buffer_append_byte(out, sign);
}

static void append_other(struct text *rest, struct buffer *out)
{
    for (size_t i = 0; i < ARRAY_LENGTH(constants); i++) {
        if (!text_begins_with(*rest, constants[i].python))
            continue;
        buffer_append(out, constants[i].json.data, constants[i].json.length_bytes);
        *rest = text_from(*rest, constants[i].python.length_bytes);
        return;
    }
    if (!is_one_of(*rest->data, " \t\r\n"))
        append_sign(out, *rest->data);
    *rest = text_from(*rest, 1);
}

bool python_append_json(struct text literal, struct buffer *out)
{
    while (literal.length_bytes) {
        if (*literal.data != '\'' && *literal.data != '"')
            append_other(&literal, out);
        else if (!append_string(&literal, out))
            return false;
    }
    return !out->failed;
}
