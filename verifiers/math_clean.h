/* math_clean: one spelling for an answer's LaTeX, so that the parser sees few forms. Pure, one pass.
 *
 * Layout commands go, variants become one (\dfrac, \tfrac: \frac), signs from a closed list of Unicode become LaTeX,
 * fonts are unwrapped, \text and its kin become \text, the decorations around the whole ($…$, \(…\), a final full stop)
 * go. A space stays only where it separates two letters or digits. Any byte outside the closed list is refused: it is
 * then no answer that counts. */
#ifndef VERIFIERS_MATH_CLEAN_H
#define VERIFIERS_MATH_CLEAN_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>

#define MATH_ANSWER_BYTES 8192 /* longer answers are refused */

/* wide_digits: full-width digits (U+FF10…) count as digits. False: a byte that is not in the list. */
bool math_clean(struct text answer, bool wide_digits, struct buffer *out);

/* From cleaned text: arguments in braces (x^2, \frac12), \text unwrapped, so that equal notation is equal bytes. */
void math_identity(struct text cleaned, struct buffer *out);

#endif
