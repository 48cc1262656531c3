/* powers_of_ten: the first 128 bits of every power of ten that a double can need, made by powers_of_ten.py.
 *
 * The highest bit is set. Exact from 10^0 to 10^55; rounded up from 10^-27 to 10^-1, down elsewhere: so the proofs of
 * Lemire and Mushtak want it for reading. Writing wants every inexact one rounded up; it adds 1. */
#ifndef BASE_POWERS_OF_TEN_PRIVATE_H
#define BASE_POWERS_OF_TEN_PRIVATE_H

#include <stdint.h>

enum { POWER_OF_TEN_LEAST = -342, POWER_OF_TEN_MOST = 324, POWERS_OF_TEN = POWER_OF_TEN_MOST - POWER_OF_TEN_LEAST + 1 };

struct power_of_ten {
    uint64_t high;
    uint64_t low;
};
extern const struct power_of_ten powers_of_ten[POWERS_OF_TEN]; /* [e - POWER_OF_TEN_LEAST] */

enum { INTEGER_POWERS_OF_TEN = 20 };
extern const uint64_t integer_powers_of_ten[INTEGER_POWERS_OF_TEN]; /* 10^0 to 10^19 */

/* "e-7": what stands behind the digits. */
enum {
    EXPONENT_TEXT_LEAST = -324,
    EXPONENT_TEXT_MOST = 308,
    EXPONENT_TEXTS = EXPONENT_TEXT_MOST - EXPONENT_TEXT_LEAST + 1
};
struct exponent_text {
    char text[7]; /* no NUL counts */
    uint8_t length;
};
extern const struct exponent_text exponent_texts[EXPONENT_TEXTS]; /* [exponent - EXPONENT_TEXT_LEAST] */

#endif
