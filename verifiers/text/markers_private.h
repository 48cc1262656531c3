/* markers: the last word such as "Answer" in a text that says what the answer is (claims.h). Pure, linear. */
#ifndef VERIFIERS_TEXT_MARKERS_PRIVATE_H
#define VERIFIERS_TEXT_MARKERS_PRIVATE_H

#include "verifiers/text/claims.h"

/* The text behind it, to the end of the line; TEXT_NONE: there is no marker that claims anything. */
struct text markers_last(const struct claims_rule *rule, struct text text);

#endif
