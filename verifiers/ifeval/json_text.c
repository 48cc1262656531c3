/* Is a text one JSON value, by RFC 8259? Numbers of any size, any depth; keys may repeat. NaN is none. One bit a level. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

struct reader {
    const char *at;
    const char *end;
    struct buffer levels; /* '{' or '[' of every value that is open */
};

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && is_one_of(*reader->at, " \t\r\n"))
        reader->at++;
}

static bool take(struct reader *reader, char byte)
{
    if (reader->at == reader->end || *reader->at != byte)
        return false;
    reader->at++;
    return true;
}

static bool is_hex(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/* Behind the backslash. */
static bool take_escape(struct reader *reader)
{
    if (reader->at == reader->end)
        return false;
    if (*reader->at != 'u')
        return is_one_of(*reader->at++, "\"\\/bfnrt");
    reader->at++;
    for (int i = 0; i < 4; i++, reader->at++)
        if (reader->at == reader->end || !is_hex(*reader->at))
            return false;
    return true;
}

static bool take_string(struct reader *reader)
{
    if (!take(reader, '"'))
        return false;
    while (reader->at < reader->end && (unsigned char)*reader->at >= 0x20) {
        char byte = *reader->at++;
        if (byte == '"')
            return true;
        if (byte == '\\' && !take_escape(reader))
            return false;
    }
    return false;
}

static bool take_digits(struct reader *reader)
{
    const char *start = reader->at;

    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start;
}

static bool take_number(struct reader *reader)
{
    take(reader, '-');
    if (!take(reader, '0') && !take_digits(reader))
        return false;
    if (take(reader, '.') && !take_digits(reader))
        return false;
    if (!take(reader, 'e') && !take(reader, 'E'))
        return true;
    if (!take(reader, '+'))
        take(reader, '-');
    return take_digits(reader);
}

static bool take_word(struct reader *reader)
{
    static const struct text words[] = {{"true", 4}, {"false", 5}, {"null", 4}};

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        if ((size_t)(reader->end - reader->at) < words[i].length_bytes ||
            memcmp(reader->at, words[i].data, words[i].length_bytes) != 0)
            continue;
        reader->at += words[i].length_bytes;
        return true;
    }
    return false;
}

static bool take_scalar(struct reader *reader)
{
    if (reader->at == reader->end)
        return false;
    if (*reader->at == '"')
        return take_string(reader);
    return *reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9') ? take_number(reader) : take_word(reader);
}

static bool take_key(struct reader *reader)
{
    skip_space(reader);
    if (!take_string(reader))
        return false;
    skip_space(reader);
    return take(reader, ':');
}

/* Opens objects and arrays down to the next scalar, or to one that is empty. */
static bool take_value(struct reader *reader)
{
    for (;;) {
        skip_space(reader);
        char open = reader->at < reader->end ? *reader->at : 0;
        if (open != '{' && open != '[')
            return take_scalar(reader);
        reader->at++;
        skip_space(reader);
        if (take(reader, open == '{' ? '}' : ']'))
            return true;
        buffer_append_byte(&reader->levels, open);
        if (open == '{' && !take_key(reader))
            return false;
    }
}

/* Behind a value: closes what ends there. True: another value follows. */
static bool take_comma(struct reader *reader)
{
    struct buffer *levels = &reader->levels;

    while (levels->length_bytes) {
        char open = levels->data[levels->length_bytes - 1];
        skip_space(reader);
        if (take(reader, ','))
            return open == '[' || take_key(reader);
        if (!take(reader, open == '{' ? '}' : ']'))
            return false;
        levels->length_bytes--;
    }
    return false;
}

bool is_json_text(struct text text)
{
    struct reader reader = {text.data, text.data + text.length_bytes};
    bool sound;

    buffer_init(&reader.levels, text.length_bytes + 1);
    do
        sound = take_value(&reader);
    while (sound && take_comma(&reader));
    sound = sound && reader.levels.length_bytes == 0;
    buffer_finish(&reader.levels);
    skip_space(&reader);
    return sound && reader.at == reader.end;
}
