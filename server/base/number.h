/* number: decimal text to numbers and back, exactly, without strtod and printf wherever 64 bits of precision settle it.
 *
 * Pure: no allocation, no locale. Any thread.
 * number_read.c and number_write.c say where the arithmetic comes from; both share powers_of_ten.h. */
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

/* digits * 10^exponent, correctly rounded. */
double number_from_decimal(uint64_t digits, int64_t exponent);

#define NUMBER_BYTES 32 /* all of it may be written to, more than the result has; no NUL is */

/* Each returns the length. Finite values only. Doubles and floats: the shortest decimal that reads back as the same
 * bits, and of those the nearest; always with a fraction or an exponent ("1.0"), so that a reader sees the type. */
size_t number_format_double(double value, char *ret_text);
size_t number_format_float(float value, char *ret_text);
size_t number_format_u64(uint64_t value, char *ret_text);
size_t number_format_i64(int64_t value, char *ret_text);

#endif
