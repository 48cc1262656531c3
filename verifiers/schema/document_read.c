#include "verifiers/schema/document.h"

#include <stdlib.h>

#include "server/base/cleanup.h"
#include "server/base/utf8.h"

#define FIRST_ROOM 32
#define UNORDERED_MAX 8 /* members of an object whose keys are compared one with each other */

struct reader {
    struct document *document;
    const char *start;
    const char *at;
    const char *end;
    uint32_t open; /* the innermost array or object; NO_VALUE: none */
    uint32_t depth;
    enum document_status status;
};

static bool stop(struct reader *reader, enum document_status status, const char *problem)
{
    reader->status = status;
    reader->document->problem = problem;
    reader->document->stopped_at = (size_t)(reader->at - reader->start);
    return false;
}

static bool refuse(struct reader *reader, const char *problem)
{
    return stop(reader, DOCUMENT_NOT_JSON, problem);
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\r' || *reader->at == '\t'))
        reader->at++;
}

static bool next_is(const struct reader *reader, char byte)
{
    return reader->at < reader->end && *reader->at == byte;
}

/* --- room --- */

static bool grow(void **array, uint32_t *room, uint32_t wanted, size_t element_bytes)
{
    uint32_t larger = *room ? *room : FIRST_ROOM;
    void *grown;

    if (wanted <= *room)
        return true;
    while (larger < wanted)
        larger *= 2;
    grown = realloc(*array, larger * element_bytes);
    if (!grown)
        return false;
    *array = grown;
    *room = larger;
    return true;
}

static bool add_value(struct reader *reader, enum value_kind kind, uint32_t *ret_index)
{
    struct document *document = reader->document;

    if (document->count == DOCUMENT_VALUES_MAX ||
        !grow((void **)&document->values, &document->room, document->count + 1, sizeof document->values[0]))
        return stop(reader, DOCUMENT_TOO_LARGE, "too many values");
    *ret_index = document->count++;
    document->values[*ret_index] =
        (struct value){.start = (uint32_t)(reader->at - reader->start), .next = document->count, .kind = (uint8_t)kind};
    return true;
}

static void end_value(struct reader *reader, uint32_t index)
{
    reader->document->values[index].end = (uint32_t)(reader->at - reader->start);
}

/* --- strings --- */

static const signed char hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Of four digits; -1: there are none. */
static int32_t read_hex(struct reader *reader)
{
    int32_t unit = 0;

    if (reader->end - reader->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_values[(unsigned char)reader->at[i]] - 1;
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    reader->at += 4;
    return unit;
}

static bool read_unicode_escape(struct reader *reader)
{
    int32_t unit = read_hex(reader);
    int32_t low;

    if (unit < 0)
        return refuse(reader, "an escape that does not exist");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return refuse(reader, "half a surrogate pair");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (!next_is(reader, '\\') || reader->end - reader->at < 2 || reader->at[1] != 'u')
            return refuse(reader, "half a surrogate pair");
        reader->at += 2;
        low = read_hex(reader);
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse(reader, "half a surrogate pair");
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    utf8_append(&reader->document->strings, (uint32_t)unit);
    return true;
}

static const char escapes[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
};

static bool read_escape(struct reader *reader)
{
    char byte;

    if (++reader->at == reader->end)
        return refuse(reader, "a string that does not end");
    byte = *reader->at;
    if (byte != 'u' && !escapes[(unsigned char)byte])
        return refuse(reader, "an escape that does not exist");
    reader->at++;
    if (byte == 'u')
        return read_unicode_escape(reader);
    buffer_append_byte(&reader->document->strings, escapes[(unsigned char)byte]);
    return true;
}

/* Up to the next byte that is not just itself. */
static void skip_plain(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\\' && (unsigned char)*reader->at >= ' ')
        reader->at++;
}

/* From the first escape on; `begin`: of the string's text. */
static bool read_escaped(struct reader *reader, const char *begin)
{
    struct buffer *strings = &reader->document->strings;

    while (next_is(reader, '\\')) {
        const char *plain;
        buffer_append(strings, begin, (size_t)(reader->at - begin));
        if (!read_escape(reader))
            return false;
        plain = reader->at;
        skip_plain(reader);
        begin = plain;
    }
    buffer_append(strings, begin, (size_t)(reader->at - begin));
    return strings->failed ? stop(reader, DOCUMENT_TOO_LARGE, "too long strings") : true;
}

static bool read_string(struct reader *reader)
{
    uint32_t place = (uint32_t)reader->document->strings.length_bytes;
    const char *begin = reader->at + 1;
    struct value *value;
    uint32_t index;

    if (!add_value(reader, VALUE_STRING, &index))
        return false;
    reader->at++;
    skip_plain(reader);
    value = &reader->document->values[index];
    if (next_is(reader, '\\')) {
        if (!read_escaped(reader, begin))
            return false;
        value->is_escaped = true;
        value->place = place;
        value->count = (uint32_t)reader->document->strings.length_bytes - place;
    } else {
        value->count = (uint32_t)(reader->at - begin);
    }
    if (!next_is(reader, '"'))
        return refuse(reader, reader->at == reader->end ? "a string that does not end" : "a bare control character");
    reader->at++;
    end_value(reader, index);
    return true;
}

/* --- numbers and words --- */

static bool skip_digits(struct reader *reader)
{
    const char *from = reader->at;

    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > from;
}

static bool read_number(struct reader *reader)
{
    uint32_t index;

    if (!add_value(reader, VALUE_NUMBER, &index))
        return false;
    reader->at += *reader->at == '-';
    if (next_is(reader, '0'))
        reader->at++;
    else if (!skip_digits(reader))
        return refuse(reader, "no value");
    if (next_is(reader, '.')) {
        reader->at++;
        if (!skip_digits(reader))
            return refuse(reader, "a number without digits behind its point");
    }
    if (next_is(reader, 'e') || next_is(reader, 'E')) {
        reader->at++;
        if (next_is(reader, '+') || next_is(reader, '-'))
            reader->at++;
        if (!skip_digits(reader))
            return refuse(reader, "an exponent without digits");
    }
    end_value(reader, index);
    return true;
}

static bool read_word(struct reader *reader)
{
    static const struct {
        struct text word;
        enum value_kind kind;
    } words[] = {
        {TEXT_LITERAL("null"), VALUE_NULL}, {TEXT_LITERAL("false"), VALUE_FALSE}, {TEXT_LITERAL("true"), VALUE_TRUE}};
    uint32_t index;

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        struct text word = words[i].word;
        if ((size_t)(reader->end - reader->at) < word.length_bytes ||
            memcmp(reader->at, word.data, word.length_bytes) != 0)
            continue;
        if (!add_value(reader, words[i].kind, &index))
            return false;
        reader->at += word.length_bytes;
        end_value(reader, index);
        return true;
    }
    return refuse(reader, reader->at == reader->end ? "the text ends before its value" : "no value");
}

/* --- keys: no two are the same --- */

static int key_order(const void *left, const void *right, void *document)
{
    return text_order(value_text(document, *(const uint32_t *)left), value_text(document, *(const uint32_t *)right));
}

static bool same_keys(const struct document *document, uint32_t left, uint32_t right)
{
    return text_same(value_text(document, left), value_text(document, right));
}

static bool has_same_keys(const struct document *document, const uint32_t *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (same_keys(document, keys[i], keys[k]))
                return true;
    return false;
}

static bool order_keys(struct reader *reader, struct value *object)
{
    struct document *document = reader->document;
    uint32_t *keys = document->order + object->place;

    qsort_r(keys, object->count, sizeof keys[0], key_order, document);
    for (uint32_t i = 1; i < object->count; i++)
        if (same_keys(document, keys[i - 1], keys[i]))
            return stop(reader, DOCUMENT_DUPLICATE_KEY, "a key that occurs twice");
    object->is_ordered = true;
    return true;
}

static bool check_keys(struct reader *reader, uint32_t index)
{
    struct document *document = reader->document;
    struct value *object = &document->values[index];
    uint32_t few[UNORDERED_MAX];
    uint32_t *keys = few;
    uint32_t count = 0;

    if (object->count > UNORDERED_MAX) {
        if (!grow((void **)&document->order, &document->order_room, document->order_count + object->count,
                  sizeof document->order[0]))
            return stop(reader, DOCUMENT_TOO_LARGE, "too many members");
        object->place = document->order_count;
        document->order_count += object->count;
        keys = document->order + object->place;
    }
    for (uint32_t key = index + 1; count < object->count; key = document->values[key + 1].next)
        keys[count++] = key;
    if (object->count > UNORDERED_MAX)
        return order_keys(reader, object);
    return has_same_keys(document, keys, count) ? stop(reader, DOCUMENT_DUPLICATE_KEY, "a key that occurs twice")
                                                : true;
}

/* --- arrays and objects --- */

static bool read_key(struct reader *reader)
{
    skip_space(reader);
    if (!next_is(reader, '"'))
        return refuse(reader, "no key");
    if (!read_string(reader))
        return false;
    skip_space(reader);
    if (!next_is(reader, ':'))
        return refuse(reader, "a key without a colon");
    reader->at++;
    return true;
}

static bool close_open(struct reader *reader)
{
    struct document *document = reader->document;
    uint32_t index = reader->open;
    struct value *value = &document->values[index];

    reader->at++;
    reader->open = value->next;
    reader->depth--;
    value->next = document->count;
    end_value(reader, index);
    return value->kind == VALUE_ARRAY || check_keys(reader, index);
}

static bool is_close(const struct reader *reader)
{
    enum value_kind kind = reader->document->values[reader->open].kind;
    return next_is(reader, kind == VALUE_ARRAY ? ']' : '}');
}

/* Enters, and leaves again if nothing is in it. *ret_whole: it is read. */
static bool open_value(struct reader *reader, enum value_kind kind, bool *ret_whole)
{
    uint32_t index;

    if (reader->depth == DOCUMENT_DEPTH_MAX)
        return stop(reader, DOCUMENT_TOO_DEEP, "arrays and objects too deep in each other");
    if (!add_value(reader, kind, &index))
        return false;
    reader->document->values[index].next = reader->open;
    reader->open = index;
    reader->depth++;
    reader->at++;
    skip_space(reader);
    *ret_whole = is_close(reader);
    if (*ret_whole)
        return close_open(reader);
    return kind == VALUE_ARRAY || read_key(reader);
}

/* One value, or the beginning of one with others in it. */
static bool begin_value(struct reader *reader, bool *ret_whole)
{
    *ret_whole = true;
    skip_space(reader);
    switch (reader->at < reader->end ? *reader->at : '\0') {
    case '[':
        return open_value(reader, VALUE_ARRAY, ret_whole);
    case '{':
        return open_value(reader, VALUE_OBJECT, ret_whole);
    case '"':
        return read_string(reader);
    case '-':
    case '0' ... '9':
        return read_number(reader);
    default:
        return read_word(reader);
    }
}

/* Behind a whole value: what ends with it, up to where the next one begins. */
static bool end_values(struct reader *reader)
{
    while (reader->open != NO_VALUE) {
        struct value *in = &reader->document->values[reader->open];
        in->count++;
        skip_space(reader);
        if (next_is(reader, ',')) {
            reader->at++;
            return in->kind == VALUE_ARRAY || read_key(reader);
        }
        if (!is_close(reader))
            return refuse(reader, "no comma and no closing bracket behind a value");
        if (!close_open(reader))
            return false;
    }
    return true;
}

static bool read_all(struct reader *reader)
{
    bool whole;

    do {
        if (!begin_value(reader, &whole) || (whole && !end_values(reader)))
            return false;
    } while (reader->open != NO_VALUE);
    skip_space(reader);
    return reader->at == reader->end || refuse(reader, "something behind the value");
}

enum document_status document_read(struct text text, struct document *ret_document)
{
    struct reader reader = {.document = ret_document,
                            .start = text.data,
                            .at = text.data,
                            .end = text.data + text.length_bytes,
                            .open = NO_VALUE};
    size_t broken = 0;

    *ret_document = (struct document){.text = text};
    buffer_init(&ret_document->strings, text.length_bytes);
    if (text.length_bytes >= UINT32_MAX)
        stop(&reader, DOCUMENT_TOO_LARGE, "too long a text");
    else if (!utf8_is_valid(text, &broken)) {
        reader.at += broken;
        refuse(&reader, "no UTF-8");
    } else {
        read_all(&reader);
    }
    return reader.status;
}

void document_finish(struct document *document)
{
    free(document->values);
    free(document->order);
    buffer_finish(&document->strings);
    *document = (struct document){.values = NULL};
}
