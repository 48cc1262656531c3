/* Numbers of choices in their older spellings, C_{10}^3 and {}_{10}C_3, and fractions set as ^{3}/_{4}. */
#include "verifiers/math/reader.h"

/* A whole number `ahead`, in braces or without: as elsewhere all digits that stand together are taken then, where TeX takes one.
 * Its tokens, 0: something else. */
static size_t scan_whole(const struct math_reader *reader, size_t ahead, unsigned long *ret_value)
{
    size_t braces = peek_at(reader, ahead)->kind == TOKEN_OPEN_BRACE;
    size_t digits = 0;
    unsigned long value = 0;

    for (; digits < 6; digits++) {
        const struct math_token *token = peek_at(reader, ahead + braces + digits);
        if (token->kind != TOKEN_DIGIT || (digits > 0 && !braces && !is_adjacent(token)))
            break;
        value = value * 10 + token->value;
    }
    if (digits == 0 || (braces && peek_at(reader, ahead + 1 + digits)->kind != TOKEN_CLOSE_BRACE))
        return 0;
    *ret_value = value;
    return digits + 2 * braces;
}

/* The letter `ahead` that counts: C without order, A and P with it; 0: another. */
static char counting_letter(const struct math_reader *reader, size_t ahead)
{
    const struct math_token *token = peek_at(reader, ahead);
    struct text word = token_text(reader, token);
    bool text = token->kind == TOKEN_TEXT && word.length_bytes == 1;
    bool letter = token->kind == TOKEN_LETTER && token->run == 1;
    char byte = text ? word.data[0] : letter ? (char)token->value : 0;

    return byte == 'C' || byte == 'A' || byte == 'P' ? byte : 0;
}

/* C: n over k; A, P: n! / (n - k)! */
static struct math_node *make_choice(struct math_reader *reader, char letter, unsigned long n, unsigned long k)
{
    if (letter == 'C')
        return math_make_two(reader, MATH_BINOMIAL, math_make_integer(reader, n), math_make_integer(reader, k));
    if (k > n)
        return math_refuse(reader, "no more things than there are");
    return math_make_two(reader, MATH_QUOTIENT, math_make_one(reader, MATH_FACTORIAL, math_make_integer(reader, n)),
                         math_make_one(reader, MATH_FACTORIAL, math_make_integer(reader, n - k)));
}

/* C_{10}^3, C^{10}_3, A_5^2: the larger number is that of the things. A 1 below could be the number of a constant. */
static struct math_node *read_stacked_choice(struct math_reader *reader, char letter)
{
    enum token_kind first = peek_at(reader, 1)->kind;
    unsigned long near = 0;
    unsigned long far = 0;
    size_t end = scan_whole(reader, 2, &near);
    size_t tail;

    if (end == 0 || letter == 'P' ||
        peek_at(reader, 2 + end)->kind != (first == TOKEN_CARET ? TOKEN_SUBSCRIPT : TOKEN_CARET))
        return NULL;
    tail = scan_whole(reader, 3 + end, &far);
    if (tail == 0 || (near < 2 && far < 2) || (first == TOKEN_SUBSCRIPT && near < far))
        return NULL;
    reader->at += 3 + end + tail;
    return make_choice(reader, letter, near > far ? near : far, near > far ? far : near);
}

/* The same without braces. */
static size_t scan_plain(const struct math_reader *reader, size_t ahead, unsigned long *ret_value)
{
    size_t digits = 0;

    for (*ret_value = 0; peek_at(reader, ahead + digits)->kind == TOKEN_DIGIT && digits < 6; digits++)
        *ret_value = *ret_value * 10 + peek_at(reader, ahead + digits)->value;
    return digits;
}

/* C(10,3) */
static struct math_node *read_called_choice(struct math_reader *reader, char letter)
{
    unsigned long n = 0;
    unsigned long k = 0;
    size_t first = letter == 'C' ? scan_plain(reader, 2, &n) : 0;
    size_t second;

    if (first == 0 || peek_at(reader, 2 + first)->kind != TOKEN_COMMA)
        return NULL;
    second = scan_plain(reader, 3 + first, &k);
    if (second == 0 || peek_at(reader, 3 + first + second)->kind != TOKEN_CLOSE_PAREN || n < k)
        return NULL;
    reader->at += 4 + first + second;
    return make_choice(reader, letter, n, k);
}

struct math_node *math_read_combination(struct math_reader *reader)
{
    char letter = counting_letter(reader, 0);
    enum token_kind next = letter ? peek_at(reader, 1)->kind : TOKEN_END;

    if (next == TOKEN_SUBSCRIPT || next == TOKEN_CARET)
        return read_stacked_choice(reader, letter);
    return next == TOKEN_OPEN_PAREN ? read_called_choice(reader, letter) : NULL;
}

/* ^{3}/_{4} */
static struct math_node *read_set_fraction(struct math_reader *reader, unsigned long numerator, size_t end)
{
    unsigned long denominator = 0;
    size_t tail = peek_at(reader, end + 1)->kind == TOKEN_SUBSCRIPT ? scan_whole(reader, end + 2, &denominator) : 0;

    if (tail == 0)
        return math_refuse(reader, "a value");
    reader->at += end + 2 + tail;
    return math_make_two(reader, MATH_QUOTIENT, math_make_integer(reader, numerator),
                         math_make_integer(reader, denominator));
}

struct math_node *math_read_raised(struct math_reader *reader)
{
    bool raised = sees(reader, TOKEN_CARET);
    unsigned long n = 0;
    unsigned long k = 0;
    size_t end = 1 + scan_whole(reader, 1, &n);
    char letter = end > 1 ? counting_letter(reader, end) : 0;
    size_t tail;

    if (end > 1 && raised && peek_at(reader, end)->kind == TOKEN_SLASH)
        return read_set_fraction(reader, n, end);
    tail = letter && peek_at(reader, end + 1)->kind == TOKEN_SUBSCRIPT ? scan_whole(reader, end + 2, &k) : 0;
    if (tail == 0 || n < k)
        return math_refuse(reader, "a value");
    reader->at += end + 2 + tail;
    return make_choice(reader, letter, n, k);
}
