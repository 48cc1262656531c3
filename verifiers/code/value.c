/* Reading of JSON and of tagged values into one kind of tree. */
#include "verifiers/code/value.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/cleanup.h"
#include "server/base/number.h"
#include "server/base/utf8.h"

struct reader {
    struct value *value;
    const char *at;
    const char *end;
    char *texts; /* where the next text with escapes goes */
    int depth;
};

static int read_json(struct reader *reader);
static int read_tagged(struct reader *reader);

void value_finish(struct value *value)
{
    free(value->nodes);
    free(value->texts);
    *value = (struct value){.nodes = NULL};
}

/* Index of a new node; UINT32_MAX: no memory. */
static uint32_t add_node(struct value *value, enum value_kind kind)
{
    if (value->count == value->capacity) {
        size_t capacity = value->capacity ? 2 * value->capacity : 16;
        struct value_node *nodes =
            capacity < UINT32_MAX ? realloc(value->nodes, capacity * sizeof(*nodes)) : NULL; // NOLINT
        if (!nodes)
            return UINT32_MAX;
        value->nodes = nodes;
        value->capacity = capacity;
    }
    value->nodes[value->count] = (struct value_node){.kind = kind, .end = (uint32_t)value->count + 1};
    return (uint32_t)value->count++;
}

static int add_number(struct reader *reader, enum value_kind kind, int64_t integer, double number)
{
    uint32_t index = add_node(reader->value, kind);

    if (index == UINT32_MAX)
        return -1;
    reader->value->nodes[index].integer = integer;
    reader->value->nodes[index].number = number;
    return 0;
}

static int add_text(struct reader *reader, enum value_kind kind, struct text text, int base)
{
    uint32_t index = add_node(reader->value, kind);

    if (index == UINT32_MAX)
        return -1;
    reader->value->nodes[index].text = text;
    reader->value->nodes[index].base = base;
    return 0;
}

static bool take(struct reader *reader, char byte)
{
    if (reader->at == reader->end || *reader->at != byte)
        return false;
    reader->at++;
    return true;
}

/* --- JSON --- */

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

static int read_word(struct reader *reader, const char *word, enum value_kind kind)
{
    size_t length_bytes = strlen(word);

    if ((size_t)(reader->end - reader->at) < length_bytes || memcmp(reader->at, word, length_bytes) != 0)
        return -1;
    reader->at += length_bytes;
    return add_number(reader, kind, 0, 0);
}

static int read_number(struct reader *reader)
{
    struct number number;
    const char *start = reader->at;
    const char *behind = number_parse(start, reader->end, &number);

    if (!behind)
        return -1;
    reader->at = behind;
    if (number.is_integer)
        return add_number(reader, VALUE_INTEGER, number.integer, 0);
    if (number.has_fraction)
        return add_number(reader, VALUE_FLOAT, 0, number.value);
    return add_text(reader, VALUE_BIG, (struct text){start, (size_t)(behind - start)}, 10);
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte = (char)(byte | 0x20);
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The four digits of \uXXXX. -1: there are none. */
static int32_t read_unit(struct reader *reader)
{
    int32_t unit = 0;

    if (reader->end - reader->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*reader->at++);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* As codec.py writes it: a lone surrogate has its three bytes. */
static char *put_code_point(char *out, uint32_t code_point)
{
    if (code_point < 0x80) {
        *out++ = (char)code_point;
        return out;
    }
    int more = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
    *out++ = (char)(code_point >> (6 * more) | (0xF0 << (3 - more) & 0xFF));
    while (more-- > 0)
        *out++ = (char)(0x80 | (code_point >> (6 * more) & 0x3F));
    return out;
}

static int read_unicode(struct reader *reader, char **out)
{
    int32_t unit = read_unit(reader);
    uint32_t code_point = (uint32_t)unit;

    if (unit < 0)
        return -1;
    if (unit >= 0xD800 && unit < 0xDC00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' &&
        reader->at[1] == 'u') {
        struct reader ahead = {.at = reader->at + 2, .end = reader->end};
        int32_t low = read_unit(&ahead);
        if (low >= 0xDC00 && low < 0xE000) {
            code_point = 0x10000U + (((uint32_t)unit - 0xD800U) << 10) + ((uint32_t)low - 0xDC00U);
            reader->at = ahead.at;
        }
    }
    *out = put_code_point(*out, code_point);
    return 0;
}

static int read_escape(struct reader *reader, char **out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (reader->at == reader->end)
        return -1;
    if (take(reader, 'u'))
        return read_unicode(reader, out);
    found = *reader->at ? strchr(from, *reader->at) : NULL;
    if (!found)
        return -1;
    *(*out)++ = to[found - from];
    reader->at++;
    return 0;
}

/* At the opening quote. Undone in the room that is as large as the whole text: an escape is never shorter. */
static int read_string(struct reader *reader)
{
    char *start = reader->texts;
    char *out = start;

    reader->at++;
    while (reader->at < reader->end && *reader->at != '"') {
        if ((unsigned char)*reader->at < 0x20)
            return -1;
        if (!take(reader, '\\'))
            *out++ = *reader->at++;
        else if (read_escape(reader, &out) < 0)
            return -1;
    }
    reader->texts = out;
    return take(reader, '"') ? add_text(reader, VALUE_TEXT, (struct text){start, (size_t)(out - start)}, 0) : -1;
}

static int read_element(struct reader *reader, bool dict)
{
    if (!dict)
        return read_json(reader);
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != '"' || read_string(reader) < 0)
        return -1;
    skip_space(reader);
    return take(reader, ':') ? read_json(reader) : -1;
}

static int read_container(struct reader *reader, bool dict)
{
    char close = dict ? '}' : ']';
    uint32_t index = add_node(reader->value, dict ? VALUE_DICT : VALUE_LIST);
    uint32_t count = 0;

    reader->at++;
    skip_space(reader);
    if (index == UINT32_MAX)
        return -1;
    while (!take(reader, close)) {
        if ((count && !take(reader, ',')) || read_element(reader, dict) < 0)
            return -1;
        count++;
        skip_space(reader);
    }
    reader->value->nodes[index].count = dict ? 2 * count : count;
    reader->value->nodes[index].end = (uint32_t)reader->value->count;
    return 0;
}

static int read_json_at(struct reader *reader)
{
    switch (*reader->at) {
    case '{':
    case '[':
        return read_container(reader, *reader->at == '{');
    case '"':
        return read_string(reader);
    case 'n':
        return read_word(reader, "null", VALUE_NULL);
    case 't':
        return read_word(reader, "true", VALUE_TRUE);
    case 'f':
        return read_word(reader, "false", VALUE_FALSE);
    default:
        return read_number(reader);
    }
}

static int read_json(struct reader *reader)
{
    int result;

    skip_space(reader);
    if (reader->at == reader->end || reader->depth == VALUE_DEPTH_MAX)
        return -1;
    reader->depth++;
    result = read_json_at(reader);
    reader->depth--;
    return result;
}

int value_read_json(struct text json, struct value *ret_value)
{
    struct reader reader = {.value = ret_value, .at = json.data, .end = json.data + json.length_bytes};

    *ret_value = (struct value){.texts = malloc(json.length_bytes + 1)};
    reader.texts = ret_value->texts;
    if (!reader.texts || !utf8_is_valid(json, NULL) || read_json(&reader) < 0)
        return -1;
    skip_space(&reader);
    return reader.at == reader.end ? 0 : -1;
}

/* --- tagged values --- */

static bool take_until(struct reader *reader, char mark, struct text *ret_word)
{
    const char *found = memchr(reader->at, mark, (size_t)(reader->end - reader->at));

    if (!found)
        return false;
    *ret_word = (struct text){reader->at, (size_t)(found - reader->at)};
    reader->at = found + 1;
    return true;
}

static int take_count(struct reader *reader, size_t *ret_count)
{
    struct text word;
    size_t count = 0;

    if (!take_until(reader, ':', &word) || !word.length_bytes || word.length_bytes > 9)
        return -1;
    for (size_t i = 0; i < word.length_bytes; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return -1;
        count = count * 10 + (size_t)(word.data[i] - '0');
    }
    *ret_count = count;
    return 0;
}

static int read_integer(struct reader *reader)
{
    struct text word;
    struct number number;

    if (!take_until(reader, ';', &word) ||
        number_parse(word.data, word.data + word.length_bytes, &number) != word.data + word.length_bytes ||
        !number.is_integer)
        return -1;
    return add_number(reader, VALUE_INTEGER, number.integer, 0);
}

static int read_hexadecimal(struct reader *reader)
{
    struct text word;

    return take_until(reader, ';', &word) ? add_text(reader, VALUE_BIG, word, 16) : -1;
}

/* As Python writes a float: JSON's notation, nan or inf, which are equal to nothing. */
static int read_float(struct reader *reader)
{
    struct text word;
    struct number number;

    if (!take_until(reader, ';', &word))
        return -1;
    if (number_parse(word.data, word.data + word.length_bytes, &number) != word.data + word.length_bytes)
        return add_number(reader, VALUE_OTHER, 0, 0);
    return add_number(reader, VALUE_FLOAT, 0, number.value);
}

static int read_bytes(struct reader *reader, enum value_kind kind)
{
    size_t size_bytes;
    const char *start;

    if (take_count(reader, &size_bytes) < 0 || size_bytes > (size_t)(reader->end - reader->at))
        return -1;
    start = reader->at;
    reader->at += size_bytes;
    return add_text(reader, kind, (struct text){start, size_bytes}, 0);
}

static int read_children(struct reader *reader, enum value_kind kind, size_t count)
{
    uint32_t index = add_node(reader->value, kind);

    if (index == UINT32_MAX || count > (size_t)(reader->end - reader->at))
        return -1;
    for (size_t i = 0; i < count; i++)
        if (read_tagged(reader) < 0)
            return -1;
    reader->value->nodes[index].count = (uint32_t)count;
    reader->value->nodes[index].end = (uint32_t)reader->value->count;
    return 0;
}

static int read_many(struct reader *reader, enum value_kind kind)
{
    size_t count;

    if (take_count(reader, &count) < 0)
        return -1;
    return read_children(reader, kind, kind == VALUE_DICT ? 2 * count : count);
}

/* Values that JSON has no word for are read to find their end. */
static int read_tagged_at(struct reader *reader, char tag)
{
    switch (tag) {
    case 'n':
        return add_number(reader, VALUE_NULL, 0, 0);
    case 't':
        return add_number(reader, VALUE_TRUE, 0, 0);
    case 'f':
        return add_number(reader, VALUE_FALSE, 0, 0);
    case 'u':
        return add_number(reader, VALUE_OTHER, 0, 0);
    case 'i':
        return read_integer(reader);
    case 'x':
        return read_hexadecimal(reader);
    case 'd':
        return read_float(reader);
    case 's':
        return read_bytes(reader, VALUE_TEXT);
    case 'b':
    case 'a':
        return read_bytes(reader, VALUE_OTHER);
    case 'L':
    case 'T':
        return read_many(reader, VALUE_LIST);
    case 'M':
        return read_many(reader, VALUE_DICT);
    case 'S':
    case 'Z':
    case 'Q':
        return read_many(reader, VALUE_OTHER);
    case 'c':
    case 'F':
    case 'G':
        return read_children(reader, VALUE_OTHER, 2);
    case 'D':
    case 'B':
        return read_children(reader, VALUE_OTHER, 1);
    case 'R':
        return read_children(reader, VALUE_OTHER, 3);
    default:
        return -1;
    }
}

static int read_tagged(struct reader *reader)
{
    int result;

    if (reader->at == reader->end || reader->depth == VALUE_DEPTH_MAX)
        return -1;
    reader->depth++;
    result = read_tagged_at(reader, *reader->at++);
    reader->depth--;
    return result;
}

int value_read_tagged(struct text tagged, struct value *ret_value)
{
    struct reader reader = {.value = ret_value, .at = tagged.data, .end = tagged.data + tagged.length_bytes};

    *ret_value = (struct value){.nodes = NULL};
    return read_tagged(&reader) == 0 && reader.at == reader.end ? 0 : -1;
}
