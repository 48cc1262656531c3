#include "server/base/number.h"
#include "server/base/powers_of_ten_private.h"

#include <endian.h>
#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide_uint;

/* --- integers --- */

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
    "9899";

static inline unsigned count_digits(uint64_t value)
{
    unsigned guess = (64U - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12; /* log10(2) = 1233/4096 */
    return guess + (value >= integer_powers_of_ten[guess]) + (value == 0);
}

size_t number_format_u64(uint64_t value, char *ret_text)
{
    unsigned count = count_digits(value);
    char *at = ret_text + count;
    for (; value >= 100; value /= 100) {
        at -= 2;
        memcpy(at, digit_pairs + 2 * (value % 100), 2);
    }
    if (value >= 10)
        memcpy(ret_text, digit_pairs + 2 * value, 2);
    else
        *ret_text = (char)('0' + value);
    return count;
}

size_t number_format_i64(int64_t value, char *ret_text)
{
    if (value >= 0)
        return number_format_u64((uint64_t)value, ret_text);
    ret_text[0] = '-';
    return 1 + number_format_u64(0 - (uint64_t)value, ret_text + 1);
}

/* --- the shortest decimal ---
 * Source: Giulietti, "The Schubfach way to render doubles" (2020); names are his. Of the decimals that read back as the
 * value it takes the shortest, and of those the nearest. */

struct decimal {
    uint64_t digits;
    int exponent; /* digits * 10^exponent */
};

/* A finite value above 0 is c * 2^q. irregular: the neighbour below is half as far away as the one above. */
struct binary {
    uint64_t c;
    int q;
    bool irregular;
};

/* Four times the value and the bounds of what reads back as it, in units of 10^k; the last bit says that the exact
 * number is not on an integer, so that comparing these compares the exact numbers. */
struct interval {
    uint64_t lower;
    uint64_t value;
    uint64_t upper;
    int k;
};

static inline int floor_log10_of_power2(int q, bool three_quarters)
{
    return (q * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

static inline int floor_log2_of_power10(int e)
{
    return (e * 1741647) >> 19;
}

/* g rounded up: less than one too large. */
static inline struct power_of_ten power_rounded_up(int exponent)
{
    struct power_of_ten power = powers_of_ten[exponent - POWER_OF_TEN_LEAST];
    power.low += exponent < -27 || exponent > 55;
    return power;
}

/* 192 bits: the first 64 are a whole number, the others its fraction. */
struct fixed {
    wide_uint high;
    uint64_t low;
};

/* The whole number, and in its last bit whether there is more; the error of g is not more. */
static inline uint64_t round_to_odd(struct fixed number)
{
    return (uint64_t)(number.high >> 64) | ((uint64_t)number.high > 1);
}

static inline struct fixed multiply(struct power_of_ten g, uint64_t factor)
{
    wide_uint low = (wide_uint)g.low * factor;
    return (struct fixed){(wide_uint)g.high * factor + (uint64_t)(low >> 64), (uint64_t)low};
}

/* g * 2^shift, shift from 1 to 63 */
static inline struct fixed shifted(struct power_of_ten g, int shift)
{
    wide_uint high = (wide_uint)g.high << shift | g.low >> (64 - shift);
    return (struct fixed){high, g.low << shift};
}

static inline struct fixed plus(struct fixed left, struct fixed right)
{
    uint64_t low = left.low + right.low;
    return (struct fixed){left.high + right.high + (low < left.low), low};
}

static inline struct fixed minus(struct fixed left, struct fixed right)
{
    return (struct fixed){left.high - right.high - (left.low < right.low), left.low - right.low};
}

/* One multiplication: the bounds are 2 (or 1) less and 2 more than 4 c. */
static inline struct interval double_interval(const struct binary *binary)
{
    int k = floor_log10_of_power2(binary->q, binary->irregular);
    int shift = binary->q + floor_log2_of_power10(-k) + 1;
    struct power_of_ten g = power_rounded_up(-k);
    struct fixed value = multiply(g, 4 * binary->c << shift);
    uint64_t odd = binary->c & 1; /* the bounds themselves are read as the even neighbour */
    struct fixed above = shifted(g, shift + 1);
    struct fixed below = binary->irregular ? shifted(g, shift) : above;
    return (struct interval){.lower = round_to_odd(minus(value, below)) + odd,
                             .value = round_to_odd(value),
                             .upper = round_to_odd(plus(value, above)) - odd,
                             .k = k};
}

/* The same with half the bits: 64 of the power are enough for a float. */
static inline uint64_t round_to_odd_float(uint64_t g, uint64_t cp)
{
    wide_uint product = (wide_uint)g * cp;
    return (uint64_t)(product >> 64) | ((uint32_t)(product >> 32) > 1);
}

static inline struct interval float_interval(const struct binary *binary)
{
    int k = floor_log10_of_power2(binary->q, binary->irregular);
    int shift = binary->q + floor_log2_of_power10(-k) + 1;
    struct power_of_ten power = powers_of_ten[-k - POWER_OF_TEN_LEAST];
    uint64_t g = power.high + (power.low != 0);
    uint64_t four_c = 4 * binary->c;
    uint64_t odd = binary->c & 1;
    return (struct interval){.lower = round_to_odd_float(g, (four_c - 2 + binary->irregular) << shift) + odd,
                             .value = round_to_odd_float(g, four_c << shift),
                             .upper = round_to_odd_float(g, (four_c + 2) << shift) - odd,
                             .k = k};
}

/* No branch predictor can guess the case, so there are no jumps here. */
static inline struct decimal shortest_in(const struct interval *interval)
{
    uint64_t s = interval->value / 4;
    uint64_t tens = s / 10;
    uint64_t tens_below = interval->lower <= 40 * tens;
    uint64_t tens_above = 40 * tens + 40 <= interval->upper;
    uint64_t shorter = (s >= 10) & (tens_below ^ tens_above);
    uint64_t below = interval->lower <= 4 * s;
    uint64_t above = 4 * s + 4 <= interval->upper;
    uint64_t half = 4 * s + 2;
    uint64_t nearer = (interval->value > half) | ((interval->value == half) & s);
    uint64_t one = below ^ above;
    uint64_t up = (shorter & tens_above) | ((shorter ^ 1) & ((one & above) | ((one ^ 1) & nearer)));
    uint64_t chosen = s ^ ((s ^ tens) & (0 - shorter));
    return (struct decimal){chosen + up, interval->k + (int)shorter};
}

/* --- its text --- */

enum { DIGITS = 17, HALF = 8 };

/* Eight decimal digits of a number below 10^8, one in each byte, the first in the lowest. */
static inline uint64_t spread_digits(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007F0000007F); /* over 100: 10486/2^20 */
    uint64_t pairs = (fours << 16) - hundreds * ((100 << 16) - 1);
    uint64_t tens = (pairs * 103 >> 10) & UINT64_C(0x000F000F000F000F); /* over 10: 103/2^10 */
    return (pairs << 8) - tens * ((10 << 8) - 1);
}

/* Seventeen digits: one, and twice eight; and how many there are without zeros at the end, at least one. */
struct digits {
    char first;
    uint64_t front;
    uint64_t back;
    unsigned count;
};

/* Zeros behind the last digit that is none. */
static inline unsigned trailing_zeros(uint64_t spread)
{
    return (unsigned)__builtin_clzll(spread) / 8;
}

static inline struct digits split_digits(uint64_t digits)
{
    uint64_t rest = digits % UINT64_C(10000000000000000);
    struct digits split = {.first = (char)('0' + digits / UINT64_C(10000000000000000)),
                           .front = spread_digits((uint32_t)(rest / 100000000)),
                           .back = spread_digits((uint32_t)(rest % 100000000))};
    if (split.back)
        split.count = DIGITS - trailing_zeros(split.back);
    else
        split.count = split.front ? 1 + HALF - trailing_zeros(split.front) : 1;
    return split;
}

/* All but the first. */
static inline void store_rest(const struct digits *digits, char text[DIGITS - 1])
{
    uint64_t front = htole64(digits->front | UINT64_C(0x3030303030303030));
    uint64_t back = htole64(digits->back | UINT64_C(0x3030303030303030));
    memcpy(text, &front, sizeof(front));
    memcpy(text + HALF, &back, sizeof(back));
}

/* d.ddde-7, or de-7 */
static inline size_t place_scientific(const struct digits *digits, int exponent, char *text)
{
    text[0] = digits->first;
    text[1] = '.';
    store_rest(digits, text + 2);
    size_t length = digits->count > 1 ? 1 + digits->count : 1;
    const struct exponent_text *written = &exponent_texts[exponent - EXPONENT_TEXT_LEAST];
    memcpy(text + length, written->text, sizeof(written->text));
    return length + written->length;
}

/* 0.000ddd */
static inline size_t place_small(const struct digits *digits, int exponent, char *text)
{
    static const char zeros[5] = {'0', '.', '0', '0', '0'};
    size_t before = (size_t)(1 - exponent);
    memcpy(text, zeros, sizeof(zeros));
    text[before] = digits->first;
    store_rest(digits, text + before + 1);
    return before + digits->count;
}

/* ddd.ddd, with zeros up to the point and one behind it where there are too few: all behind `count` are zeros. */
static inline size_t place_whole(const struct digits *digits, int exponent, char *text)
{
    size_t whole = (size_t)exponent + 1;
    text[0] = digits->first;
    store_rest(digits, text + 2);
    memmove(text + 1, text + 2, whole - 1);
    text[whole] = '.';
    return digits->count > whole ? digits->count + 1 : whole + 2;
}

/* Number of digits missing to 17; a normal double has at least 15. */
static inline unsigned missing_digits(uint64_t digits)
{
    if (digits < UINT64_C(100000000000000))
        return DIGITS - count_digits(digits);
    return (digits < UINT64_C(10000000000000000)) + (unsigned)(digits < UINT64_C(1000000000000000));
}

/* The forms of %g, but never without a point or an exponent. */
static inline size_t place(struct decimal decimal, char *text)
{
    unsigned missing = missing_digits(decimal.digits);
    struct digits digits = split_digits(decimal.digits * integer_powers_of_ten[missing]);
    int exponent = decimal.exponent + (DIGITS - 1) - (int)missing;
    if (exponent < -4 || exponent >= DIGITS - 1)
        return place_scientific(&digits, exponent, text);
    return exponent < 0 ? place_small(&digits, exponent, text) : place_whole(&digits, exponent, text);
}

/* --- doubles and floats --- */

static size_t format_zero(bool negative, char *text)
{
    static const char zero[3] = {'0', '.', '0'};
    text[0] = '-';
    memcpy(text + negative, zero, sizeof(zero));
    return sizeof(zero) + negative;
}

size_t number_format_double(double value, char *ret_text)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bool negative = bits >> 63;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7FF);
    if (fraction == 0 && exponent == 0)
        return format_zero(negative, ret_text);
    struct binary binary = {.c = exponent ? fraction | UINT64_C(1) << 52 : fraction,
                            .q = (exponent ? exponent : 1) - 1075,
                            .irregular = fraction == 0 && exponent > 1};
    struct interval interval = double_interval(&binary);
    *ret_text = '-';
    return negative + place(shortest_in(&interval), ret_text + negative);
}

size_t number_format_float(float value, char *ret_text)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bool negative = bits >> 31;
    uint32_t fraction = bits & ((UINT32_C(1) << 23) - 1);
    int exponent = (int)(bits >> 23 & 0xFF);
    if (fraction == 0 && exponent == 0)
        return format_zero(negative, ret_text);
    struct binary binary = {.c = exponent ? fraction | UINT32_C(1) << 23 : fraction,
                            .q = (exponent ? exponent : 1) - 150,
                            .irregular = fraction == 0 && exponent > 1};
    struct interval interval = float_interval(&binary);
    *ret_text = '-';
    return negative + place(shortest_in(&interval), ret_text + negative);
}
