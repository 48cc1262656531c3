/* words: the closed lists that the tokenizer knows. Not for others. */
#ifndef VERIFIERS_MATH_WORDS_H
#define VERIFIERS_MATH_WORDS_H

#include "verifiers/math/reader.h"

struct word {
    const char *name;
    uint8_t kind, value;
};

/* NULL: in no list. */
const struct word *math_find_command(struct text name); /* without its backslash */
const struct word *math_find_word(struct text name);
/* The sign beyond ASCII that `text` begins with, of ret_length bytes. */
const struct word *math_find_sign(struct text text, size_t *ret_length);
/* A small raised or lowered digit or sign. */
const struct word *math_find_script(struct text text, size_t *ret_length, bool *ret_above);
/* The bytes of the small raised digit that `text` begins with; 0: of none. */
size_t math_raised_digit(struct text text);

/* --- spaces and words --- */

static inline bool math_is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r' || byte == '~';
}

bool math_is_escaped_space(const char *at); /* \, and its like */
/* Without the spaces at both ends, escaped or not, and without the bytes that are in `others`. */
struct text math_trimmed(struct text text, const char *others);

#define MATH_WORD_BYTES 32

bool math_is_listed(const char *const *list, size_t count, struct text word);
/* In lower case, in `lower`; empty if the word is longer: then it is in no list. */
struct text math_lowered(struct text word, char lower[MATH_WORD_BYTES]);

/* --- units --- */

/* A whole word of the text, whatever its case, singular or plural. */
bool math_is_in_prompt(const struct math_reading *reading, struct text word);
bool math_is_in_references(const struct math_reading *reading, struct text word);

bool math_is_no_unit(struct text word);   /* it makes another statement than the number in front of it */
bool math_may_end_unit(struct text word); /* 2 complex roots, not 2 complex */
bool math_is_counted(struct text word);   /* count_nouns.c: apples, square, kcal */
/* measure_words.c: the Chinese measure word that `text` begins with, in bytes; 0: of none. *ret_unit: its unit, "" if it
 * only counts. */
size_t math_measure_word(struct text text, const char **ret_unit);
bool math_is_bare_unit(struct text word); /* a unit without \text{} */

#endif
