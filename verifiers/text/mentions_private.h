/* mentions: a letter that a text answers with, without a box, tag or marker.
 *
 * In this order: all lines that are a letter or a label with something behind it, if they agree; where the last line is a
 * letter alone, only such lines; what stands behind the last "I pick", "I choose" or the like; all of "option B" and "B is correct", if
 * they agree. Denied ones ("not option A", "option A is wrong") do not count.
 *
 * Pure; lines and mentions are counted, so that the work is bounded. */
#ifndef VERIFIERS_TEXT_MENTIONS_PRIVATE_H
#define VERIFIERS_TEXT_MENTIONS_PRIVATE_H

#include "verifiers/text/claims.h"

/* LABELS_BLANK: nothing of the kind is there. */
void mentions_find(const struct labels_rule *rule, struct text text, struct claim *ret_claim);

#endif
