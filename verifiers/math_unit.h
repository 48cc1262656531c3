/* math_unit: units of measure after a number. Pure.
 *
 * In \text{…} any few words are a unit ("apples", "square units"), but for those that say something else: numbers
 * (million, half), logic (or, not), constants (i, e). Without \text only words of a closed list are one; in running
 * text any few words are. */
#ifndef VERIFIERS_MATH_UNIT_H
#define VERIFIERS_MATH_UNIT_H

#include "verifiers/math_number.h"

#include <stdbool.h>

#define MATH_UNIT_BYTES 48

/* Takes a unit if one stands here, in one spelling. unit: what it is so far ("" or money); false: there is a word that
 * forbids it, or a second, different unit. */
bool math_unit_take(struct number_reader *reader, bool prose, char unit[MATH_UNIT_BYTES]);

bool math_units_agree(const char *left, const char *right);

#endif
