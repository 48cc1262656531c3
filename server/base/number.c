#include "server/base/number.h"

#include "server/base/cleanup.h"

#include <endian.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- powers of ten --- */

static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { EXACT_POWERS = (int)ARRAY_LENGTH(exact_powers) };

#if LDBL_MANT_DIG >= 64

static const long double long_powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                          1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                          1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

enum { LONG_POWERS = (int)ARRAY_LENGTH(long_powers) };

static long double long_scale(long double value, int exponent)
{
    return exponent < 0 ? value / long_powers[-exponent] : value * long_powers[exponent];
}

#endif

#if LDBL_MANT_DIG == 64

/* One rounding to 64 bits, one to 53. The second undoes the first only from exactly half way between two doubles. */
static bool from_decimal_long(uint64_t digits, int exponent, double *ret_value)
{
    if (exponent <= -LONG_POWERS || exponent >= LONG_POWERS)
        return false;
    long double scaled = long_scale((long double)digits, exponent);
    uint64_t significand;
    memcpy(&significand, &scaled, sizeof(significand));
    if ((significand & 0x7FF) == 0x400)
        return false;
    *ret_value = (double)scaled;
    return true;
}

#else

static bool from_decimal_long(uint64_t digits, int exponent, double *ret_value)
{
    (void)digits, (void)exponent, (void)ret_value;
    return false;
}

#endif

bool number_from_decimal(uint64_t digits, int exponent, double *ret_value)
{
    if (digits >> 53 || exponent <= -EXACT_POWERS || exponent >= EXACT_POWERS)
        return from_decimal_long(digits, exponent, ret_value);
    double value = (double)digits;
    *ret_value = exponent < 0 ? value / exact_powers[-exponent] : value * exact_powers[exponent];
    return true;
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
    if (wrapped || exponent < INT32_MIN || exponent > INT32_MAX ||
        !number_from_decimal(digits, (int)exponent, &ret_number->value))
        ret_number->value = parse_slowly(first, last, written_exponent);
    if (negative)
        ret_number->value = -ret_number->value;
    return at;
}

/* --- reading eight bytes at once: what nearly every number in an array is --- */

static const uint64_t integer_powers[] = {1,
                                          10,
                                          100,
                                          1000,
                                          10000,
                                          100000,
                                          1000000,
                                          10000000,
                                          100000000,
                                          1000000000,
                                          10000000000,
                                          100000000000,
                                          1000000000000,
                                          10000000000000,
                                          100000000000000,
                                          1000000000000000,
                                          10000000000000000,
                                          100000000000000000,
                                          1000000000000000000,
                                          10000000000000000000U};

enum { WORD = 8, LOOKED_AT = 32 };

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

/* Up to seven digits before the point, up to fifteen behind it, 19 in all, no exponent. NULL: anything else. */
static inline const char *parse_short(const char *at, struct number *ret_number)
{
    uint64_t digits;
    uint64_t more;
    bool negative = *at == '-';
    at += negative;
    unsigned whole = read_word(at, &digits);
    if (whole == 0 || whole == WORD || (*at == '0' && whole > 1))
        return NULL;
    at += whole;
    if (*at != '.') {
        ret_number->has_fraction = false;
        ret_number->is_integer = true;
        ret_number->integer = negative ? -(int64_t)digits : (int64_t)digits;
        ret_number->value = negative ? -(double)digits : (double)digits;
        return (*at | 0x20) == 'e' ? NULL : at;
    }
    unsigned fraction = read_word(++at, &more);
    digits = digits * integer_powers[fraction] + more;
    at += fraction;
    if (fraction == WORD) {
        unsigned second = read_word(at, &more);
        digits = digits * integer_powers[second] + more;
        at += second;
        fraction += second;
    }
    if (fraction == 0 || whole + fraction > 19 || fraction == 2 * WORD || (*at | 0x20) == 'e')
        return NULL;
    ret_number->has_fraction = true;
    ret_number->is_integer = false;
    if (!number_from_decimal(digits, -(int)fraction, &ret_number->value))
        return NULL;
    if (negative)
        ret_number->value = -ret_number->value;
    return at;
}

const char *number_parse(const char *at, const char *end, struct number *ret_number)
{
    const char *behind = end - at >= LOOKED_AT ? parse_short(at, ret_number) : NULL;
    return behind ? behind : parse_any(at, end, ret_number);
}

/* --- writing --- */

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
    "9899";

static unsigned count_digits(uint64_t value)
{
    unsigned guess = (64U - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12; /* log10(2) = 1233/4096 */
    return guess + (value >= integer_powers[guess]) + (value == 0);
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

/* Where every power that is needed is in the tables. */
#define FAST_LEAST 1e-10
#define FAST_BOUND 1e22

static double power_of_ten(int exponent)
{
    static const double small_powers[] = {1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10};
    return exponent < 0 ? small_powers[-exponent] : exact_powers[exponent];
}

/* Of the first digit. log10(2) is a little more than 1233/4096, so the first guess is right or one too small. */
static int decimal_exponent(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    int binary = (int)(bits >> 52 & 0x7FF) - 1023;
    int exponent = binary * 1233 >> 12;
    return exponent + 1 < EXACT_POWERS && value >= power_of_ten(exponent + 1) ? exponent + 1 : exponent;
}

/* digits are digits[0].digits[1]digits[2]… times 10^exponent. The forms of %g, but never without a point or an
 * exponent. */
static size_t place_digits(const char *digits, size_t count, int exponent, char *text)
{
    char *at = text;
    if (exponent < -4 || exponent >= 16) {
        *at++ = digits[0];
        if (count > 1) {
            *at++ = '.';
            memcpy(at, digits + 1, count - 1);
            at += count - 1;
        }
        *at++ = 'e';
        return (size_t)(at - text) + number_format_i64(exponent, at);
    }
    if (exponent < 0) {
        at[0] = '0';
        at[1] = '.';
        memset(at + 2, '0', 3);
        at += 1 - exponent;
        memcpy(at, digits, count);
        return (size_t)(at - text) + count;
    }
    size_t whole = (size_t)exponent + 1;
    size_t given = count < whole ? count : whole;
    memcpy(at, digits, given);
    memset(at + given, '0', whole - given);
    at += whole;
    *at++ = '.';
    if (count <= whole) {
        *at++ = '0';
        return (size_t)(at - text);
    }
    memcpy(at, digits + whole, count - whole);
    return (size_t)(at - text) + count - whole;
}

static size_t place_integer(uint64_t integer, int power, char *text)
{
    char digits[NUMBER_BYTES];
    size_t count = number_format_u64(integer, digits);
    int exponent = (int)count - 1 - power;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return place_digits(digits, count, exponent, text);
}

/* A value times 10^power, as its nearest integer and what that is too large by; and how far a decimal may lie below and
 * above the value and still read back as it, in the same unit. blur: more than the error of all of these. */
struct scaled {
    uint64_t digits;
    int power;
    double excess;
    double below;
    double above;
    double blur;
};

static bool reads_back(uint64_t digits, int power, double value, bool as_float)
{
    double back;
    return number_from_decimal(digits, -power, &back) && (as_float ? (float)back == (float)value : back == value);
}

/* The fewest digits, of `most` that there are but at least `least`, that read back. 0: none. */
static size_t format_scaled(const struct scaled *scaled, double value, bool as_float, int most, int least, char *text)
{
    for (int dropped = most - least; dropped >= 0; dropped--) {
        uint64_t unit = integer_powers[dropped];
        uint64_t digits = (scaled->digits + unit / 2) / unit;
        double apart = scaled->excess + (double)(int64_t)(digits * unit - scaled->digits);
        double room = apart < 0 ? scaled->below + apart : scaled->above - apart;
        if (room > scaled->blur ||
            (room > -scaled->blur && reads_back(digits, scaled->power - dropped, value, as_float)))
            return place_integer(digits, scaled->power - dropped, text);
    }
    return 0;
}

/* Distances to the neighbours, halved. */
static size_t format_fast_float(float value, char *text)
{
    uint32_t bits;
    float below;
    float above;
    memcpy(&bits, &value, sizeof(bits));
    memcpy(&below, &(uint32_t){bits - 1}, sizeof(below));
    memcpy(&above, &(uint32_t){bits + 1}, sizeof(above));
    int power = 8 - decimal_exponent((double)value);
    double scale = power < 0 ? 1 / exact_powers[-power] : exact_powers[power];
    double exact = (double)value * scale;
    struct scaled scaled = {.digits = (uint64_t)(exact + 0.5), .power = power, .blur = 1e-5};
    scaled.excess = (double)scaled.digits - exact;
    scaled.below = ((double)value - (double)below) / 2 * scale;
    scaled.above = ((double)above - (double)value) / 2 * scale;
    return format_scaled(&scaled, (double)value, true, 9, 6, text);
}

#if LDBL_MANT_DIG >= 64

static size_t format_fast_double(double value, char *text)
{
    uint64_t bits;
    double below;
    double above;
    memcpy(&bits, &value, sizeof(bits));
    memcpy(&below, &(uint64_t){bits - 1}, sizeof(below));
    memcpy(&above, &(uint64_t){bits + 1}, sizeof(above));
    int power = 16 - decimal_exponent(value);
    long double exact = long_scale(value, power);
    struct scaled scaled = {.digits = (uint64_t)(exact + 0.5L), .power = power, .blur = 0.01};
    scaled.excess = (double)((long double)scaled.digits - exact);
    scaled.below = (double)(long_scale(value - below, power) / 2);
    scaled.above = (double)(long_scale(above - value, power) / 2);
    return format_scaled(&scaled, value, false, 17, 15, text);
}

#else

static size_t format_fast_double(double value, char *text)
{
    (void)value, (void)text;
    return 0;
}

#endif

static size_t format_slowly(double value, bool as_float, int least, int most, char *text)
{
    char written[40];
    for (int precision = least; precision <= most; precision++) {
        snprintf(written, sizeof(written), "%.*e", precision - 1, value);
        if (as_float ? strtof(written, NULL) == (float)value : strtod(written, NULL) == value)
            break;
    }
    char digits[20] = "0";
    size_t count = 0;
    const char *at = written;
    for (; *at && *at != 'e'; at++)
        if (*at != '.')
            digits[count++] = *at;
    int exponent = (int)strtol(at + 1, NULL, 10);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return place_digits(digits, count, exponent, text);
}

static size_t take_sign(double *value, char **text)
{
    if (signbit(*value)) {
        *value = -*value;
        *(*text)++ = '-';
        return 1;
    }
    return 0;
}

static bool in_fast_range(double value)
{
    return value >= FAST_LEAST && value < FAST_BOUND;
}

size_t number_format_double(double value, char *ret_text)
{
    size_t sign = take_sign(&value, &ret_text);
    size_t length = 0;
    if (value == 0)
        return sign + place_digits("0", 1, 0, ret_text);
    if (in_fast_range(value))
        length = format_fast_double(value, ret_text);
    return sign + (length ? length : format_slowly(value, false, 15, 17, ret_text));
}

size_t number_format_float(float value, char *ret_text)
{
    double wide = (double)value;
    size_t sign = take_sign(&wide, &ret_text);
    size_t length = 0;
    if (wide == 0)
        return sign + place_digits("0", 1, 0, ret_text);
    if (in_fast_range(wide))
        length = format_fast_float((float)wide, ret_text);
    return sign + (length ? length : format_slowly(wide, true, 6, 9, ret_text));
}
