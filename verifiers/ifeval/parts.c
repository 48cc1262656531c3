#include "verifiers/ifeval/parts.h"

bool next_part(struct parts *parts, struct text separator, struct text *ret_part)
{
    size_t end;

    if (!parts->rest.data)
        return false;
    end = text_index_of(parts->rest, separator);
    *ret_part = (struct text){parts->rest.data, end};
    parts->rest = end < parts->rest.length_bytes ? text_from(parts->rest, end + separator.length_bytes) : TEXT_NONE;
    return true;
}

bool next_line(struct parts *parts, struct text *ret_line)
{
    return next_part(parts, TEXT_LITERAL("\n"), ret_line);
}

bool next_full_line(struct parts *parts, struct text *ret_line)
{
    while (next_line(parts, ret_line))
        if (!text_is_blank(*ret_line))
            return true;
    return false;
}

static bool is_of(uint32_t point, unsigned classes)
{
    return (character_classes(point) & classes) != 0;
}

/* Takes the characters off the front that are (or are not) of the classes. */
static struct text take_while(struct text *rest, unsigned classes, bool are)
{
    struct text start = *rest;
    struct text ahead = *rest;

    while (ahead.length_bytes && is_of(character_take(&ahead), classes) == are)
        *rest = ahead;
    return (struct text){start.data, start.length_bytes - rest->length_bytes};
}

bool next_chunk(struct text *rest, struct text *ret_word)
{
    take_while(rest, CHARACTER_SPACE, true);
    *ret_word = take_while(rest, CHARACTER_SPACE, false);
    return ret_word->length_bytes > 0;
}

static bool is_word_character(uint32_t point)
{
    return point == '_' || is_of(point, CHARACTER_LETTER | CHARACTER_NUMBER);
}

static struct text take_run(struct text *rest)
{
    struct text start = *rest;
    struct text ahead = *rest;

    while (ahead.length_bytes && is_word_character(character_take(&ahead)))
        *rest = ahead;
    return (struct text){start.data, start.length_bytes - rest->length_bytes};
}

bool next_run(struct text *rest, struct text *ret_run)
{
    struct text ahead = *rest;

    while (ahead.length_bytes && !is_word_character(character_take(&ahead)))
        *rest = ahead;
    *ret_run = take_run(rest);
    return ret_run->length_bytes > 0;
}

/* A sign that joins two parts of a word: ' ’ - ‐ ‑ . and, between digits, a comma. */
static bool joins(uint32_t point, char before, struct text after)
{
    static const uint32_t joints[] = {'\'', 0x2019, '-', 0x2010, 0x2011, '.'};

    if (!after.length_bytes || !is_word_character(character_take(&(struct text){after.data, after.length_bytes})))
        return false;
    if (point == ',')
        return before >= '0' && before <= '9' && *after.data >= '0' && *after.data <= '9';
    for (size_t i = 0; i < ARRAY_LENGTH(joints); i++)
        if (point == joints[i])
            return true;
    return false;
}

bool next_spoken(struct text *rest, struct text *ret_word)
{
    if (!next_run(rest, ret_word))
        return false;
    while (rest->length_bytes) {
        struct text after = *rest;
        uint32_t point = character_take(&after);
        if (!joins(point, rest->data[-1], after))
            break;
        *rest = after;
        take_run(rest);
    }
    ret_word->length_bytes = (size_t)(rest->data - ret_word->data);
    return true;
}

struct text word_bare(struct text word)
{
    return text_stripped_of(word, CHARACTER_PUNCTUATION | CHARACTER_SPACE);
}

uint32_t word_next_letter(struct text *rest)
{
    while (rest->length_bytes) {
        uint32_t point = character_take(rest);
        if (!is_of(point, CHARACTER_PUNCTUATION))
            return point;
    }
    return 0;
}

uint32_t word_first_letter(struct text word)
{
    return character_lower(word_next_letter(&word));
}

bool next_lettered(struct text *rest, struct text *ret_word)
{
    while (next_chunk(rest, ret_word))
        if (word_next_letter(&(struct text){ret_word->data, ret_word->length_bytes}))
            return true;
    return false;
}

bool text_is_blank(struct text text)
{
    while (text.length_bytes)
        if (!is_of(character_take(&text), CHARACTER_SPACE))
            return false;
    return true;
}

bool text_begins_with(struct text text, struct text start)
{
    return text.length_bytes >= start.length_bytes && memcmp(text.data, start.data, start.length_bytes) == 0;
}

bool text_ends_with(struct text text, struct text end)
{
    return text.length_bytes >= end.length_bytes &&
           memcmp(text.data + text.length_bytes - end.length_bytes, end.data, end.length_bytes) == 0;
}

size_t text_index_of(struct text text, struct text part)
{
    const char *found = text.length_bytes ? memmem(text.data, text.length_bytes, part.data, part.length_bytes) : NULL;
    return found ? (size_t)(found - text.data) : text.length_bytes;
}

bool text_contains(struct text text, struct text part)
{
    return text_index_of(text, part) < text.length_bytes;
}

struct text text_from(struct text text, size_t offset_bytes)
{
    return (struct text){text.data + offset_bytes, text.length_bytes - offset_bytes};
}

size_t text_count_of(struct text text, struct text part)
{
    size_t count = 0;

    for (size_t at = text_index_of(text, part); at < text.length_bytes; at = text_index_of(text, part)) {
        count++;
        text = text_from(text, at + part.length_bytes);
    }
    return count;
}

static bool first_is_word(struct text text)
{
    return text.length_bytes && is_word_character(character_take(&text));
}

static bool last_is_word(struct text text)
{
    return text.length_bytes && is_word_character(character_take_last(&text));
}

bool is_whole_word(struct text text, size_t offset_bytes, struct text part)
{
    struct text before = {text.data, offset_bytes};
    struct text after = text_from(text, offset_bytes + part.length_bytes);

    return !(first_is_word(part) && last_is_word(before)) && !(last_is_word(part) && first_is_word(after));
}

bool text_contains_word(struct text text, struct text word)
{
    size_t at = text_index_of(text, word);

    while (at < text.length_bytes) {
        if (is_whole_word(text, at, word))
            return true;
        at = at + word.length_bytes + text_index_of(text_from(text, at + word.length_bytes), word);
    }
    return false;
}
