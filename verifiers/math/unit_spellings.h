/* unit_spellings: one spelling for each unit. Not for others than the files of units. */
#ifndef VERIFIERS_MATH_UNIT_SPELLINGS_H
#define VERIFIERS_MATH_UNIT_SPELLINGS_H

#include "server/base/text.h"

#include <stdbool.h>

#define UNIT_WORD_BYTES 32

void math_lower_unit(char *word);
/* The word's one spelling, in place: symbols as they are, words in lower case, both perhaps with a plural's s. */
void math_spell_unit(char word[UNIT_WORD_BYTES]);
/* meters, Celsius, N */
bool math_is_unit_word(struct text word);

#endif
