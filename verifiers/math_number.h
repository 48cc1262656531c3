/* math_number: exact values of numeric LaTeX. Pure; GMP rationals; every size is bounded before the work is done.
 *
 *   sum    := [+-] term { (+|-) term }
 *   term   := power { (\cdot | /) [+-] power | power }      juxtaposition: a group, \frac, \sqrt, \binom after a value
 *   power  := atom [ ! ] [ ^ exponent ]
 *   atom   := number | { sum } | ( sum ) | | sum | | \frac | \sqrt | \binom | \text{number}
 *   number := digits with groups of three (by {,} or comma or space), a fraction part, \overline{period}, E notation;
 * 1\frac{5}{12}, 1 5/12: mixed
 *
 * A root or a broken exponent counts only if its value is rational; everything else is mathematics outside of this
 * file. */
#ifndef VERIFIERS_MATH_NUMBER_H
#define VERIFIERS_MATH_NUMBER_H

#include "server/base/text.h"

#include <gmp.h>
#include <stdbool.h>

#define MATH_DIGITS_BYTES 8200 /* more digits than an answer may have */

enum number_status {
    NUMBER_OK,
    NUMBER_NONE,    /* no such notation */
    NUMBER_OUTSIDE, /* mathematics that is not decided here: names, irrational roots */
    NUMBER_LIMIT,   /* too large or too deep to work out */
};

struct number_reader {
    const char *at;
    const char *end;
    enum number_status status; /* of the first trouble; everything is refused after it */
    int depth;
    int max_depth;
    int steps;          /* spent, of a fixed allowance */
    bool decimal_comma; /* 1,5 is 1.5 */
    bool in_brackets;   /* of a list: a bare comma separates elements, so (10,100) has two */
    /* what was seen */
    bool operations; /* anything but one literal number or one fraction of two integers */
    bool unreduced;  /* a fraction that is not in lowest terms, or over 1 */
};

void number_reader_init(struct number_reader *reader, struct text text, int max_depth, bool decimal_comma);

/* Reads a sum from `at` as far as it goes; the caller looks at what is left. value: initialised. False: status says
 * why. */
bool number_read(struct number_reader *reader, mpq_t value);

/* A decimal like 0.05 exactly. False if it is none. */
bool number_read_decimal(struct text text, mpq_t value);

#endif
