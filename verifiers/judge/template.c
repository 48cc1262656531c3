#include "verifiers/judge/template.h"

#include "server/base/number.h"

#include <math.h>

const char *const mark_names[MARKS] = {
    [MARK_PROMPT] = "{prompt}",
    [MARK_COMPLETION] = "{completion}",
    [MARK_REFERENCE] = "{reference}",
    [MARK_STEP] = "{step}",
};

/* --- values --- */

static bool must_hide(char byte, char next)
{
    return byte == '<' || (byte == '[' && (next == '[' || next == '/' || (next >= 'A' && next <= 'Z')));
}

static void put_escaped(struct buffer *out, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    static const char short_forms[0x60] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};

    if (byte < sizeof short_forms && short_forms[byte])
        buffer_append(out, (char[]){'\\', short_forms[byte]}, 2);
    else
        buffer_append(out, (char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6);
}

void judge_put_json_text(struct buffer *out, struct text text, bool guarded)
{
    size_t from = 0;

    buffer_append_byte(out, '"');
    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        char next = i + 1 < text.length_bytes ? text.data[i + 1] : 0;
        if ((unsigned char)byte >= 0x20 && byte != '"' && byte != '\\' && !(guarded && must_hide(byte, next)))
            continue;
        buffer_append(out, text.data + from, i - from);
        put_escaped(out, (unsigned char)byte);
        from = i + 1;
    }
    buffer_append(out, text.data + from, text.length_bytes - from);
    buffer_append_byte(out, '"');
}

static void put_array(struct buffer *out, const json_t *array, bool guarded)
{
    size_t i;
    const json_t *element;

    buffer_append_byte(out, '[');
    json_array_foreach (array, i, element) {
        if (i > 0)
            buffer_append_byte(out, ',');
        else if (guarded && json_is_array(element))
            buffer_append_byte(out, ' ');
        judge_put_json(out, element, guarded);
    }
    buffer_append_byte(out, ']');
}

static void put_object(struct buffer *out, const json_t *object, bool guarded)
{
    const char *separator = "{";
    const char *key;
    size_t key_bytes;
    const json_t *value;

    json_object_keylen_foreach((json_t *)(uintptr_t)object, key, key_bytes, value)
    {
        buffer_append_string(out, separator);
        judge_put_json_text(out, (struct text){key, key_bytes}, guarded);
        buffer_append_byte(out, ':');
        judge_put_json(out, value, guarded);
        separator = ",";
    }
    buffer_append_string(out, *separator == '{' ? "{}" : "}");
}

static void put_number(struct buffer *out, const json_t *number)
{
    char digits[NUMBER_BYTES];

    if (json_is_integer(number))
        buffer_append(out, digits, number_format_i64(json_integer_value(number), digits));
    else
        buffer_append(out, digits, number_format_double(json_real_value(number), digits));
}

void judge_put_json(struct buffer *out, const json_t *value, bool guarded)
{
    if (json_is_string(value))
        judge_put_json_text(out, (struct text){json_string_value(value), json_string_length(value)}, guarded);
    else if (json_is_array(value))
        put_array(out, value, guarded);
    else if (json_is_object(value))
        put_object(out, value, guarded);
    else if (json_is_number(value))
        put_number(out, value);
    else
        buffer_append_string(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

static void put_value(struct buffer *out, const struct mark_value *value, bool raw)
{
    if (value->text.data && raw)
        buffer_append(out, value->text.data, value->text.length_bytes);
    else if (value->text.data)
        judge_put_json_text(out, value->text, true);
    else
        judge_put_json(out, value->json, !raw);
}

/* --- marks --- */

/* The mark that begins at this brace, or MARKS. */
static enum mark mark_at(struct text rest)
{
    for (int mark = 0; mark < MARKS; mark++) {
        size_t length_bytes = strlen(mark_names[mark]);
        if (rest.length_bytes >= length_bytes && memcmp(rest.data, mark_names[mark], length_bytes) == 0)
            return (enum mark)mark;
    }
    return MARKS;
}

/* The next mark at `*at` or later, which moves there; MARKS: there is none. */
static enum mark next_mark(struct text template, size_t *at)
{
    while (*at < template.length_bytes) {
        const char *brace = memchr(template.data + *at, '{', template.length_bytes - *at);
        enum mark mark;

        if (!brace)
            break;
        *at = (size_t)(brace - template.data);
        mark = mark_at((struct text){brace, template.length_bytes - *at});
        if (mark != MARKS)
            return mark;
        ++*at;
    }
    return MARKS;
}

unsigned template_marks(struct text template)
{
    unsigned marks = 0;
    size_t at = 0;
    enum mark mark;

    while ((mark = next_mark(template, &at)) != MARKS) {
        marks |= 1U << mark;
        at += strlen(mark_names[mark]);
    }
    return marks;
}

void template_fill(struct text template, const struct mark_value values[MARKS], bool raw, struct buffer *out)
{
    size_t from = 0;
    size_t at = 0;
    enum mark mark;

    while ((mark = next_mark(template, &at)) != MARKS) {
        buffer_append(out, template.data + from, at - from);
        put_value(out, &values[mark], raw);
        from = at += strlen(mark_names[mark]);
    }
    if (template.length_bytes > from)
        buffer_append(out, template.data + from, template.length_bytes - from);
}
