#include "server/store/digits.h"

#include <stdint.h>

__extension__ typedef unsigned __int128 wide;

/* The first byte: decimal places, form, and whether a difference from the rounded value follows. */
enum { PLACES_MAX = 31, FORM_SHIFT = 5, FORM_MASK = 3, HAS_DIFFERENCE = 0x80 };
enum form {
    FORM_PLAIN,    /* -0.25 */
    FORM_EXPONENT, /* 2.5e-07, as of Python and C */
    FORM_SHORT,    /* 2.5e-7, as of JavaScript */
    FORM_LITERAL,  /* anything else: its length and its bytes follow */
};
enum { DIGITS_MAX = 19, NUMBER_MAX_BYTES = 64, NEAR_SHIFT = 18 };

/* digits * 10^-places */
struct decimal {
    bool negative;
    uint64_t digits;
    unsigned places;
    enum form form;
};

/* mantissa * 2^exponent */
struct value {
    bool negative;
    uint32_t mantissa;
    int exponent;
};

/* ---- values --------------------------------------------------------------------------------------------------------- */

static struct value value_of_f32(const void *bytes)
{
    enum { MANTISSA_BITS = 23, EXPONENT_MASK = 0xFF, BIAS = 150 };
    uint32_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    uint32_t mantissa = bits & ((1U << MANTISSA_BITS) - 1);
    int exponent = (int)(bits >> MANTISSA_BITS & EXPONENT_MASK);
    if (exponent)
        mantissa |= 1U << MANTISSA_BITS;
    return (struct value){bits >> 31, mantissa, (exponent ? exponent : 1) - BIAS};
}

static struct value value_of(const struct digits_value *value)
{
    uint32_t bits;
    if (value->kind == DIGITS_F32)
        return value_of_f32(value->bytes);
    if (value->kind == DIGITS_U8)
        return (struct value){.mantissa = *(const uint8_t *)value->bytes};
    memcpy(&bits, value->bytes, sizeof(bits));
    return (struct value){.mantissa = bits};
}

static const uint64_t powers[DIGITS_MAX + 1] = {1,
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

/* Half to even. */
static wide shift_down(wide product, unsigned bits)
{
    if (bits >= 8 * sizeof(wide))
        return 0;
    if (bits == 0)
        return product;
    wide quotient = product >> bits;
    wide rest = product - (quotient << bits);
    wide half = (wide)1 << (bits - 1);
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

/* The value in units of 10^-places. False: it has more than 64 bits. */
static bool scale(const struct value *value, unsigned places, uint64_t *ret_digits)
{
    enum { PLACES_OF_32_BITS = 28, MANTISSA_BITS = 24 };
    if (places > PLACES_OF_32_BITS && value->mantissa >> MANTISSA_BITS)
        return false;
    wide product = (wide)value->mantissa * powers[places < DIGITS_MAX ? places : DIGITS_MAX];
    if (places > DIGITS_MAX)
        product *= powers[places - DIGITS_MAX];
    if (value->exponent <= 0)
        product = shift_down(product, (unsigned)-value->exponent);
    else if (value->exponent >= 64 || product >> (64 - value->exponent))
        return false;
    else
        product <<= value->exponent;
    *ret_digits = (uint64_t)product;
    return product >> 64 == 0;
}

/* ---- written numbers ------------------------------------------------------------------------------------------------ */

/* Digits from the end of `end` backwards, at least `least` of them. Returns where they begin. */
static char *write_digits(char *end, uint64_t digits, unsigned least)
{
    char *begin = end;
    for (unsigned i = 0; digits || i < least; i++, digits /= 10)
        *--begin = (char)('0' + digits % 10);
    return begin;
}

static unsigned count_digits(uint64_t digits)
{
    unsigned count = 1;
    while (count <= DIGITS_MAX && digits >= powers[count])
        count++;
    return count;
}

static char *write_exponent(char *end, const struct decimal *decimal)
{
    unsigned fraction = count_digits(decimal->digits) - 1;
    char *begin = write_digits(end, decimal->places - fraction, decimal->form == FORM_EXPONENT ? 2 : 1);
    *--begin = '-';
    *--begin = 'e';
    begin = write_digits(begin, decimal->digits % powers[fraction], fraction);
    if (fraction)
        *--begin = '.';
    return write_digits(begin, decimal->digits / powers[fraction], 1);
}

static char *write_plain(char *end, const struct decimal *decimal)
{
    bool all = decimal->places > DIGITS_MAX; /* of them are behind the point */
    if (decimal->places == 0)
        return write_digits(end, decimal->digits, 1);
    char *begin = write_digits(end, all ? decimal->digits : decimal->digits % powers[decimal->places], decimal->places);
    *--begin = '.';
    return write_digits(begin, all ? 0 : decimal->digits / powers[decimal->places], 1);
}

/* Into the end of `room`. False: there is no such number. */
static bool write_number(char room[NUMBER_MAX_BYTES], const struct decimal *decimal, struct text *ret_number)
{
    char *end = room + NUMBER_MAX_BYTES;
    if (decimal->form != FORM_PLAIN && decimal->places < count_digits(decimal->digits))
        return false;
    char *begin = decimal->form == FORM_PLAIN ? write_plain(end, decimal) : write_exponent(end, decimal);
    if (decimal->negative)
        *--begin = '-';
    *ret_number = (struct text){begin, (size_t)(end - begin)};
    return true;
}

struct reading {
    const char *at, *end;
    unsigned count; /* of digits */
};

/* Digits at the front; too many leave none. */
static unsigned read_digits(struct reading *reading, uint64_t *digits)
{
    unsigned before = reading->count;
    for (; reading->at < reading->end && *reading->at >= '0' && *reading->at <= '9'; reading->at++, reading->count++)
        if (*digits < powers[DIGITS_MAX - 1])
            *digits = *digits * 10 + (uint64_t)(*reading->at - '0');
        else
            return 0;
    return reading->count - before;
}

static bool skip(struct reading *reading, char byte)
{
    bool there = reading->at < reading->end && *reading->at == byte;
    reading->at += there;
    return there;
}

/* Loosely: what it reads is written again and compared. */
static bool read_number(struct text number, struct decimal *ret_decimal)
{
    struct reading reading = {number.data, number.data + number.length_bytes, 0};
    uint64_t exponent = 0;
    *ret_decimal = (struct decimal){.negative = skip(&reading, '-')};
    if (!read_digits(&reading, &ret_decimal->digits))
        return false;
    if (skip(&reading, '.'))
        ret_decimal->places = read_digits(&reading, &ret_decimal->digits);
    if (skip(&reading, 'e')) {
        if (!skip(&reading, '-'))
            return false;
        ret_decimal->form = skip(&reading, '0') || reading.end - reading.at > 1 ? FORM_EXPONENT : FORM_SHORT;
        (void)read_digits(&reading, &exponent);
        if (exponent > PLACES_MAX)
            return false;
        ret_decimal->places += (unsigned)exponent;
    }
    return reading.at == reading.end && ret_decimal->places <= PLACES_MAX;
}

/* ---- packed --------------------------------------------------------------------------------------------------------- */

void digits_put(struct buffer *out, uint64_t number)
{
    enum { LOW = 0x7F, MORE = 0x80 };
    for (; number > LOW; number >>= 7)
        buffer_append_byte(out, (char)(number | MORE));
    buffer_append_byte(out, (char)number);
}

bool digits_get(struct text *packed, uint64_t *ret_number)
{
    enum { LOW = 0x7F, BITS = 64 };
    *ret_number = 0;
    for (unsigned shift = 0; shift < BITS && packed->length_bytes; shift += 7) {
        uint8_t byte = (uint8_t)*packed->data++;
        packed->length_bytes--;
        *ret_number |= (uint64_t)(byte & LOW) << shift;
        if (byte <= LOW)
            return true;
    }
    return false;
}

static bool pack_literal(struct text number, struct buffer *out)
{
    buffer_append_byte(out, (char)(FORM_LITERAL << FORM_SHIFT));
    digits_put(out, number.length_bytes);
    buffer_append(out, number.data, number.length_bytes);
    return false;
}

/* Does the value say how this number is written, except for its last digits? */
static bool says(const struct value *value, struct text number, struct decimal *ret_decimal, uint64_t *ret_rounded)
{
    char room[NUMBER_MAX_BYTES];
    struct text again;
    return read_number(number, ret_decimal) && ret_decimal->negative == value->negative &&
           write_number(room, ret_decimal, &again) && text_same(again, number) &&
           scale(value, ret_decimal->places, ret_rounded);
}

bool digits_pack(struct text number, const struct digits_value *value, struct buffer *out)
{
    struct value own = value_of(value);
    struct decimal decimal;
    uint64_t rounded;
    if (!says(&own, number, &decimal, &rounded))
        return pack_literal(number, out) || own.mantissa == 0;
    unsigned tag = decimal.places | (unsigned)decimal.form << FORM_SHIFT;
    bool more = decimal.digits > rounded;
    uint64_t difference = more ? decimal.digits - rounded : rounded - decimal.digits;
    if (difference >> 62)
        return pack_literal(number, out) || own.mantissa == 0;
    buffer_append_byte(out, (char)(difference ? tag | HAS_DIFFERENCE : tag));
    if (difference)
        digits_put(out, difference << 1 | more);
    return difference <= (rounded >> NEAR_SHIFT) + 1 || own.mantissa == 0;
}

static bool unpack_literal(struct text *packed, struct buffer *out)
{
    uint64_t length_bytes;
    if (!digits_get(packed, &length_bytes) || length_bytes > packed->length_bytes)
        return false;
    buffer_append(out, packed->data, (size_t)length_bytes);
    packed->data += length_bytes;
    packed->length_bytes -= (size_t)length_bytes;
    return true;
}

static bool add_difference(struct text *packed, uint64_t *digits)
{
    uint64_t difference;
    if (!digits_get(packed, &difference))
        return false;
    *digits = difference & 1 ? *digits + (difference >> 1) : *digits - (difference >> 1);
    return true;
}

bool digits_unpack(struct text *packed, const struct digits_value *value, struct buffer *out)
{
    char room[NUMBER_MAX_BYTES];
    struct text number;
    if (packed->length_bytes == 0)
        return false;
    unsigned tag = (uint8_t)*packed->data++;
    packed->length_bytes--;
    struct value own = value_of(value);
    struct decimal decimal = {
        .negative = own.negative, .places = tag & PLACES_MAX, .form = (enum form)(tag >> FORM_SHIFT & FORM_MASK)};
    if (decimal.form == FORM_LITERAL)
        return unpack_literal(packed, out);
    if (!scale(&own, decimal.places, &decimal.digits) ||
        (tag & HAS_DIFFERENCE && !add_difference(packed, &decimal.digits)) || !write_number(room, &decimal, &number))
        return false;
    buffer_append(out, number.data, number.length_bytes);
    return true;
}
