/* digits: numbers as they were written, by the values that were read from them. Most are written as their value rounded to
 * some decimal places, so little more than how many places there are has to be kept. Pure; any thread. */
#ifndef STORE_DIGITS_H
#define STORE_DIGITS_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum digits_kind { DIGITS_U32, DIGITS_F32, DIGITS_U8 };
struct digits_value {
    enum digits_kind kind;
    const void *bytes; /* of one value, little endian */
};

/* Appends to `out` what is needed beside the value to write `number` again: one byte, as a rule. Any text is a number. Returns
 * whether the value predicts it: to 18 bits, or as 0. */
bool digits_pack(struct text number, const struct digits_value *value, struct buffer *out);
/* Appends the number that *packed begins with, and moves *packed behind it. False: it is damaged. */
bool digits_unpack(struct text *packed, const struct digits_value *value, struct buffer *out);

/* Lengths and other numbers of any size, seven bits a byte. */
void digits_put(struct buffer *out, uint64_t number);
bool digits_get(struct text *packed, uint64_t *ret_number);

#endif
