#include "verifiers/schema/decimal.h"

#include <gmp.h>

#define EXPONENT_MAX INT64_C(1000000000000000000)
#define CHUNK_DIGITS 18
#define CHUNK_UNIT UINT64_C(1000000000000000000)

/* Behind the e: saturated. */
static int64_t read_exponent(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t value = 0;

    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && value < EXPONENT_MAX / 10; at++)
        value = value * 10 + (*at - '0');
    if (at < end)
        value = EXPONENT_MAX;
    return negative ? -value : value;
}

void decimal_read(struct text number, struct decimal *ret_decimal)
{
    const char *end = number.data + number.length_bytes;
    const char *at = number.data;
    const char *point = NULL;
    const char *first = NULL;
    const char *last = NULL;

    *ret_decimal = (struct decimal){.length_bytes = (uint32_t)number.length_bytes};
    ret_decimal->negative = at < end && *at == '-';
    for (at += ret_decimal->negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            point = at;
        } else if (*at != '0') {
            first = first ? first : at;
            last = at;
        }
    }
    if (!first)
        return;
    if (!point)
        point = at;
    ret_decimal->first = first;
    ret_decimal->end = last + 1;
    ret_decimal->digits = (uint32_t)(last + 1 - first) - (first < point && point < last);
    ret_decimal->exponent = last < point ? point - last - 1 : -(last - point);
    ret_decimal->exponent += at < end ? read_exponent(at + 1, end) : 0;
}

static int compare_digits(const struct decimal *left, const struct decimal *right)
{
    const char *first = left->first;
    const char *second = right->first;

    for (;;) {
        first += first < left->end && *first == '.';
        second += second < right->end && *second == '.';
        if (first == left->end || second == right->end)
            return (second == right->end) - (first == left->end);
        if (*first != *second)
            return *first < *second ? -1 : 1;
        first++;
        second++;
    }
}

int decimal_compare(const struct decimal *left, const struct decimal *right)
{
    int sign = left->negative ? -1 : 1;
    int64_t size;
    int64_t other;

    if (!left->first || !right->first) {
        const struct decimal *only = left->first ? left : right;
        if (!only->first)
            return 0;
        return only->negative == (only == left) ? -1 : 1;
    }
    if (left->negative != right->negative)
        return sign;
    size = left->exponent + left->digits;
    other = right->exponent + right->digits;
    if (size != other)
        return size < other ? -sign : sign;
    return sign * compare_digits(left, right);
}

/* Up to 18 of the digits from *at on, as a number; *ret_unit: 10 to their count. */
static uint64_t take_digits(const char **at, const char *end, uint64_t *ret_unit)
{
    uint64_t value = 0;

    *ret_unit = 1;
    for (; *at < end && *ret_unit < CHUNK_UNIT; (*at)++) {
        if (**at == '.')
            continue;
        value = value * 10 + (uint64_t)(**at - '0');
        *ret_unit *= 10;
    }
    return value;
}

uint64_t decimal_count(const struct decimal *decimal)
{
    const char *at = decimal->first;
    uint64_t unit;
    uint64_t value;

    if (!decimal->first)
        return 0;
    if (decimal->exponent + decimal->digits > CHUNK_DIGITS)
        return UINT64_MAX;
    value = take_digits(&at, decimal->end, &unit);
    for (int64_t i = 0; i < decimal->exponent; i++)
        value *= 10;
    return value;
}

/* --- multiples ------------------------------------------------------------------------------------------------
 * With a = m·10^i and b = n·10^k, where neither m nor n ends in 0: b divides a if i >= k and n divides m·10^(i-k). For
 * i < k it does not, because 10 does not divide m. */

static uint64_t multiply(uint64_t left, uint64_t right, uint64_t modulus)
{
    return (uint64_t)((unsigned __int128)left * right % modulus);
}

static uint64_t power_of_ten(uint64_t exponent, uint64_t modulus)
{
    uint64_t result = 1 % modulus;
    uint64_t base = 10 % modulus;

    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply(result, base, modulus);
        base = multiply(base, base, modulus);
    }
    return result;
}

static bool divides(uint64_t divisor, const struct decimal *decimal, uint64_t shift)
{
    uint64_t rest = 0;

    if (divisor == 0)
        return false;
    for (const char *at = decimal->first; at < decimal->end;) {
        uint64_t unit;
        uint64_t chunk = take_digits(&at, decimal->end, &unit);
        rest = (multiply(rest, unit % divisor, divisor) + chunk % divisor) % divisor;
    }
    return multiply(rest, power_of_ten(shift, divisor), divisor) == 0;
}

static void add_chunk(mpz_t sum, uint64_t unit, uint64_t chunk)
{
    mpz_mul_ui(sum, sum, unit);
    mpz_add_ui(sum, sum, chunk);
}

static bool large_divides(const struct decimal *divisor, const struct decimal *decimal, uint64_t shift)
{
    mpz_t modulus;
    mpz_t rest;
    mpz_t power;
    uint64_t unit;
    bool result;

    mpz_inits(modulus, rest, power, NULL);
    for (const char *at = divisor->first; at < divisor->end;) {
        uint64_t chunk = take_digits(&at, divisor->end, &unit);
        add_chunk(modulus, unit, chunk);
    }
    for (const char *at = decimal->first; at < decimal->end;) {
        uint64_t chunk = take_digits(&at, decimal->end, &unit);
        add_chunk(rest, unit, chunk);
        mpz_mod(rest, rest, modulus);
    }
    mpz_set_ui(power, 10);
    mpz_powm_ui(power, power, shift, modulus);
    mpz_mul(rest, rest, power);
    result = mpz_divisible_p(rest, modulus) != 0;
    mpz_clears(modulus, rest, power, NULL);
    return result;
}

bool decimal_is_multiple(const struct decimal *decimal, const struct decimal *divisor)
{
    const char *at = divisor->first;
    uint64_t unit;
    uint64_t shift;

    if (!decimal->first)
        return true;
    if (decimal->exponent < divisor->exponent)
        return false;
    shift = (uint64_t)(decimal->exponent - divisor->exponent);
    if (divisor->digits > CHUNK_DIGITS)
        return large_divides(divisor, decimal, shift);
    return divides(take_digits(&at, divisor->end, &unit), decimal, shift);
}
