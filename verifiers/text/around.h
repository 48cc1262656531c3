/* around: text directly beside a box that makes another value of it.
 *
 * \boxed{12}\%, -\boxed{3}, \boxed{3}\pi, \boxed{3}!, 2\boxed{3}: of one formula the box is a part. Words, units, brackets
 * and punctuation of the text around it are none. Pure; linear in the text up to the box. */
#ifndef VERIFIERS_TEXT_AROUND_H
#define VERIFIERS_TEXT_AROUND_H

#include "server/base/text.h"

enum around {
    AROUND_NOTHING,
    AROUND_PERCENT, /* a percent sign behind it */
    AROUND_MINUS,   /* the sign of the whole value before it */
    AROUND_MORE     /* a factor, a term, an exponent, a factorial, a multiple: another value */
};

/* `box`: the box with its command and braces, inside `text`. */
enum around text_around(struct text text, struct text box);

#endif
