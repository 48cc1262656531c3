/* option_text: the text of an option, found in a value.
 *
 * Words and signs are compared without regard to case, white space and decoration (prose.h); brackets, braces of
 * sets and apostrophes count wherever the option has them, so that (0,1) is neither [0,1] nor {0,1}. Pure, linear in both. */
#ifndef VERIFIERS_TEXT_OPTION_TEXT_H
#define VERIFIERS_TEXT_OPTION_TEXT_H

#include "server/base/text.h"
#include "verifiers/text/prose.h"

/* Does the text stand at *at? Then *at is behind it. TEXT_NONE stands nowhere. */
bool option_text_take(struct text option, struct prose *at);
/* Is it the whole value, a full stop aside? */
bool option_text_is(struct text option, struct text value);

#endif
