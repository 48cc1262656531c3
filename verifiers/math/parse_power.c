/* Suffixes of an atom: exponents, factorials, percent, degrees. */
#include "verifiers/math/reader.h"

/* The letter o that stands for the sign: 60^{o}. */
static bool is_small_circle(const struct math_reader *reader, const struct math_token *mark)
{
    return mark->kind == TOKEN_LETTER && mark->value == 'o' && mark->run == 1 && reader->at &&
           peek(reader)[-1].kind == TOKEN_DIGIT;
}

/* ^\circ, ^{\circ}, °. */
static size_t degree_tokens(const struct math_reader *reader)
{
    bool caret = sees(reader, TOKEN_CARET);
    bool braces = caret && peek_at(reader, 1)->kind == TOKEN_OPEN_BRACE;
    const struct math_token *mark = peek_at(reader, caret + braces);

    if (mark->kind != TOKEN_DEGREE && !(caret && (mark->kind == TOKEN_CIRCLE || is_small_circle(reader, mark))))
        return 0;
    if (braces && peek_at(reader, 3)->kind != TOKEN_CLOSE_BRACE)
        return 0;
    return 1 + caret + 2 * braces;
}

bool math_sees_degree_mark(const struct math_reader *reader)
{
    return degree_tokens(reader) > 0;
}

/* --- exponents --- */

static struct math_node *read_plain_number(struct math_reader *reader)
{
    struct math_node *number;

    reader->context.exponent = true;
    number = math_read_literal(reader);
    reader->context.exponent = false;
    return number;
}

/* One exponent without braces, without its sign. */
static struct math_node *read_bare_exponent(struct math_reader *reader)
{
    static const uint8_t allowed[TOKEN_KINDS] = {
        [TOKEN_LETTER] = true,   [TOKEN_GREEK] = true,    [TOKEN_CONSTANT] = true,
        [TOKEN_FRACTION] = true, [TOKEN_ROOT] = true,     [TOKEN_OPEN_PAREN] = true,
        [TOKEN_VULGAR] = true,   [TOKEN_BINOMIAL] = true, [TOKEN_NTH_ROOT] = true,
    };

    if (sees(reader, TOKEN_DIGIT) || sees(reader, TOKEN_POINT))
        return read_plain_number(reader);
    if (!allowed[peek(reader)->kind])
        return math_refuse(reader, "an exponent");
    return math_read_atom(reader);
}

/* Behind ^. Towers are read from the right: 2^3^2 is 2^9. */
struct math_node *math_read_exponent(struct math_reader *reader)
{
    bool braces = sees(reader, TOKEN_OPEN_BRACE);
    bool minus = !braces && take(reader, TOKEN_MINUS);
    struct math_node *exponent;

    if (!enter(reader))
        return NULL;
    if (!braces && !minus)
        take(reader, TOKEN_PLUS);
    exponent = braces ? math_read_argument(reader, true) : read_bare_exponent(reader);
    if (exponent && !math_can_combine(exponent))
        return math_refuse(reader, "a number or expression as exponent");
    if (exponent && sees(reader, TOKEN_CARET) && !math_sees_degree_mark(reader)) {
        reader->at++;
        exponent = math_make_two(reader, MATH_POWER, exponent, math_read_exponent(reader));
    }
    if (exponent && minus)
        exponent = math_make_one(reader, MATH_NEGATE, exponent);
    return leave(reader, exponent);
}

/* --- what comes after --- */

static struct math_node *read_factorial(struct math_reader *reader, struct math_node *base)
{
    struct math_node *node;

    if (base->kind == MATH_POWER && !(base->flags & MATH_BRACKETED))
        return math_refuse(reader, "brackets: is it the power's factorial, or the exponent's?");
    reader->at++;
    node = math_make_one(reader, MATH_FACTORIAL, base);
    if (node && take(reader, TOKEN_BANG))
        node->flags = MATH_DOUBLED;
    if (node && sees(reader, TOKEN_BANG))
        return math_refuse(reader, "no third exclamation mark");
    return node;
}

static struct math_node *read_power_of(struct math_reader *reader, struct math_node *base)
{
    struct math_node *exponent;

    if (base->kind == MATH_POWER && !(base->flags & MATH_BRACKETED))
        return math_refuse(reader, "one exponent");
    if (base->kind == MATH_MIXED && !(base->flags & MATH_BRACKETED))
        return math_refuse(reader, "brackets around a mixed number with an exponent");
    reader->at++;
    exponent = math_read_exponent(reader);
    if (exponent && sees(reader, TOKEN_SUBSCRIPT) && base->kind == MATH_NAME)
        base = math_read_late_subscript(reader, base);
    return exponent ? math_make_two(reader, MATH_POWER, base, exponent) : NULL;
}

static struct math_node *read_one_suffix(struct math_reader *reader, struct math_node *base)
{
    if (sees(reader, TOKEN_BANG))
        return read_factorial(reader, base);
    if (math_sees_degree_mark(reader)) {
        reader->at += degree_tokens(reader);
        return math_make_one(reader, MATH_DEGREES, base);
    }
    if (take(reader, TOKEN_PERCENT))
        return math_make_one(reader, MATH_PERCENT, base);
    return read_power_of(reader, base);
}

struct math_node *math_read_power(struct math_reader *reader)
{
    struct math_node *node = math_read_atom(reader);

    while (node && (sees(reader, TOKEN_BANG) || sees(reader, TOKEN_CARET) || sees(reader, TOKEN_PERCENT) ||
                    math_sees_degree_mark(reader))) {
        if (node->kind == MATH_NUMBER_SET || !math_can_combine(node))
            return math_refuse(reader, "a number or expression with a sign behind it");
        if ((node->kind == MATH_PERCENT || node->kind == MATH_DEGREES) && !(node->flags & MATH_BRACKETED))
            return math_refuse(reader, "nothing more behind a percent or degree sign");
        node = read_one_suffix(reader, node);
    }
    return node;
}
