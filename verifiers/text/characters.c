#include "verifiers/text/characters.h"

#include "server/base/utf8.h"
#include "verifiers/text/characters_private.h"

#include <pthread.h>

/* The tables, spread over the planes that have letters; what lies beyond is looked up in the ranges. */
#define SPREAD 0x20000
#define SPREAD_LOWER 0x10000

static pthread_once_t spread_once = PTHREAD_ONCE_INIT;
static uint8_t spread_classes[SPREAD];
static uint16_t spread_lower[SPREAD_LOWER]; /* 0: the character itself */

static void spread_ranges(const struct character_ranges *ranges, uint8_t class)
{
    for (size_t i = 0; i < ranges->count; i++)
        for (uint32_t point = ranges->range[i].first; point <= ranges->range[i].last && point < SPREAD; point++)
            spread_classes[point] |= class;
}

static void spread_mapping(const struct character_mapping *mapping)
{
    for (uint32_t point = mapping->first; point <= mapping->last; point += mapping->step) {
        spread_classes[point] |= CHARACTER_UPPER;
        if (point < SPREAD_LOWER)
            spread_lower[point] = (uint16_t)((int32_t)point + mapping->delta);
    }
}

static void spread(void)
{
    const struct character_tables *tables = &character_tables;

    spread_ranges(&tables->letters, CHARACTER_LETTER);
    spread_ranges(&tables->numbers, CHARACTER_NUMBER);
    spread_ranges(&tables->digits, CHARACTER_DIGIT);
    spread_ranges(&tables->punctuation, CHARACTER_PUNCTUATION);
    spread_ranges(&tables->spaces, CHARACTER_SPACE);
    spread_ranges(&tables->emoji, CHARACTER_EMOJI);
    for (size_t i = 0; i < tables->lower_count; i++)
        for (uint32_t point = tables->lower[i].first; point <= tables->lower[i].last; point += tables->lower[i].step)
            spread_classes[point] |= CHARACTER_LOWER;
    for (size_t i = 0; i < tables->mapping_count; i++)
        spread_mapping(&tables->mappings[i]);
}

static bool is_in(const struct character_ranges *ranges, uint32_t point)
{
    for (size_t i = ranges->count; i-- > 0;)
        if (point >= ranges->range[i].first)
            return point <= ranges->range[i].last;
    return false;
}

unsigned character_wide_classes(uint32_t point)
{
    pthread_once(&spread_once, spread);
    if (point < SPREAD)
        return spread_classes[point];
    return is_in(&character_tables.letters, point) ? CHARACTER_LETTER : 0;
}

static uint32_t lower_beyond(uint32_t point)
{
    const struct character_tables *tables = &character_tables;

    for (size_t i = tables->mapping_count; i-- > 0;)
        if (point >= tables->mappings[i].first)
            return point <= tables->mappings[i].last ? (uint32_t)((int32_t)point + tables->mappings[i].delta) : point;
    return point;
}

uint32_t character_lower(uint32_t point)
{
    if (point < 0x80)
        return point >= 'A' && point <= 'Z' ? point + 32 : point;
    pthread_once(&spread_once, spread);
    if (point < SPREAD_LOWER)
        return spread_lower[point] ? spread_lower[point] : point;
    return lower_beyond(point);
}

uint32_t character_take(struct text *rest)
{
    unsigned char first = (unsigned char)rest->data[0];
    size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t point = bytes == 1 ? first : first & (0x7fu >> bytes);

    if (bytes > rest->length_bytes)
        bytes = rest->length_bytes;
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | ((unsigned char)rest->data[i] & 0x3fu);
    rest->data += bytes;
    rest->length_bytes -= bytes;
    return point;
}

uint32_t character_take_last(struct text *rest)
{
    struct text last = {rest->data + rest->length_bytes - 1, 1};

    while (last.data > rest->data && ((unsigned char)*last.data & 0xc0) == 0x80) {
        last.data--;
        last.length_bytes++;
    }
    rest->length_bytes -= last.length_bytes;
    return character_take(&last);
}

size_t characters_count(struct text text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

/* Takes the ASCII off the front. */
static void append_ascii(struct buffer *out, struct text *rest)
{
    size_t bytes = 0;
    char *room;

    while (bytes < rest->length_bytes && (unsigned char)rest->data[bytes] < 0x80)
        bytes++;
    room = buffer_reserve(out, bytes);
    if (room) {
        for (size_t i = 0; i < bytes; i++)
            room[i] = (char)(rest->data[i] | (rest->data[i] >= 'A' && rest->data[i] <= 'Z' ? 32 : 0));
        out->length_bytes += bytes;
    }
    rest->data += bytes;
    rest->length_bytes -= bytes;
}

void text_append_lower(struct buffer *out, struct text text)
{
    while (text.length_bytes) {
        if ((unsigned char)*text.data < 0x80)
            append_ascii(out, &text);
        else
            utf8_append(out, character_lower(character_take(&text)));
    }
}

bool text_same_letters(struct text left, struct text right)
{
    while (left.length_bytes && right.length_bytes)
        if (character_lower(character_take(&left)) != character_lower(character_take(&right)))
            return false;
    return left.length_bytes == 0 && right.length_bytes == 0;
}

struct text text_stripped_of(struct text text, unsigned classes)
{
    struct text rest = text;

    while (text.length_bytes && character_classes(character_take(&rest)) & classes)
        text = rest;
    rest = text;
    while (text.length_bytes && character_classes(character_take_last(&rest)) & classes)
        text = rest;
    return text;
}

struct text text_stripped(struct text text)
{
    return text_stripped_of(text, CHARACTER_SPACE);
}
