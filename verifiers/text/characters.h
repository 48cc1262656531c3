/* characters: the class of a code point and its small form, by Unicode 14 alone: no locale, the same on every machine.
 *
 * Texts are valid UTF-8 here. Any thread; constant time a character. */
#ifndef VERIFIERS_TEXT_CHARACTERS_H
#define VERIFIERS_TEXT_CHARACTERS_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHARACTER_LETTER = 1, /* categories L and M: a vowel sign is part of its word */
    CHARACTER_NUMBER = 2, /* N: also ½ and Ⅳ */
    CHARACTER_DIGIT = 4,  /* Nd */
    CHARACTER_SPACE = 8,
    CHARACTER_UPPER = 16,
    CHARACTER_LOWER = 32,
    CHARACTER_PUNCTUATION = 64, /* P, and every ASCII sign */
    CHARACTER_EMOJI = 128       /* an emoji of one code point; digits are none */
};

extern const uint8_t character_ascii_classes[128];
unsigned character_wide_classes(uint32_t point); /* of any, but slower */

/* Of the above. */
static inline unsigned character_classes(uint32_t point)
{
    return point < 128 ? character_ascii_classes[point] : character_wide_classes(point);
}

/* The simple lower-case mapping. */
uint32_t character_lower(uint32_t point);

/* The first code point of a text that is not empty, taken off. */
uint32_t character_take(struct text *rest);
/* The last one, taken off. */
uint32_t character_take_last(struct text *rest);
size_t characters_count(struct text text);

/* Appends the text in small letters. */
void text_append_lower(struct buffer *out, struct text text);
/* Equal except for case? */
bool text_same_letters(struct text left, struct text right);
/* Without the white space (or the characters of `classes`) at both ends. */
struct text text_stripped(struct text text);
struct text text_stripped_of(struct text text, unsigned classes);

#endif
