/* sentence: the value that a sentence of prose begins with.
 *
 * "42, which is even" says 42, "42 or 43" does not. An explanation behind the value is dropped: it begins with a word
 * of a closed list ("because", "which", "as required"), and nothing in it can be another value or take this one back
 * ("not", "may", "half", a number). Any other continuation is kept, and the reader of the value refuses it.
 *
 * Pure, linear in the text. */
#ifndef VERIFIERS_TEXT_SENTENCE_H
#define VERIFIERS_TEXT_SENTENCE_H

#include "server/base/text.h"

/* Without what stands around it: spaces, emphasis, quotes, the final full stop, a comma at the end. */
struct text sentence_bare(struct text sentence);
/* The bare value, without its explanation; or the sentence as it is. Both point into the sentence. */
struct text sentence_value(struct text sentence);

#endif
