/* lookalikes: signs that show a Latin letter, or nothing, taken for what they show.
 *
 * `fold` maps what Unicode's NFKC makes a Latin letter, a digit or an ASCII sign of: full-width, circled, parenthesised, squared
 * and mathematical ones. Letters of other scripts stay, however much they look alike: the Cyrillic A is none of Latin.
 * `strip` takes out U+180E, U+200B to U+200D, U+2060 and U+FEFF. Pure, linear. */
#ifndef VERIFIERS_TEXT_LOOKALIKES_H
#define VERIFIERS_TEXT_LOOKALIKES_H

#include "server/base/buffer.h"

/* The text itself if nothing in it changes, else what `room` then holds: never more bytes. */
struct text lookalikes_plain(struct text text, bool fold, bool strip, struct buffer *room);

#endif
