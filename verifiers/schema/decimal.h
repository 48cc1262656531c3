/* decimal: a JSON number as it is written, exact and never expanded: 1e999999999 takes no more than its eleven bytes.
 *
 * Pure; it allocates only for a divisor beyond 18 digits. An exponent beyond 10^18 counts as 10^18. Any thread. */
#ifndef VERIFIERS_SCHEMA_DECIMAL_H
#define VERIFIERS_SCHEMA_DECIMAL_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct decimal {
    const char *first; /* significant digits, a point may stand among them; NULL: the number is 0 */
    const char *end;
    int64_t exponent; /* of the last significant digit */
    uint32_t digits;
    uint32_t length_bytes; /* as written */
    bool negative;
};

/* A number of RFC 8259, whose text must outlive it. */
void decimal_read(struct text number, struct decimal *ret_decimal);

int decimal_compare(const struct decimal *left, const struct decimal *right); /* < 0, 0, > 0 */

static inline bool decimal_is_whole(const struct decimal *decimal)
{
    return !decimal->first || decimal->exponent >= 0;
}

/* Of a whole number from 0; UINT64_MAX if it is larger. */
uint64_t decimal_count(const struct decimal *decimal);

/* divisor: not 0, at most DIVISOR_DIGITS_MAX digits. */
#define DIVISOR_DIGITS_MAX 100
bool decimal_is_multiple(const struct decimal *decimal, const struct decimal *divisor);

#endif
