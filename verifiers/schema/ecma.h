/* ecma: patterns of ECMA-262 (with its flag u) as patterns of PCRE2. Pure. Any thread.
 *
 * $ is the end of the text alone; . is anything but LF, CR, U+2028 and U+2029; \s has the white space of Unicode, \d, \w
 * and \b are ASCII; \p{…} takes long names; \u0041 \u{1F432} \cA are characters. Further syntax of PCRE2 that
 * ECMAScript lacks ((?i), (?>…), a++, \A, \Q, (*VERB), POSIX classes) is refused or stands for itself. Braces
 * and closing brackets that stand alone, and \ before punctuation, are that character, as in browsers without u. */
#ifndef VERIFIERS_SCHEMA_ECMA_H
#define VERIFIERS_SCHEMA_ECMA_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#define ECMA_PATTERN_BYTES 16384 /* at most, before and after */

/* Appends the pattern of PCRE2; some errors are left for it to find. NULL, or what is wrong: static text. */
const char *ecma_translate(struct text pattern, struct buffer *out);

#endif
