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

#endif
