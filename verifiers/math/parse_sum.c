/* Sums and products. */
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

/* -101_2 */
static bool is_negative_in_base(const struct math_node *node)
{
    return node->kind == MATH_NEGATE && node->children[0]->kind == MATH_BASED;
}

bool math_can_combine(const struct math_node *node)
{
    if (is_negative_in_base(node))
        return false;
    return (node->kind < MATH_LIST && node->kind != MATH_QUANTITY) || node->kind == MATH_MATRIX ||
           (node->kind == MATH_TUPLE && node->opening == '(' && node->closing == ')');
}

bool math_is_set(const struct math_node *node)
{
    return node->kind >= MATH_SET && node->kind <= MATH_NUMBER_SET && !math_can_combine(node);
}

static struct math_node *combinable(struct math_reader *reader, struct math_node *node)
{
    return !node || math_can_combine(node) ? node : math_refuse(reader, "a number or expression");
}

struct math_node *math_read_scalar(struct math_reader *reader)
{
    struct math_node *node = math_read_sum(reader);

    if (node && node->kind >= MATH_QUANTITY)
        return math_refuse(reader, "a number or expression");
    return node;
}

/* --- where factors begin --- */

static bool starts_number(const struct math_reader *reader, size_t at)
{
    while (reader->tokens[at].kind == TOKEN_OPEN_BRACE)
        at++;
    return reader->tokens[at].kind == TOKEN_DIGIT || reader->tokens[at].kind == TOKEN_POINT;
}

/* A number behind what could belong to it: 4 2, x2, \frac123. Behind a closing bracket it is a factor. */
static bool is_loose_number(const struct math_reader *reader)
{
    enum token_kind before = reader->at ? reader->tokens[reader->at - 1].kind : TOKEN_END;

    return starts_number(reader, reader->at) && before != TOKEN_CLOSE_BRACE && before != TOKEN_CLOSE_PAREN &&
           before != TOKEN_CLOSE_BAR && before != TOKEN_GREEK && before != TOKEN_CONSTANT && before != TOKEN_BANG;
}

bool math_ends_integrand(const struct math_reader *reader)
{
    const struct math_token *next = peek_at(reader, 1);

    return reader->context.integral && sees(reader, TOKEN_LETTER) && peek(reader)->value == 'd' &&
           (next->kind == TOKEN_LETTER || next->kind == TOKEN_GREEK);
}

static bool starts_letter(const struct math_reader *reader)
{
    return !math_ends_integrand(reader) && !math_starts_unit(reader) && !math_sees_in(reader) &&
           !math_sees_word(reader, "to") && !math_sees_temperature(reader);
}

static bool starts_bar(const struct math_reader *reader)
{
    return reader->context.bars == 0 && !reader->context.condition;
}

/* [2,5[: the bracket that ends an interval. */
static bool ends_turned_interval(const struct math_reader *reader)
{
    static const uint8_t behind[TOKEN_KINDS] = {
        [TOKEN_END] = true,       [TOKEN_UNION] = true,       [TOKEN_INTERSECTION] = true,
        [TOKEN_COMMA] = true,     [TOKEN_CLOSE_BRACE] = true, [TOKEN_CLOSE_PAREN] = true,
        [TOKEN_CLOSE_SET] = true, [TOKEN_OR] = true,          [TOKEN_AND] = true,
    };

    return sees(reader, TOKEN_OPEN_SQUARE) && reader->context.brackets && behind[peek_at(reader, 1)->kind];
}

bool math_starts_factor(const struct math_reader *reader)
{
    static const uint8_t starts[TOKEN_KINDS] = {
        [TOKEN_GREEK] = true,     [TOKEN_CONSTANT] = true,   [TOKEN_OPEN_BRACE] = true,   [TOKEN_OPEN_PAREN] = true,
        [TOKEN_OPEN_BAR] = true,  [TOKEN_OPEN_FLOOR] = true, [TOKEN_OPEN_CEILING] = true, [TOKEN_FUNCTION] = true,
        [TOKEN_LOG_TEN] = true,   [TOKEN_FRACTION] = true,   [TOKEN_VULGAR] = true,       [TOKEN_ROOT] = true,
        [TOKEN_NTH_ROOT] = true,  [TOKEN_BINOMIAL] = true,   [TOKEN_OVERLINE] = true,     [TOKEN_ACCENT] = true,
        [TOKEN_OPERATOR] = true,  [TOKEN_BEGIN] = true,      [TOKEN_DETERMINANT] = true,  [TOKEN_OPEN_SQUARE] = true,
        [TOKEN_DOT_ABOVE] = true, [TOKEN_DIGIT] = true,      [TOKEN_POINT] = true,
    };

    if (sees(reader, TOKEN_LETTER))
        return starts_letter(reader);
    if (sees(reader, TOKEN_BAR))
        return starts_bar(reader);
    return starts[peek(reader)->kind] && !math_starts_unit(reader) && !ends_turned_interval(reader) &&
           !(sees(reader, TOKEN_OPEN_PAREN) && math_sees_condition(reader, 0));
}

/* --- products --- */

static struct math_node *read_signed_factor(struct math_reader *reader)
{
    bool minus = take(reader, TOKEN_MINUS);
    struct math_node *factor;

    if (!minus)
        take(reader, TOKEN_PLUS);
    factor = combinable(reader, math_read_power(reader));
    return factor && minus ? math_make_one(reader, MATH_NEGATE, factor) : factor;
}

struct product {
    size_t mark;
    bool signs;     /* a sign stood between two of the factors */
    bool ambiguous; /* the last factor is a denominator that is no number: a/bc */
};

static struct math_node *close_product(struct math_reader *reader, struct product *product)
{
    struct math_node *node;

    if (reader->stack_count == product->mark + 1)
        return reader->stack[--reader->stack_count];
    node = math_collect(reader, MATH_PRODUCT, product->mark);
    if (node)
        node->flags = product->signs ? 0 : MATH_JUXTAPOSED;
    product->signs = false;
    return node;
}

/* a b / c is (a b)/c. */
static bool read_divisor(struct math_reader *reader, struct product *product, enum math_kind kind)
{
    struct math_node *left = close_product(reader, product);
    struct math_node *right = read_signed_factor(reader);
    struct math_node *node = left && right ? math_make_two(reader, kind, left, right) : NULL;

    if (!node)
        return false;
    if (kind == MATH_FUNCTION)
        node->function = MATH_MOD;
    product->ambiguous = kind == MATH_FUNCTION || right->kind != MATH_NUMBER;
    return math_push(reader, node);
}

/* A word behind a word, or one that would change what a number says. */
static bool follows_words(const struct math_reader *reader)
{
    enum token_kind before = reader->tokens[reader->at - 1].kind;

    if (!sees(reader, TOKEN_LETTER) || peek(reader)->run < 3 || !(peek(reader)->flags & TOKEN_SPACED))
        return false;
    return before == TOKEN_LETTER || (before == TOKEN_DIGIT && math_starts_forbidden_word(reader));
}

/* e^{i3\pi/4} */
static bool is_imaginary(const struct math_node *node)
{
    return node->kind == MATH_CONSTANT && node->constant == MATH_I;
}

static bool read_juxtaposed(struct math_reader *reader, struct product *product)
{
    const struct math_node *before = reader->stack[reader->stack_count - 1];
    bool number = before->kind == MATH_NUMBER && !(before->flags & MATH_BRACKETED);

    if (product->ambiguous)
        return math_refuse(reader, "brackets around the denominator");
    if ((is_loose_number(reader) && !is_imaginary(before)) || (number && starts_number(reader, reader->at)))
        return math_refuse(reader, "an operator between the numbers");
    if (follows_words(reader))
        return math_refuse(reader, "mathematics, not words");
    return math_push(reader, combinable(reader, math_read_power(reader)));
}

static bool ends_interval(const struct math_reader *reader)
{
    return reader->stack[reader->stack_count - 1]->kind == MATH_TUPLE && math_sees_word(reader, "U");
}

/* 1: another factor was read, 0: there is none, -1: refused. */
static int read_next_factor(struct math_reader *reader, struct product *product)
{
    if (!math_can_combine(reader->stack[reader->stack_count - 1]) || ends_interval(reader))
        return 0;
    if (take(reader, TOKEN_TIMES)) {
        product->signs = true;
        product->ambiguous = false;
        return math_push(reader, read_signed_factor(reader)) ? 1 : -1;
    }
    if (sees(reader, TOKEN_SLASH) && peek_at(reader, 1)->kind == TOKEN_TEXT)
        return 0; /* a unit's */
    if (take(reader, TOKEN_SLASH))
        return read_divisor(reader, product, MATH_QUOTIENT) ? 1 : -1;
    if (take(reader, TOKEN_MODULO))
        return read_divisor(reader, product, MATH_FUNCTION) ? 1 : -1;
    if (math_starts_factor(reader))
        return read_juxtaposed(reader, product) ? 1 : -1;
    return 0;
}

/* A word of three or more letters that is the whole term keeps its spelling. */
static struct math_node *note_word(struct math_reader *reader, size_t start, struct math_node *term)
{
    struct text word = math_word_at(reader, start);

    if (!term || word.length_bytes < 3 || reader->at != start + word.length_bytes || term->kind != MATH_PRODUCT ||
        term->count != word.length_bytes)
        return term;
    if (math_is_answer_word(word))
        return math_make_words(reader, word);
    term->flags |= MATH_WORD;
    term->text = math_copy_text(reader->arena, word);
    return term->text.data ? term : math_too_large(reader, "a smaller answer");
}

struct math_node *math_read_term(struct math_reader *reader)
{
    struct product product = {.mark = reader->stack_count};
    size_t start = reader->at;
    int more;

    if (!math_push(reader, math_read_power(reader)))
        return NULL;
    while ((more = read_next_factor(reader, &product)) > 0)
        continue;
    return more < 0 ? NULL : note_word(reader, start, close_product(reader, &product));
}

/* --- sums --- */

static bool is_sign(enum token_kind kind)
{
    return kind >= TOKEN_PLUS && kind <= TOKEN_MINUS_PLUS;
}

static struct math_node *apply_sign(struct math_reader *reader, enum token_kind sign, struct math_node *term)
{
    struct math_node *node;

    if (!term || sign == TOKEN_PLUS)
        return term;
    node = math_make_one(reader, sign == TOKEN_MINUS ? MATH_NEGATE : MATH_PLUS_MINUS, term);
    if (node && sign == TOKEN_MINUS_PLUS)
        node->flags = MATH_FLIPPED;
    return node;
}

/* A term with the sign that stands before it, if any. */
static struct math_node *read_signed_term(struct math_reader *reader)
{
    enum token_kind sign = peek(reader)->kind;
    struct math_node *term;

    if (!is_sign(sign))
        return math_read_term(reader);
    reader->at++;
    term = math_read_term(reader);
    if (term && term->kind == MATH_BASED && sign == TOKEN_MINUS)
        return math_make_one(reader, MATH_NEGATE, term);
    return apply_sign(reader, sign, combinable(reader, term));
}

struct math_node *math_read_sum(struct math_reader *reader)
{
    size_t mark = reader->stack_count;

    if (!math_push(reader, read_signed_term(reader)))
        return NULL;
    while (is_sign(peek(reader)->kind)) {
        enum token_kind sign = peek(reader)->kind;
        if (sign == TOKEN_MINUS && math_is_set(reader->stack[reader->stack_count - 1]))
            break; /* what is left of a set */
        if (!combinable(reader, reader->stack[reader->stack_count - 1]))
            return NULL;
        reader->at++;
        if (sees(reader, sign) && is_adjacent(peek(reader)))
            return math_refuse(reader, "one sign");
        if (!math_push(reader, apply_sign(reader, sign, combinable(reader, read_signed_term(reader)))))
            return NULL;
    }
    if (reader->stack_count == mark + 1)
        return reader->stack[--reader->stack_count];
    return math_collect(reader, MATH_SUM, mark);
}
