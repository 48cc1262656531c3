#include "verifiers/math_number.h"

#include <stdlib.h>

#include "verifiers/math_reader.h"

#define FACTORIAL_MAX 4000

void number_reader_init(struct number_reader *reader, struct text text, int max_depth, bool decimal_comma)
{
    *reader = (struct number_reader){
        .at = text.data, .end = text.data + text.length_bytes, .max_depth = max_depth, .decimal_comma = decimal_comma};
}

bool number_read_decimal(struct text text, mpq_t value)
{
    struct number_reader reader;

    number_reader_init(&reader, text, 1, false);
    return number_read(&reader, value) && reader.at == reader.end && !reader.operations;
}

/* --- arithmetic --- */

static bool divide(struct number_reader *reader, mpq_t value, const mpq_t by)
{
    if (mpq_sgn(by) == 0)
        return refuse(reader, NUMBER_NONE);
    mpq_div(value, value, by);
    return fits(reader, value);
}

static bool multiply(struct number_reader *reader, mpq_t value, const mpq_t by)
{
    mpq_mul(value, value, by);
    return fits(reader, value);
}

/* Is the value of a root rational? Then it replaces the radicand. */
static bool root(struct number_reader *reader, mpq_t value, unsigned long degree)
{
    if (degree == 0 || degree > 64)
        return refuse(reader, NUMBER_OUTSIDE);
    if (mpq_sgn(value) < 0 && degree % 2 == 0)
        return refuse(reader, NUMBER_OUTSIDE);
    if (!mpz_root(mpq_numref(value), mpq_numref(value), degree) ||
        !mpz_root(mpq_denref(value), mpq_denref(value), degree))
        return refuse(reader, NUMBER_OUTSIDE);
    return fits(reader, value);
}

static bool integer_power(struct number_reader *reader, mpq_t value, long exponent)
{
    unsigned long size = (unsigned long)labs(exponent);
    size_t bits = mpz_sizeinbase(mpq_numref(value), 2) + mpz_sizeinbase(mpq_denref(value), 2);

    if (mpq_sgn(value) == 0 && exponent <= 0)
        return refuse(reader, NUMBER_NONE);
    if (size > EXPONENT_MAX || (bits > 2 && size * bits > 2 * BITS_MAX))
        return refuse(reader, NUMBER_LIMIT);
    mpz_pow_ui(mpq_numref(value), mpq_numref(value), size);
    mpz_pow_ui(mpq_denref(value), mpq_denref(value), size);
    if (exponent < 0)
        mpq_inv(value, value);
    return fits(reader, value);
}

static bool power(struct number_reader *reader, mpq_t value, const mpq_t exponent)
{
    if (!mpz_fits_slong_p(mpq_numref(exponent)) || !mpz_fits_ulong_p(mpq_denref(exponent)))
        return refuse(reader, NUMBER_LIMIT);
    if (mpz_cmp_ui(mpq_denref(exponent), 1) != 0) {
        if (mpq_sgn(value) <= 0)
            return refuse(reader, NUMBER_OUTSIDE);
        if (!root(reader, value, mpz_get_ui(mpq_denref(exponent))))
            return false;
    }
    return integer_power(reader, value, mpz_get_si(mpq_numref(exponent)));
}

static bool is_small_integer(const mpq_t value, unsigned long maximum)
{
    return mpz_cmp_ui(mpq_denref(value), 1) == 0 && mpq_sgn(value) >= 0 && mpz_cmp_ui(mpq_numref(value), maximum) <= 0;
}

static bool factorial(struct number_reader *reader, mpq_t value)
{
    if (mpz_cmp_ui(mpq_denref(value), 1) != 0 || mpq_sgn(value) < 0)
        return refuse(reader, NUMBER_OUTSIDE);
    if (!is_small_integer(value, FACTORIAL_MAX))
        return refuse(reader, NUMBER_LIMIT);
    mpz_fac_ui(mpq_numref(value), mpz_get_ui(mpq_numref(value)));
    return fits(reader, value);
}

static bool choose(struct number_reader *reader, mpq_t value, const mpq_t below)
{
    if (!is_small_integer(value, FACTORIAL_MAX) || !is_small_integer(below, FACTORIAL_MAX))
        return refuse(reader, NUMBER_LIMIT);
    mpz_bin_ui(mpq_numref(value), mpq_numref(value), mpz_get_ui(mpq_numref(below)));
    reader->operations = true;
    return fits(reader, value);
}

/* --- the grammar --- */

static bool read_sum(struct number_reader *reader, mpq_t value);
static bool read_power(struct number_reader *reader, mpq_t value, bool *ret_integer);

static bool enter(struct number_reader *reader)
{
    return ++reader->depth <= reader->max_depth ? true : refuse(reader, NUMBER_LIMIT);
}

/* The rest of a group: a sum, then `close`. { n \choose k } is a binomial coefficient. */
static bool read_group(struct number_reader *reader, mpq_t value, const char *close)
{
    _cleanup_rational_ mpq_t below;

    mpq_init(below);
    if (!enter(reader) || !read_sum(reader, value))
        return false;
    if (take(reader, "\\choose") && (!read_sum(reader, below) || !choose(reader, value, below)))
        return false;
    skip_space(reader);
    reader->depth--;
    return take(reader, close) ? true : refuse_here(reader);
}

/* An argument of a command: a group or one digit. */
static bool read_argument(struct number_reader *reader, mpq_t value)
{
    skip_space(reader);
    if (take(reader, "{"))
        return read_group(reader, value, "}");
    if (!is_digit(peek(reader)))
        return refuse_here(reader);
    mpq_set_ui(value, (unsigned long)(*reader->at++ - '0'), 1);
    return true;
}

static void note_fraction(struct number_reader *reader, const mpq_t above, const mpq_t below, bool literals)
{
    mpz_t common;

    mpz_init(common);
    mpz_gcd(common, mpq_numref(above), mpq_numref(below));
    if (mpz_cmp_ui(common, 1) != 0 || mpz_cmp_ui(mpq_numref(below), 1) == 0)
        reader->unreduced = true;
    if (!literals)
        reader->operations = true;
    mpz_clear(common);
}

static bool is_integer(const mpq_t value)
{
    return mpz_cmp_ui(mpq_denref(value), 1) == 0;
}

static bool read_fraction(struct number_reader *reader, mpq_t value)
{
    _cleanup_rational_ mpq_t below;

    mpq_init(below);
    if (!enter(reader) || !read_argument(reader, value) || !read_argument(reader, below))
        return false;
    reader->depth--;
    note_fraction(reader, value, below, is_integer(value) && is_integer(below));
    return divide(reader, value, below);
}

static bool read_root(struct number_reader *reader, mpq_t value)
{
    _cleanup_rational_ mpq_t degree;

    mpq_init(degree);
    mpq_set_ui(degree, 2, 1);
    reader->operations = true;
    if (take(reader, "[") && !read_group(reader, degree, "]"))
        return false;
    /* \sqrt49 is the root of 4, times 9, in print; people mean 49. Neither is paid. */
    if (peek(reader) != '{' && is_digit(peek(reader)) && is_digit(peek_at(reader, 1)))
        return refuse(reader, NUMBER_NONE);
    if (!read_argument(reader, value))
        return false;
    return is_small_integer(degree, 64) ? root(reader, value, mpz_get_ui(mpq_numref(degree)))
                                        : refuse(reader, NUMBER_OUTSIDE);
}

static bool read_binomial(struct number_reader *reader, mpq_t value)
{
    _cleanup_rational_ mpq_t below;

    mpq_init(below);
    return read_argument(reader, value) && read_argument(reader, below) && choose(reader, value, below);
}

static bool read_absolute(struct number_reader *reader, mpq_t value)
{
    reader->operations = true;
    if (!read_group(reader, value, "|"))
        return false;
    mpq_abs(value, value);
    return true;
}

static bool read_text_number(struct number_reader *reader, mpq_t value)
{
    skip_space(reader);
    return is_digit(peek(reader)) || strchr("+-.", peek(reader)) ? read_group(reader, value, "}")
                                                                 : refuse(reader, NUMBER_OUTSIDE);
}

static bool read_parenthesis(struct number_reader *reader, mpq_t value)
{
    return read_group(reader, value, ")");
}

static bool read_braces(struct number_reader *reader, mpq_t value)
{
    return read_group(reader, value, "}");
}

static const struct {
    const char *opening;
    bool (*read)(struct number_reader *reader, mpq_t value);
    bool multiplies; /* may follow a value without a sign between them */
} atoms[] = {
    {"{", read_braces, false},
    {"(", read_parenthesis, true},
    {"\\frac", read_fraction, true},
    {"\\sqrt", read_root, true},
    {"\\binom", read_binomial, true},
    {"|", read_absolute, false},
    {"\\text{", read_text_number, false},
};

static bool read_atom(struct number_reader *reader, mpq_t value, bool *ret_integer)
{
    *ret_integer = false;
    for (size_t i = 0; i < ARRAY_LENGTH(atoms); i++)
        if (take(reader, atoms[i].opening))
            return atoms[i].read(reader, value);
    if (is_digit(peek(reader)) || peek(reader) == '.' || peek(reader) == ',')
        return number_read_literal(reader, value, ret_integer);
    return refuse_here(reader);
}

/* After ^: a group, a number, or a command, with a sign of its own. */
static bool read_exponent(struct number_reader *reader, mpq_t value)
{
    bool negative = take(reader, "-");
    bool integer;

    if (!enter(reader) || !read_atom(reader, value, &integer))
        return false;
    reader->depth--;
    if (negative)
        mpq_neg(value, value);
    return true;
}

static bool read_power(struct number_reader *reader, mpq_t value, bool *ret_integer)
{
    _cleanup_rational_ mpq_t exponent;

    mpq_init(exponent);
    if (!read_atom(reader, value, ret_integer))
        return false;
    if (peek(reader) == '!') {
        reader->at++;
        reader->operations = true;
        *ret_integer = false;
        if (!factorial(reader, value) || peek(reader) == '!')
            return refuse(reader, NUMBER_OUTSIDE);
    }
    if (sees(reader, "^\\text") || sees(reader, "^\\circ") || !take(reader, "^"))
        return true;
    reader->operations = true;
    *ret_integer = false;
    return read_exponent(reader, exponent) && power(reader, value, exponent);
}

/* 1\frac{5}{12} and 1 5/12: a whole number and a proper fraction of literals, added. Nothing taken if it is not one. */
static bool take_mixed(struct number_reader *reader, mpq_t value)
{
    struct number_reader ahead = *reader;
    _cleanup_rational_ mpq_t part;
    bool integer = false;

    mpq_init(part);
    ahead.operations = false;
    if (take(&ahead, "\\frac")) {
        if (!read_fraction(&ahead, part) || ahead.operations)
            return false;
    } else {
        mpq_t below;
        bool read;

        mpq_init(below);
        read = take(&ahead, " ") && number_read_literal(&ahead, part, &integer) && integer && take(&ahead, "/") &&
               is_digit(peek(&ahead)) && number_read_literal(&ahead, below, &integer) && integer && mpq_sgn(below) > 0;
        if (read)
            mpq_div(part, part, below);
        mpq_clear(below);
        if (!read)
            return false;
    }
    if (mpq_sgn(part) < 0 || peek(&ahead) == '^' || peek(&ahead) == '!')
        return false;
    ahead.operations = reader->operations;
    *reader = ahead;
    mpq_add(value, value, part);
    return true;
}

static bool multiplies_next(const struct number_reader *reader)
{
    for (size_t i = 0; i < ARRAY_LENGTH(atoms); i++)
        if (atoms[i].multiplies && sees(reader, atoms[i].opening))
            return true;
    return false;
}

static bool read_factor(struct number_reader *reader, mpq_t value, bool *ret_integer)
{
    bool negative = take(reader, "-");

    if (!negative)
        take(reader, "+");
    if (!read_power(reader, value, ret_integer))
        return false;
    if (negative)
        mpq_neg(value, value);
    return true;
}

/* One more factor. *integer: the value so far is one integer literal; it is kept up. */
static bool read_division(struct number_reader *reader, mpq_t value, bool *integer)
{
    _cleanup_rational_ mpq_t next;
    bool literal = *integer;

    mpq_init(next);
    if (!read_factor(reader, next, integer))
        return false;
    if (mpq_sgn(next) == 0)
        return refuse(reader, NUMBER_NONE);
    if (is_integer(value) && is_integer(next))
        note_fraction(reader, value, next, literal && *integer);
    else
        reader->operations = true;
    *integer = false;
    return divide(reader, value, next);
}

static bool read_product(struct number_reader *reader, mpq_t value, bool *integer)
{
    _cleanup_rational_ mpq_t next;

    mpq_init(next);
    reader->operations = true;
    if (!read_factor(reader, next, integer))
        return false;
    *integer = false;
    return multiply(reader, value, next);
}

static bool read_term(struct number_reader *reader, mpq_t value)
{
    bool integer;

    if (!read_power(reader, value, &integer))
        return false;
    if (integer && take_mixed(reader, value))
        integer = false;
    for (;;) {
        bool more = true;
        if (take(reader, "/"))
            more = read_division(reader, value, &integer);
        else if (take(reader, "\\cdot") || multiplies_next(reader))
            more = read_product(reader, value, &integer);
        else
            return true;
        if (!more)
            return false;
    }
}

static bool read_sum(struct number_reader *reader, mpq_t value)
{
    _cleanup_rational_ mpq_t next;
    bool negative = take(reader, "-");

    mpq_init(next);
    if (!negative)
        take(reader, "+");
    skip_space(reader);
    if (!read_term(reader, value))
        return false;
    if (negative)
        mpq_neg(value, value);
    while (peek(reader) == '+' || peek(reader) == '-') {
        bool minus = *reader->at++ == '-';
        reader->operations = true;
        if (!read_term(reader, next))
            return false;
        (minus ? mpq_sub : mpq_add)(value, value, next);
        if (!fits(reader, value))
            return false;
    }
    return true;
}

bool number_read(struct number_reader *reader, mpq_t value)
{
    return read_sum(reader, value);
}
