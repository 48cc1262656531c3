/* language: the language of a text, by its script and, where several languages share a script, by their commonest
 * words. docs/verifiers/ifeval.md has the rule and its thresholds.
 *
 * Any thread; linear. */
#ifndef VERIFIERS_IFEVAL_LANGUAGE_H
#define VERIFIERS_IFEVAL_LANGUAGE_H

#include "server/base/text.h"

#include <stdbool.h>

enum language_answer { LANGUAGE_OTHER, LANGUAGE_SAME, LANGUAGE_UNDECIDED };

/* Is the code one that can be asked for? Small letters of ISO 639, "zh-cn" and "zh-tw" among them. */
bool language_is_known(struct text code);
/* The text is in small letters, the code known. A text without a letter is in no language. */
enum language_answer language_is(struct text lowered, struct text code);

#endif
