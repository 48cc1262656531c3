/* Atoms: numbers, names, commands with arguments, whatever has an opening of its own. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

/* --- arguments --- */

static struct math_node *read_one_digit(struct math_reader *reader)
{
    unsigned digit = peek(reader)->value;

    reader->at++;
    return math_make_integer(reader, digit);
}

static struct math_node *read_all_digits(struct math_reader *reader)
{
    struct math_node *number;
    bool before = reader->context.exponent;

    reader->context.exponent = true;
    number = math_read_literal(reader);
    reader->context.exponent = before;
    return number;
}

struct math_node *math_read_argument(struct math_reader *reader, bool digits)
{
    struct math_node *node;

    if (sees(reader, TOKEN_DIGIT))
        return digits ? read_all_digits(reader) : read_one_digit(reader);
    if (!sees(reader, TOKEN_OPEN_BRACE) && !sees(reader, TOKEN_LETTER) && !sees(reader, TOKEN_GREEK) &&
        !sees(reader, TOKEN_CONSTANT) && !sees(reader, TOKEN_ROOT) && !sees(reader, TOKEN_FRACTION))
        return math_refuse(reader, "an argument in braces");
    node = math_read_atom(reader);
    if (node && !math_can_combine(node))
        return math_refuse(reader, "a number or expression in braces");
    return node;
}

/* --- names --- */

#define NAME_BYTES 96

struct name {
    char bytes[NAME_BYTES];
    size_t length;
};

static void add_bytes(struct name *name, const char *bytes, size_t length)
{
    if (name->length + length <= NAME_BYTES)
        memcpy(name->bytes + name->length, bytes, length);
    name->length += length; /* beyond the end: refused by its maker */
}

static void add_string(struct name *name, const char *string)
{
    add_bytes(name, string, strlen(string));
}

/* One token of a name or subscript. false: not of a name. */
static bool add_token_text(struct math_reader *reader, struct name *name, bool subscript)
{
    const struct math_token *token = peek(reader);
    char byte = token->kind == TOKEN_DIGIT ? (char)('0' + token->value) : (char)token->value;

    if (token->kind == TOKEN_LETTER || (subscript && token->kind == TOKEN_DIGIT)) {
        add_bytes(name, &byte, 1);
    } else if (token->kind == TOKEN_GREEK) {
        add_string(name, math_greek[token->value]);
        if (subscript)
            add_string(name, " ");
    } else if (subscript && (token->kind == TOKEN_PLUS || token->kind == TOKEN_MINUS || token->kind == TOKEN_COMMA)) {
        add_string(name, token->kind == TOKEN_PLUS ? "+" : token->kind == TOKEN_MINUS ? "-" : ",");
    } else if (subscript && token->kind == TOKEN_HEAD) {
        add_string(name, math_heads[token->value]);
        add_string(name, " ");
    } else if (subscript && (token->kind == TOKEN_TEXT || token->kind == TOKEN_FUNCTION ||
                             token->flags & (TOKEN_ASCII | TOKEN_UPRIGHT))) {
        struct text word = math_without_backslash(token_text(reader, token));
        for (size_t i = 0; i < word.length_bytes; i++)
            if (isalnum((unsigned char)word.data[i]))
                add_bytes(name, word.data + i, 1);
            else if (word.data[i] != ' ' && word.data[i] != '~')
                return false;
    } else {
        return false;
    }
    reader->at++;
    return true;
}

static bool add_subscript(struct math_reader *reader, struct name *name)
{
    size_t start = name->length + 2;

    add_string(name, "_{");
    if (!take(reader, TOKEN_OPEN_BRACE)) {
        bool digits = sees(reader, TOKEN_DIGIT);
        if (sees(reader, TOKEN_PLUS) || sees(reader, TOKEN_MINUS) || sees(reader, TOKEN_COMMA))
            return false;
        do {
            if (!add_token_text(reader, name, true))
                return false;
        } while (digits && sees(reader, TOKEN_DIGIT) && is_adjacent(peek(reader)));
    } else {
        while (!take(reader, TOKEN_CLOSE_BRACE))
            if (!add_token_text(reader, name, true))
                return false;
    }
    if (name->length < NAME_BYTES && name->bytes[name->length - 1] == ' ')
        name->length--;
    add_string(name, "}");
    if (name->length >= NAME_BYTES) /* too long: only its length is true */
        return true;
    return name->length > start + 1 && name->bytes[start] != ',';
}

static bool take_prime(struct math_reader *reader)
{
    if (take(reader, TOKEN_PRIME))
        return true;
    if (sees(reader, TOKEN_CARET) && peek_at(reader, 1)->kind == TOKEN_PRIME) {
        reader->at += 2;
        return true;
    }
    if (sees(reader, TOKEN_CARET) && peek_at(reader, 1)->kind == TOKEN_OPEN_BRACE &&
        peek_at(reader, 2)->kind == TOKEN_PRIME && peek_at(reader, 3)->kind == TOKEN_CLOSE_BRACE) {
        reader->at += 4;
        return true;
    }
    return false;
}

static struct math_node *make_constant(struct math_reader *reader, enum math_constant constant)
{
    struct math_node *node = math_make(reader, MATH_CONSTANT, 0, NULL);

    if (node)
        node->constant = constant;
    return node;
}

/* e and i are constants unless something hangs on them. */
struct math_node *math_make_name(struct math_reader *reader, struct text name)
{
    if (text_equals(name, "e"))
        return make_constant(reader, MATH_E);
    if (text_equals(name, "i"))
        return make_constant(reader, MATH_I);
    return math_make_text(reader, MATH_NAME, name);
}

static struct math_node *finish_name(struct math_reader *reader, struct name *name)
{
    size_t primes = 0;

    while (take_prime(reader))
        primes++;
    if (sees(reader, TOKEN_SUBSCRIPT)) {
        reader->at++;
        if (!add_subscript(reader, name))
            return math_refuse(reader, "a subscript of letters and digits");
    }
    while (take_prime(reader))
        primes++;
    while (primes--)
        add_string(name, "'");
    if (name->length > NAME_BYTES)
        return math_too_large(reader, "a shorter name");
    return math_make_name(reader, (struct text){name->bytes, name->length});
}

/* v^2_0 is v_0^2. */
struct math_node *math_read_late_subscript(struct math_reader *reader, const struct math_node *name)
{
    struct name longer = {.length = 0};

    reader->at++;
    add_bytes(&longer, name->text.data, name->text.length_bytes);
    if (memchr(name->text.data, '_', name->text.length_bytes) || !add_subscript(reader, &longer))
        return math_refuse(reader, "a subscript of letters and digits");
    if (longer.length > NAME_BYTES)
        return math_too_large(reader, "a shorter name");
    return math_make_text(reader, MATH_NAME, (struct text){longer.bytes, longer.length});
}

struct math_node *math_read_name(struct math_reader *reader)
{
    struct name name = {.length = 0};

    if (!add_token_text(reader, &name, false))
        return math_refuse(reader, "a name");
    return finish_name(reader, &name);
}

/* \vec{v}, \overline{AB}: a name with its sign. */
static struct math_node *read_marked_name(struct math_reader *reader, const char *mark)
{
    struct name name = {.length = 0};
    bool braces = take(reader, TOKEN_OPEN_BRACE);

    add_string(&name, "\\");
    add_string(&name, mark);
    add_string(&name, "{");
    do {
        bool alone = sees(reader, TOKEN_LETTER) || !braces || peek_at(reader, 1)->kind == TOKEN_CLOSE_BRACE;
        if (!alone || !add_token_text(reader, &name, false))
            return math_refuse(reader, "letters below the sign");
    } while (braces && !sees(reader, TOKEN_CLOSE_BRACE));
    if (braces)
        reader->at++;
    add_string(&name, "}");
    return finish_name(reader, &name);
}

static struct math_node *read_accent(struct math_reader *reader)
{
    const char *mark = sees(reader, TOKEN_ACCENT) ? math_accents[peek(reader)->value] : "dot";

    reader->at++;
    return read_marked_name(reader, mark);
}

/* The number of digits of a whole number that stands `ahead`, in braces or (one digit) without; 0: something else. */
static size_t whole_number_tokens(const struct math_reader *reader, size_t ahead, size_t *ret_digits)
{
    size_t braces = peek_at(reader, ahead)->kind == TOKEN_OPEN_BRACE;
    size_t count = 0;

    while (peek_at(reader, ahead + braces + count)->kind == TOKEN_DIGIT && (braces || count == 0))
        count++;
    *ret_digits = count;
    if (count == 0 || (braces && peek_at(reader, ahead + 1 + count)->kind != TOKEN_CLOSE_BRACE))
        return 0;
    return count + 2 * braces;
}

/* \overline{AB} is a line; \overline{z} and \overline{1+i} are conjugates; \overline{3} alone is nothing. */
static struct math_node *read_overline(struct math_reader *reader)
{
    struct math_node *node;
    const struct math_token *first;
    size_t digits;

    reader->at++;
    first = peek_at(reader, 1);
    if (sees(reader, TOKEN_OPEN_BRACE) && first->kind == TOKEN_LETTER && first->run > 1 &&
        peek_at(reader, 1 + first->run)->kind == TOKEN_CLOSE_BRACE)
        return read_marked_name(reader, "overline");
    if (whole_number_tokens(reader, 0, &digits))
        return math_refuse(reader, "a number in front of the digits that repeat");
    node = math_make_one(reader, MATH_FUNCTION, math_read_argument(reader, false));
    if (node)
        node->function = MATH_CONJUGATE;
    return node;
}

/* --- fractions --- */

static bool sees_whole_fraction(const struct math_reader *reader)
{
    size_t digits;
    size_t numerator = whole_number_tokens(reader, 1, &digits);

    return sees(reader, TOKEN_FRACTION) && numerator && whole_number_tokens(reader, 1 + numerator, &digits);
}

/* 5/12 behind a space, not 5/12/7 and not 5/x. */
static bool sees_plain_fraction(const struct math_reader *reader)
{
    size_t numerator = 0;
    size_t denominator = 0;

    if (!sees(reader, TOKEN_DIGIT) || !(peek(reader)->flags & TOKEN_SPACED) || (peek(reader)->flags & TOKEN_STICKY))
        return false;
    while (peek_at(reader, numerator)->kind == TOKEN_DIGIT)
        numerator++;
    if (peek_at(reader, numerator)->kind != TOKEN_SLASH)
        return false;
    while (peek_at(reader, numerator + 1 + denominator)->kind == TOKEN_DIGIT)
        denominator++;
    return denominator > 0 && peek_at(reader, numerator + 1 + denominator)->kind != TOKEN_SLASH;
}

static bool starts_with_d(const struct math_node *node)
{
    while (node->kind == MATH_PRODUCT || node->kind == MATH_POWER)
        node = node->children[0];
    return node->kind == MATH_NAME && text_equals(node->text, "d");
}

/* The denominator of dy/dx: there, d is no factor that could be cancelled. */
static bool is_differential(const struct math_node *node)
{
    return node->kind == MATH_PRODUCT && node->flags & MATH_JUXTAPOSED && starts_with_d(node);
}

/* dy/dx is one name: equal to itself, and to nothing else. */
static struct math_node *make_derivative(struct math_reader *reader, const struct math_node *above,
                                         const struct math_node *below)
{
    _cleanup_buffer_ struct buffer name;

    buffer_init(&name, NAME_BYTES);
    buffer_append_string(&name, "\\frac{");
    math_print(above, &name);
    buffer_append_string(&name, "}{");
    math_print(below, &name);
    buffer_append_string(&name, "}");
    if (name.failed)
        return math_too_large(reader, "a shorter derivative");
    return math_make_text(reader, MATH_NAME, buffer_text(&name));
}

static struct math_node *read_fraction(struct math_reader *reader)
{
    struct math_node *numerator;
    struct math_node *denominator;
    bool bare;

    reader->at++;
    numerator = math_read_argument(reader, false);
    if (!numerator)
        return NULL;
    bare = sees(reader, TOKEN_DIGIT);
    denominator = math_read_argument(reader, false);
    if (denominator && is_differential(denominator) && starts_with_d(numerator))
        return make_derivative(reader, numerator, denominator);
    if (denominator && bare && sees(reader, TOKEN_DIGIT) && is_adjacent(peek(reader)))
        return math_refuse(reader, "braces around the denominator");
    return math_make_two(reader, MATH_QUOTIENT, numerator, denominator);
}

static struct math_node *read_vulgar(struct math_reader *reader)
{
    unsigned value = peek(reader)->value;

    reader->at++;
    return math_make_two(reader, MATH_QUOTIENT, math_make_integer(reader, value / 16),
                         math_make_integer(reader, value % 16));
}

static struct math_node *read_plain_fraction(struct math_reader *reader)
{
    struct math_node *numerator = read_all_digits(reader);

    reader->at++;
    return numerator ? math_make_two(reader, MATH_QUOTIENT, numerator, read_all_digits(reader)) : NULL;
}

/* --- numbers --- */

static bool is_whole(const struct math_node *node)
{
    return node->kind == MATH_NUMBER && node->flags == 0;
}

/* 1\frac{5}{12}, 1 5/12, 1½: whole and a proper fraction. An improper one could be meant as a factor. */
static struct math_node *read_mixed(struct math_reader *reader, struct math_node *whole)
{
    struct math_node *fraction;

    if (sees(reader, TOKEN_VULGAR))
        fraction = read_vulgar(reader);
    else if (sees_whole_fraction(reader))
        fraction = read_fraction(reader);
    else if (sees_plain_fraction(reader))
        fraction = read_plain_fraction(reader);
    else
        return whole;
    if (!fraction)
        return NULL;
    if (!is_whole(fraction->children[0]) || !is_whole(fraction->children[1]) ||
        fmpq_cmp(fraction->children[0]->value, fraction->children[1]->value) >= 0)
        return math_refuse(reader, "a proper fraction behind the whole number, or a sign between them");
    return math_make_two(reader, MATH_MIXED, whole, fraction);
}

static struct math_node *read_number(struct math_reader *reader)
{
    struct math_node *number = math_read_digits_in_base(reader);

    if (number || reader->status != MATH_PARSED)
        return number;
    number = math_read_literal(reader);
    return number && is_whole(number) ? read_mixed(reader, number) : number;
}

static struct math_node *read_letter(struct math_reader *reader)
{
    struct math_node *number = NULL;

    /* Only where a word begins: what comes later in it was looked at then. */
    if (reader->at == 0 || peek(reader)[-1].kind != TOKEN_LETTER || !is_adjacent(peek(reader)))
        number = math_read_digits_in_base(reader);
    if (!number && reader->status == MATH_PARSED)
        number = math_read_combination(reader);
    return number || reader->status != MATH_PARSED ? number : math_read_name(reader);
}

static struct math_node *read_group_or_based(struct math_reader *reader)
{
    struct math_node *number = math_read_digits_in_base(reader);

    if (number || reader->status != MATH_PARSED)
        return number;
    return sees(reader, TOKEN_OPEN_BRACE) ? math_read_group(reader) : math_read_bracket(reader);
}

static struct math_node *read_constant(struct math_reader *reader)
{
    unsigned constant = peek(reader)->value;

    reader->at++;
    return make_constant(reader, constant);
}

/* --- roots, binomial coefficients, sets without braces --- */

static struct math_node *read_degree_of_root(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    struct math_node *degree;

    if (!take(reader, TOKEN_OPEN_SQUARE))
        return math_make_integer(reader, 2);
    reader->context = (struct math_context){.bars = 0};
    degree = math_read_scalar(reader);
    reader->context = outside;
    if (degree && !take(reader, TOKEN_CLOSE_SQUARE))
        return math_refuse(reader, "a closing bracket behind the root's degree");
    return degree;
}

/* \sqrt{2}, \sqrt2, \sqrt[3]{2}, sqrt(2), √2. The radicand in ( ) is the whole bracket: nobody means the sign alone. */
static struct math_node *read_root(struct math_reader *reader)
{
    unsigned nth = peek(reader)->kind == TOKEN_NTH_ROOT ? peek(reader)->value : 0;
    struct math_node *degree;
    struct math_node *radicand;

    reader->at++;
    degree = nth ? math_make_integer(reader, nth) : read_degree_of_root(reader);
    if (!degree)
        return NULL;
    radicand = sees(reader, TOKEN_OPEN_PAREN) ? math_read_bracket(reader) : math_read_argument(reader, true);
    if (radicand && !math_can_combine(radicand))
        return math_refuse(reader, "a number or expression below the root");
    return math_make_two(reader, MATH_ROOT, radicand, degree);
}

static struct math_node *read_binomial(struct math_reader *reader)
{
    struct math_node *upper;

    reader->at++;
    upper = math_read_argument(reader, false);
    return upper ? math_make_two(reader, MATH_BINOMIAL, upper, math_read_argument(reader, false)) : NULL;
}

static struct math_node *read_empty_set(struct math_reader *reader)
{
    reader->at++;
    return math_make(reader, MATH_SET, 0, NULL);
}

/* Suffixes of the sign of a set of numbers. NULL: something else. */
static const char *set_mark(const struct math_token *token)
{
    static const char *const signs[TOKEN_KINDS] = {[TOKEN_PLUS] = "+", [TOKEN_MINUS] = "-", [TOKEN_TIMES] = "*"};
    static const char *const relations[MATH_RELATIONS] = {[MATH_GREATER] = ">",
                                                          [MATH_LESS] = "<",
                                                          [MATH_GREATER_EQUAL] = "\\ge ",
                                                          [MATH_LESS_EQUAL] = "\\le ",
                                                          [MATH_NOT_EQUAL] = "\\ne "};

    return token->kind == TOKEN_RELATION ? relations[token->value] : signs[token->kind];
}

static bool add_set_mark(struct math_reader *reader, struct name *name)
{
    const char *mark = set_mark(peek(reader));

    if (!mark)
        return (sees(reader, TOKEN_DIGIT) || sees(reader, TOKEN_LETTER)) && add_token_text(reader, name, true);
    if (mark[0] == '*' && name->length < NAME_BYTES && name->bytes[name->length - 1] == '*')
        return false; /* ** is a power */
    add_string(name, mark);
    reader->at++;
    return true;
}

/* \mathbb{R}^+, \mathbb{Z}_{>0} */
static struct math_node *read_number_set(struct math_reader *reader)
{
    struct name name = {.length = 0};
    char letter = (char)peek(reader)->value;

    reader->at++;
    add_bytes(&name, &letter, 1);
    while (sees(reader, TOKEN_CARET) || sees(reader, TOKEN_SUBSCRIPT)) {
        bool braces;
        add_string(&name, sees(reader, TOKEN_CARET) ? "^{" : "_{");
        reader->at++;
        braces = take(reader, TOKEN_OPEN_BRACE);
        do {
            if (!add_set_mark(reader, &name))
                return math_refuse(reader, "+, *, a digit or a letter");
        } while (braces && !take(reader, TOKEN_CLOSE_BRACE));
        add_string(&name, "}");
    }
    if (name.length > NAME_BYTES)
        return math_too_large(reader, "a shorter name");
    return math_make_text(reader, MATH_NUMBER_SET, (struct text){name.bytes, name.length});
}

/* --- the table --- */

static struct math_node *(*const atoms[TOKEN_KINDS])(struct math_reader *reader) = {
    [TOKEN_DIGIT] = read_number,
    [TOKEN_POINT] = read_number,
    [TOKEN_LETTER] = read_letter,
    [TOKEN_GREEK] = math_read_name,
    [TOKEN_CONSTANT] = read_constant,
    [TOKEN_OPEN_BRACE] = read_group_or_based,
    [TOKEN_OPEN_PAREN] = read_group_or_based,
    [TOKEN_OPEN_SQUARE] = math_read_bracket,
    [TOKEN_CLOSE_SQUARE] = math_read_bracket,
    [TOKEN_OPEN_SET] = math_read_set,
    [TOKEN_OPEN_ANGLE] = math_read_fence,
    [TOKEN_OPEN_FLOOR] = math_read_fence,
    [TOKEN_OPEN_CEILING] = math_read_fence,
    [TOKEN_BAR] = math_read_fence,
    [TOKEN_OPEN_BAR] = math_read_fence,
    [TOKEN_EMPTY_SET] = read_empty_set,
    [TOKEN_NUMBER_SET] = read_number_set,
    [TOKEN_FUNCTION] = math_read_function,
    [TOKEN_LOG_TEN] = math_read_function,
    [TOKEN_FRACTION] = read_fraction,
    [TOKEN_VULGAR] = read_vulgar,
    [TOKEN_ROOT] = read_root,
    [TOKEN_NTH_ROOT] = read_root,
    [TOKEN_BINOMIAL] = read_binomial,
    [TOKEN_OVERLINE] = read_overline,
    [TOKEN_ACCENT] = read_accent,
    [TOKEN_DOT_ABOVE] = read_accent,
    [TOKEN_OPERATOR] = math_read_operator,
    [TOKEN_BEGIN] = math_read_matrix,
    [TOKEN_DETERMINANT] = math_read_matrix,
    [TOKEN_TEXT] = math_read_text,
    [TOKEN_CARET] = math_read_raised,
    [TOKEN_SUBSCRIPT] = math_read_raised,
};

struct math_node *math_read_atom(struct math_reader *reader)
{
    struct math_node *(*read)(struct math_reader *) = atoms[peek(reader)->kind];

    if (!read)
        return math_refuse(reader, "a value");
    if (!enter(reader))
        return NULL;
    return leave(reader, read(reader));
}
