/* number: decimal text to numbers and back, exactly, without strtod and printf wherever 64 bits of precision settle it.
 *
 * Pure: no allocation, no locale. Any thread.
 * Source of the fast ways: Clinger, "How to read floating point numbers accurately" (1990): digits below 2^53 times or
 * over a power of ten up to 10^22 is one correctly rounded operation; with the 64-bit significand of x87 the same holds
 * up to 2^64 and 10^27 unless the result lies exactly between two doubles. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number {
    double value;      /* correctly rounded; HUGE_VAL with its sign if beyond the range */
    int64_t integer;   /* if is_integer */
    bool is_integer;   /* written without fraction and exponent, and fits 64 bits */
    bool has_fraction; /* a fraction or an exponent was written */
};

/* Reads one number of RFC 8259 at `at`. Returns the place behind it, or NULL if there is none. */
const char *number_parse(const char *at, const char *end, struct number *ret_number);

/* digits * 10^exponent, correctly rounded. False: not one of the cases that are exact this way. */
bool number_from_decimal(uint64_t digits, int exponent, double *ret_value);

#define NUMBER_BYTES 32 /* room for the longest result below; no NUL is written */

/* Each returns the length. Finite values only. Doubles: the shortest of 15, 16, 17 significant digits that reads back
 * the same; floats: of 6 to 9. Always with a fraction or an exponent ("1.0"), so that a reader sees the type. */
size_t number_format_double(double value, char *ret_text);
size_t number_format_float(float value, char *ret_text);
size_t number_format_u64(uint64_t value, char *ret_text);
size_t number_format_i64(int64_t value, char *ret_text);

#endif
