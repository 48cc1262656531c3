/* Numbers in digits: groups of thousands, fractions, repeating fractions, E notation. */
#include <stdlib.h>

#include "verifiers/math_reader.h"

static size_t digits_at(const char *at, const char *end)
{
    size_t count = 0;

    while (at + count < end && is_digit(at[count]))
        count++;
    return count;
}

/* The separator of thousands that stands here before exactly three digits, or NULL. */
static const char *group_separator(const struct number_reader *reader)
{
    static const char *const separators[] = {"{,}", ",", " "};

    for (size_t i = 0; i < ARRAY_LENGTH(separators); i++) {
        bool bare_comma = separators[i][0] == ',';
        if (!sees(reader, separators[i]) || (bare_comma && (reader->decimal_comma || reader->in_brackets)))
            continue;
        return digits_at(reader->at + strlen(separators[i]), reader->end) == 3 ? separators[i] : NULL;
    }
    return NULL;
}

struct literal {
    char digits[MATH_DIGITS_BYTES];
    size_t count;
    size_t fraction; /* how many of them stand after the point */
    size_t period;   /* how many of those repeat for ever */
};

static bool take_digits(struct number_reader *reader, struct literal *literal)
{
    size_t count = digits_at(reader->at, reader->end);

    if (literal->count + count >= sizeof literal->digits)
        return refuse(reader, NUMBER_LIMIT);
    memcpy(literal->digits + literal->count, reader->at, count);
    literal->count += count;
    reader->at += count;
    return true;
}

/* Groups of three after a first group of one to three; the separator stays the same. */
static bool take_groups(struct number_reader *reader, struct literal *literal)
{
    const char *separator = group_separator(reader);

    if (literal->count == 0 || literal->count > 3 || !separator)
        return true;
    while (group_separator(reader) == separator) {
        take(reader, separator);
        if (!take_digits(reader, literal))
            return false;
    }
    /* 1,000,00 is no number, and 1 234/5 could be a mixed one. */
    if ((sees(reader, separator) && is_digit(peek_at(reader, strlen(separator)))) ||
        (separator[0] == ' ' && peek(reader) == '/'))
        return refuse(reader, NUMBER_NONE);
    return true;
}

static bool take_fraction_part(struct number_reader *reader, struct literal *literal)
{
    size_t before = literal->count;
    bool comma = reader->decimal_comma && peek(reader) == ',' && is_digit(peek_at(reader, 1));

    if (peek(reader) != '.' && !comma)
        return true;
    reader->at++;
    if (!take_digits(reader, literal))
        return false;
    if (take(reader, "\\overline{")) {
        size_t period_start = literal->count;
        if (!take_digits(reader, literal))
            return false;
        literal->period = literal->count - period_start;
        if (literal->period == 0 || !take(reader, "}"))
            return refuse(reader, NUMBER_NONE);
    }
    literal->fraction = literal->count - before;
    return literal->count ? true : refuse(reader, NUMBER_NONE);
}

static bool set_digits(mpz_t value, char *digits, size_t count)
{
    char after = digits[count];
    int result;

    digits[count] = 0;
    result = count ? mpz_set_str(value, digits, 10) : (mpz_set_ui(value, 0), 0);
    digits[count] = after;
    return result == 0;
}

/* digits / 10^fraction; with a period p: (all digits - those before the period) / (10^fraction - 10^(fraction - p)). */
static void literal_value(struct literal *literal, mpq_t value)
{
    mpz_t part;

    mpz_init(part);
    set_digits(mpq_numref(value), literal->digits, literal->count);
    mpz_ui_pow_ui(mpq_denref(value), 10, literal->fraction);
    if (literal->period) {
        set_digits(part, literal->digits, literal->count - literal->period);
        mpz_sub(mpq_numref(value), mpq_numref(value), part);
        mpz_ui_pow_ui(part, 10, literal->fraction - literal->period);
        mpz_sub(mpq_denref(value), mpq_denref(value), part);
    }
    mpq_canonicalize(value);
    mpz_clear(part);
}

static bool scale_by_ten(struct number_reader *reader, mpq_t value, long exponent)
{
    _cleanup_rational_ mpq_t scale;

    mpq_init(scale);
    if (labs(exponent) > EXPONENT_MAX / 4)
        return refuse(reader, NUMBER_LIMIT);
    mpz_ui_pow_ui(mpq_numref(scale), 10, (unsigned long)labs(exponent));
    if (exponent >= 0)
        mpq_mul(value, value, scale);
    else
        mpq_div(value, value, scale);
    return fits(reader, value);
}

/* 2.5e3, 2.5E-3. With a small e and a sign it could be Euler's number: that is left alone. */
static bool take_exponent(struct number_reader *reader, mpq_t value)
{
    char mark = peek(reader);
    char sign = peek_at(reader, 1);
    bool has_sign = sign == '-' || sign == '+';
    size_t digits = 0;
    long exponent = 0;

    if (mark == 'E' || (mark == 'e' && !has_sign))
        digits = digits_at(reader->at + 1 + has_sign, reader->end);
    if (digits == 0)
        return true;
    if (digits > 9)
        return refuse(reader, NUMBER_LIMIT);
    reader->at += 1 + has_sign;
    for (; digits; digits--)
        exponent = exponent * 10 + (*reader->at++ - '0');
    return scale_by_ten(reader, value, has_sign && sign == '-' ? -exponent : exponent);
}

bool number_read_literal(struct number_reader *reader, mpq_t value, bool *ret_integer)
{
    struct literal literal = {.count = 0};

    if (!take_digits(reader, &literal) || !take_groups(reader, &literal))
        return false;
    *ret_integer = literal.count > 0;
    if (!take_fraction_part(reader, &literal))
        return false;
    if (literal.count == 0)
        return refuse_here(reader);
    *ret_integer = *ret_integer && literal.fraction == 0;
    literal_value(&literal, value);
    return take_exponent(reader, value) && fits(reader, value);
}
