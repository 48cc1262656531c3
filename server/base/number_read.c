#include "server/base/cleanup.h"
#include "server/base/number.h"
#include "server/base/powers_of_ten_private.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide_uint;

/* --- from digits and an exponent --- */

enum {
    FRACTION_BITS = 52,
    EXPONENT_BIAS = 1023,
    EXPONENT_INFINITE = 2047,
    LEAST_TEN = POWER_OF_TEN_LEAST, /* 2^64 times less rounds to 0 */
    MOST_TEN = 308
};

static double double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The first 128 bits of digits * 10^exponent, as many as decide its rounding. digits: the highest bit is set. */
static wide_uint multiply(uint64_t digits, int exponent)
{
    const struct power_of_ten *power = &powers_of_ten[exponent - POWER_OF_TEN_LEAST];
    wide_uint product = (wide_uint)digits * power->high;
    if ((uint64_t)(product >> 64) % 512 == 511)
        product += (wide_uint)digits * power->low >> 64;
    return product;
}

/* A significand of 54 bits (one more than is kept) times 2^-(1 - exponent), below the normal numbers. */
static double round_subnormal(uint64_t significand, int exponent)
{
    if (exponent <= -63)
        return 0;
    significand >>= 1 - exponent;
    return double_of_bits((significand + (significand & 1)) >> 1); /* 2^52 is the least normal number by itself */
}

/* Source: Lemire, "Number Parsing at a Gigabyte per Second" (2021); that it needs no other way beside it: Mushtak and
 * Lemire, "Fast Number Parsing Without Fallback" (2022). */
static inline double from_decimal(uint64_t digits, int64_t exponent)
{
    if (digits == 0 || exponent < LEAST_TEN)
        return 0;
    if (exponent > MOST_TEN)
        return HUGE_VAL;
    int ten = (int)exponent;
    int zeros = __builtin_clzll(digits);
    wide_uint product = multiply(digits << zeros, ten);
    uint64_t high = (uint64_t)(product >> 64);
    int top = (int)(high >> 63);
    int shift = top + 64 - FRACTION_BITS - 3;
    uint64_t significand = high >> shift;
    int binary = (217706 * ten >> 16) + 63 + top - zeros + EXPONENT_BIAS; /* log2(10) is 217706/65536 */
    if (binary <= 0)
        return round_subnormal(significand, binary);
    if ((uint64_t)product <= 1 && ten >= -4 && ten <= 23 && (significand & 3) == 1 && significand << shift == high)
        significand--; /* exactly half way, and the even one is below */
    significand = (significand + (significand & 1)) >> 1;
    /* A carry out of the significand is one more in the exponent. */
    uint64_t bits = ((uint64_t)binary << FRACTION_BITS) + (significand - (UINT64_C(1) << FRACTION_BITS));
    return bits >> FRACTION_BITS >= EXPONENT_INFINITE ? HUGE_VAL : double_of_bits(bits);
}

double number_from_decimal(uint64_t digits, int64_t exponent)
{
    return from_decimal(digits, exponent);
}

/* --- reading --- */

/* A double is decided by at most 767 significant digits and by whether anything follows them. */
enum { DECIDING_DIGITS = 770 };

static double parse_slowly(const char *digits, const char *digits_end, int64_t exponent)
{
    char text[DECIDING_DIGITS + 32];
    size_t length = 0;
    bool cut = false;
    bool in_fraction = false;
    for (const char *at = digits; at < digits_end; at++) {
        if (*at == '.') {
            in_fraction = true;
            continue;
        }
        bool kept = length < DECIDING_DIGITS && (length > 0 || *at != '0');
        if (kept)
            text[length++] = *at;
        else if (length > 0)
            cut |= *at != '0';
        exponent += (length > 0 && !kept) - in_fraction;
    }
    if (length == 0)
        return 0;
    if (cut) {
        text[length++] = '1';
        exponent--;
    }
    snprintf(text + length, sizeof(text) - length, "e%lld", (long long)exponent);
    return strtod(text, NULL);
}

static inline bool is_digit(const char *at, const char *end)
{
    return at < end && (unsigned char)(*at - '0') < 10;
}

/* Beyond 19 digits the sum wraps; the caller counts them. */
static inline const char *read_digits(const char *at, const char *end, uint64_t *digits)
{
    uint64_t sum = *digits;
    for (; is_digit(at, end); at++)
        sum = sum * 10 + (uint64_t)(*at - '0');
    *digits = sum;
    return at;
}

/* "e-7" at the place behind the 'e'. NULL if there are no digits. */
static const char *read_exponent(const char *at, const char *end, int64_t *ret_exponent)
{
    bool negative = at < end && *at == '-';
    int64_t exponent = 0;
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (!is_digit(at, end))
        return NULL;
    for (; is_digit(at, end); at++)
        exponent = exponent < INT32_MAX ? exponent * 10 + (*at - '0') : exponent;
    *ret_exponent = negative ? -exponent : exponent;
    return at;
}

static void set_integer(struct number *number, uint64_t digits, bool negative)
{
    number->is_integer = digits <= (uint64_t)INT64_MAX + negative;
    number->integer = negative ? (int64_t)(0 - digits) : (int64_t)digits;
}

static const char *parse_any(const char *at, const char *end, struct number *ret_number)
{
    uint64_t digits = 0;
    int64_t exponent = 0;
    bool negative = at < end && *at == '-';
    const char *first = at + negative;
    const char *point = read_digits(first, end, &digits);
    if (point == first || (*first == '0' && point - first > 1))
        return NULL;
    at = point;
    if (at < end && *at == '.') {
        at = read_digits(point + 1, end, &digits);
        exponent = point + 1 - at;
        if (exponent == 0)
            return NULL;
    }
    const char *last = at;
    int64_t written_exponent = 0;
    if (at < end && (*at == 'e' || *at == 'E') && !(at = read_exponent(at + 1, end, &written_exponent)))
        return NULL;
    exponent += written_exponent;
    bool wrapped = last - first > 19 && (*first != '0' || last - point > 20); /* "0." and 19 digits are 21 bytes */
    ret_number->has_fraction = at != point;
    ret_number->is_integer = false;
    if (!ret_number->has_fraction && !wrapped)
        set_integer(ret_number, digits, negative);
    ret_number->value = wrapped ? parse_slowly(first, last, written_exponent) : number_from_decimal(digits, exponent);
    if (negative)
        ret_number->value = -ret_number->value;
    return at;
}

/* --- reading eight bytes at once: what nearly every number in an array is --- */

enum { WORD = 8, LOOKED_AT = 48, DIGITS_MAX = 19 };

/* The value of the digits at `at`, up to eight of them, and how many they are. Without a branch on their number.
 * Source: Lemire, "Quickly parsing eight digits" (2018). */
static inline unsigned read_word(const char *at, uint64_t *ret_value)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    word = le64toh(word) ^ UINT64_C(0x3030303030303030);
    uint64_t others = (word | (word + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080);
    unsigned count = others ? (unsigned)__builtin_ctzll(others) / 8 : WORD;
    if (count == 0) {
        *ret_value = 0;
        return 0;
    }
    word <<= 8 * (WORD - count); /* leading zeros */
    word = word * 10 + (word >> 8);
    *ret_value = ((word & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064) +
                  (word >> 16 & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001)) >>
                 32;
    return count;
}

/* Appends up to eight digits. False: they do not fit. */
static inline bool add_word(const char **at, uint64_t *digits, unsigned *ret_count)
{
    uint64_t more;
    unsigned count = *ret_count = read_word(*at, &more);
    if (*digits >= integer_powers_of_ten[DIGITS_MAX - count])
        return false;
    *digits = *digits * integer_powers_of_ten[count] + more;
    *at += count;
    return true;
}

/* Up to 23 digits behind a point. Returns how many; 0: none, or more than fit. */
static inline unsigned read_fraction(const char **at, uint64_t *digits)
{
    unsigned fraction;
    unsigned count;
    if (!add_word(at, digits, &fraction))
        return 0;
    if (fraction < WORD)
        return fraction;
    if (!add_word(at, digits, &count))
        return 0;
    fraction += count;
    if (count < WORD)
        return fraction;
    if (!add_word(at, digits, &count) || count == WORD)
        return 0;
    return fraction + count;
}

/* Up to seven digits before the point and 23 behind it, 19 in all without leading zeros. NULL: anything else. */
static inline const char *parse_short(const char *at, const char *end, struct number *ret_number)
{
    uint64_t digits;
    unsigned fraction = 0;
    int64_t exponent = 0;
    bool negative = *at == '-';
    at += negative;
    unsigned whole = 1;
    digits = (uint64_t)(*at - '0');
    if (digits > 9 || at[1] != '.')
        whole = read_word(at, &digits);
    if (whole == 0 || whole == WORD || (*at == '0' && whole > 1))
        return NULL;
    at += whole;
    bool point = *at == '.';
    if (point && (at++, (fraction = read_fraction(&at, &digits)) == 0))
        return NULL;
    bool power = (*at | 0x20) == 'e';
    if (power && !(at = read_exponent(at + 1, end, &exponent)))
        return NULL;
    ret_number->has_fraction = point || power;
    ret_number->is_integer = !ret_number->has_fraction;
    ret_number->integer = negative ? -(int64_t)digits : (int64_t)digits;
    double value = ret_number->is_integer ? (double)digits : from_decimal(digits, exponent - (int64_t)fraction);
    ret_number->value = negative ? -value : value;
    return at;
}

const char *number_parse(const char *at, const char *end, struct number *ret_number)
{
    const char *behind = end - at >= LOOKED_AT ? parse_short(at, end, ret_number) : NULL;
    return behind ? behind : parse_any(at, end, ret_number);
}
