/* Numbers in digits: groups of thousands, decimals, periods, E notation, digits of another base. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

#define EXPONENT_MAX 16384 /* of ten in E notation */
#define BASED_DIGITS_MAX 512

struct literal {
    char digits[MATH_DIGITS_MAX + 2];
    size_t count;
    size_t fraction; /* how many of them stand after the point */
    size_t period;   /* how many of those repeat for ever */
    bool decimal, scaled;
    long exponent; /* of ten; written if scaled */
};

static bool is_digit_at(const struct math_reader *reader, size_t ahead)
{
    const struct math_token *token = peek_at(reader, ahead);
    return token->kind == TOKEN_DIGIT && is_adjacent(token);
}

static bool take_digits(struct math_reader *reader, struct literal *literal)
{
    for (bool first = true; sees(reader, TOKEN_DIGIT) && (first || is_adjacent(peek(reader))); first = false) {
        if (literal->count >= MATH_DIGITS_MAX)
            return math_too_large(reader, "fewer digits");
        literal->digits[literal->count++] = (char)('0' + peek(reader)->value);
        reader->at++;
    }
    return true;
}

/* --- thousands --- */

enum separator { SEPARATOR_NONE, SEPARATOR_GROUP_COMMA, SEPARATOR_COMMA, SEPARATOR_SPACE };

/* How many digits follow from here on; 4 stands for more than three. */
static size_t count_digits(const struct math_reader *reader, size_t ahead)
{
    size_t count = 0;

    while (count < 4 && peek_at(reader, ahead + count)->kind == TOKEN_DIGIT &&
           (count == 0 || is_adjacent(peek_at(reader, ahead + count))))
        count++;
    return count;
}

/* The separator between the digits read and those that follow, and its number of tokens. */
static enum separator separator_here(const struct math_reader *reader, size_t *ret_tokens)
{
    const struct math_token *token = peek(reader);

    *ret_tokens = 1;
    if (token->kind == TOKEN_GROUP_COMMA && !reader->reading->decimal_comma)
        return SEPARATOR_GROUP_COMMA;
    if (token->kind == TOKEN_COMMA && is_adjacent(token) && is_digit_at(reader, 1) && !reader->context.brackets &&
        !reader->reading->decimal_comma)
        return SEPARATOR_COMMA;
    *ret_tokens = 0;
    if (token->kind == TOKEN_DIGIT && !(token->flags & TOKEN_STICKY))
        return SEPARATOR_SPACE;
    return SEPARATOR_NONE;
}

/* 10,20,300 is a list: what stands behind its first comma begins no group either. */
static bool continues_list(const struct math_reader *reader, size_t start)
{
    return start >= 2 && reader->tokens[start - 1].kind == TOKEN_COMMA && is_adjacent(&reader->tokens[start]) &&
           reader->tokens[start - 2].kind == TOKEN_DIGIT;
}

/* Groups of three after a first group of one to three; the separator stays the same. */
static bool take_groups(struct math_reader *reader, struct literal *literal, size_t start)
{
    size_t tokens;
    enum separator separator = separator_here(reader, &tokens);

    if (separator == SEPARATOR_NONE || literal->count > 3 || literal->digits[0] == '0' ||
        count_digits(reader, tokens) != 3 || (separator == SEPARATOR_COMMA && continues_list(reader, start)))
        return true;
    while (separator_here(reader, &tokens) == separator && count_digits(reader, tokens) == 3) {
        reader->at += tokens;
        if (!take_digits(reader, literal))
            return false;
    }
    /* 1,000,00 is no number, and 1 234/5 could be a mixed one. */
    if (separator_here(reader, &tokens) != SEPARATOR_NONE ||
        (separator == SEPARATOR_SPACE && sees(reader, TOKEN_SLASH)))
        return math_refuse(reader, "groups of three digits");
    return true;
}

/* --- after the point --- */

static bool take_closing(struct math_reader *reader, bool braces)
{
    if (!braces || take(reader, TOKEN_CLOSE_BRACE))
        return true;
    return math_refuse(reader, "a closing brace behind the digits that repeat");
}

/* \dot{1}4285\dot{7}: from the first dot to the second. */
static bool take_dotted(struct math_reader *reader, struct literal *literal)
{
    size_t before = literal->count;

    for (int dots = 0; dots < 2 && take(reader, TOKEN_DOT_ABOVE); dots++) {
        bool braces = take(reader, TOKEN_OPEN_BRACE);
        if (!sees(reader, TOKEN_DIGIT) || literal->count >= MATH_DIGITS_MAX)
            return math_refuse(reader, "a digit below the dot");
        literal->digits[literal->count++] = (char)('0' + peek(reader)->value);
        reader->at++;
        if (!take_closing(reader, braces) || (dots == 0 && !take_digits(reader, literal)))
            return false;
        /* A token behind a lone dot would not belong to the period. */
        if (dots == 0 && literal->count > before + 1 && !sees(reader, TOKEN_DOT_ABOVE))
            return math_refuse(reader, "a second dot");
    }
    literal->period = literal->count - before;
    return true;
}

static bool take_overlined(struct math_reader *reader, struct literal *literal)
{
    size_t before = literal->count;
    bool braces;

    reader->at++;
    braces = take(reader, TOKEN_OPEN_BRACE);
    if (!sees(reader, TOKEN_DIGIT))
        return math_refuse(reader, "digits below the line");
    if (!take_digits(reader, literal))
        return false;
    literal->period = literal->count - before;
    return take_closing(reader, braces);
}

/* \overline{3}, not \overline{z}. */
static bool marks_digits(const struct math_reader *reader)
{
    return peek_at(reader, 1 + (peek_at(reader, 1)->kind == TOKEN_OPEN_BRACE))->kind == TOKEN_DIGIT;
}

/* 0.(3): only directly behind the point, elsewhere it could be a factor. */
static bool take_bracketed_period(struct math_reader *reader, struct literal *literal)
{
    size_t before = literal->count;

    reader->at++;
    if (!take_digits(reader, literal))
        return false;
    literal->period = literal->count - before;
    if (literal->period == 0 || !take(reader, TOKEN_CLOSE_PAREN))
        return math_refuse(reader, "digits that repeat, in brackets");
    return true;
}

static bool take_fraction_part(struct math_reader *reader, struct literal *literal)
{
    size_t before = literal->count;
    const struct math_token *mark = peek(reader);
    bool comma = reader->reading->decimal_comma && (mark->kind == TOKEN_COMMA || mark->kind == TOKEN_GROUP_COMMA) &&
                 is_digit_at(reader, 1);
    bool taken = true;

    if ((mark->kind != TOKEN_POINT && !comma) || (before && !is_adjacent(mark)))
        return true;
    reader->at++;
    if (is_digit_at(reader, 0) && !take_digits(reader, literal))
        return false;
    if (sees(reader, TOKEN_OVERLINE) && marks_digits(reader))
        taken = take_overlined(reader, literal);
    else if (sees(reader, TOKEN_DOT_ABOVE) && marks_digits(reader))
        taken = take_dotted(reader, literal);
    else if (sees(reader, TOKEN_OPEN_PAREN) && is_adjacent(peek(reader)) && literal->count == before && before &&
             is_digit_at(reader, 1))
        taken = take_bracketed_period(reader, literal);
    literal->fraction = literal->count - before;
    literal->decimal = literal->fraction > 0;
    if (taken && (literal->count == 0 || (sees(reader, TOKEN_POINT) && is_adjacent(peek(reader)))))
        return math_refuse(reader, "a number");
    return taken;
}

/* 2.5e3, 2.5E-3. 2e-3 is Euler's number less three: with a small e and a sign, a point or a lone 1 must come first. */
static bool take_exponent(struct math_reader *reader, struct literal *literal)
{
    const struct math_token *mark = peek(reader);
    const struct math_token *sign = peek_at(reader, 1);
    bool has_sign = (sign->kind == TOKEN_MINUS || sign->kind == TOKEN_PLUS) && is_adjacent(sign);
    bool plain = literal->decimal || (literal->count == 1 && literal->digits[0] == '1');
    size_t digits = 0;

    if (mark->kind != TOKEN_LETTER || !is_adjacent(mark) || mark->run != 1 || (mark->flags & TOKEN_UPRIGHT) ||
        !is_digit_at(reader, 1 + has_sign) || !(mark->value == 'E' || (mark->value == 'e' && (!has_sign || plain))))
        return true;
    reader->at += 1 + has_sign;
    for (; is_digit_at(reader, 0); digits++, reader->at++)
        literal->exponent =
            literal->exponent <= EXPONENT_MAX ? literal->exponent * 10 + peek(reader)->value : EXPONENT_MAX + 1;
    if (literal->exponent > EXPONENT_MAX)
        return math_too_large(reader, "a smaller exponent");
    literal->scaled = true;
    literal->exponent = has_sign && sign->kind == TOKEN_MINUS ? -literal->exponent : literal->exponent;
    literal->decimal = true;
    return true;
}

/* --- the value --- */

static void set_digits(fmpz_t value, char *digits, size_t count)
{
    char after = digits[count];
    unsigned long small = 0;

    if (count > 18) {
        digits[count] = 0;
        fmpz_set_str(value, digits, 10);
        digits[count] = after;
        return;
    }
    for (size_t i = 0; i < count; i++)
        small = small * 10 + (unsigned long)(digits[i] - '0');
    fmpz_set_ui(value, small);
}

static void set_power_of_ten(fmpz_t value, unsigned long exponent)
{
    fmpz_set_ui(value, 10);
    fmpz_pow_ui(value, value, exponent);
}

/* digits / 10^fraction; with a period p: (all digits - those before the period) / (10^fraction - 10^(fraction - p)). */
static void literal_value(struct literal *literal, fmpq_t value)
{
    fmpz_t part;

    fmpz_init(part);
    set_digits(fmpq_numref(value), literal->digits, literal->count);
    set_power_of_ten(fmpq_denref(value), literal->fraction);
    if (literal->period) {
        set_digits(part, literal->digits, literal->count - literal->period);
        fmpz_sub(fmpq_numref(value), fmpq_numref(value), part);
        set_power_of_ten(part, literal->fraction - literal->period);
        fmpz_sub(fmpq_denref(value), fmpq_denref(value), part);
    }
    if (literal->exponent) {
        set_power_of_ten(part, (unsigned long)labs(literal->exponent));
        if (literal->exponent > 0)
            fmpz_mul(fmpq_numref(value), fmpq_numref(value), part);
        else
            fmpz_mul(fmpq_denref(value), fmpq_denref(value), part);
    }
    fmpz_clear(part);
    fmpq_canonicalise(value);
}

static struct math_node *number_of(struct math_reader *reader, const fmpq_t value, struct text digits, bool decimal)
{
    struct math_node *node = NULL;

    if (fmpz_bits(fmpq_numref(value)) <= MATH_BITS_MAX && fmpz_bits(fmpq_denref(value)) <= MATH_BITS_MAX)
        node = math_number_create(reader->arena, value);
    if (node)
        node->text = math_copy_text(reader->arena, digits);
    if (!node || !node->text.data)
        return math_too_large(reader, "fewer digits");
    node->flags = decimal ? MATH_DECIMAL : 0;
    return node;
}

/* The digits as written, without separators: "1234.50", "0.1\overline{6}", "2.5E-3". */
static struct math_node *make_literal(struct math_reader *reader, struct literal *literal)
{
    struct math_node *node;
    fmpq_t value;
    size_t whole = literal->count - literal->fraction;
    size_t before = literal->count - literal->period;
    _cleanup_buffer_ struct buffer text;

    buffer_init(&text, sizeof literal->digits + 64);
    buffer_append(&text, whole ? literal->digits : "0", whole ? whole : 1);
    if (literal->fraction)
        buffer_append_format(&text, ".%.*s", (int)(before - whole), literal->digits + whole);
    if (literal->period)
        buffer_append_format(&text, "\\overline{%.*s}", (int)literal->period, literal->digits + before);
    if (literal->scaled)
        buffer_append_format(&text, "E%ld", literal->exponent);
    fmpq_init(value);
    literal_value(literal, value);
    node = number_of(reader, value, buffer_text(&text), literal->decimal);
    fmpq_clear(value);
    return node;
}

struct math_node *math_read_literal(struct math_reader *reader)
{
    struct literal literal;
    size_t start = reader->at;

    literal.count = literal.fraction = literal.period = 0;
    literal.decimal = literal.scaled = false;
    literal.exponent = 0;
    if (!take_digits(reader, &literal) ||
        (literal.count && !reader->context.exponent && !take_groups(reader, &literal, start)) ||
        !take_fraction_part(reader, &literal) || !take_exponent(reader, &literal))
        return NULL;
    if (literal.count == 0)
        return math_refuse(reader, "a number");
    return make_literal(reader, &literal);
}

/* --- other bases --- */

struct based {
    char digits[BASED_DIGITS_MAX];
    size_t count;
    size_t letters, small; /* of the digits; small ones among them */
    bool upright;          /* some of them stood in \text{} */
    unsigned base;
    size_t end; /* tokens ahead */
};

static void add_digit(struct based *based, char byte)
{
    bool small = byte >= 'a' && byte <= 'z';

    based->digits[based->count++] = small ? (char)(byte - 'a' + 'A') : byte;
    based->letters += byte >= 'A';
    based->small += small;
}

/* \text{FF}: nobody writes a product so. */
static bool add_upright_digits(struct based *based, struct text digits)
{
    for (size_t i = 0; i < digits.length_bytes; i++) {
        if (!isalnum((unsigned char)digits.data[i]) || based->count == BASED_DIGITS_MAX)
            return false;
        add_digit(based, digits.data[i]);
    }
    based->upright = true;
    return true;
}

/* 1010, 2A, FF, {2A}, (1010), \text{FF}, 2\text{A}. */
static bool scan_based_digits(const struct math_reader *reader, struct based *based)
{
    enum token_kind opening = peek(reader)->kind;
    bool group = opening == TOKEN_OPEN_BRACE || opening == TOKEN_OPEN_PAREN;

    based->end = group;
    for (bool more = true; more && based->count < BASED_DIGITS_MAX; based->end += more) {
        const struct math_token *next = peek_at(reader, based->end);
        more = (next->kind == TOKEN_LETTER || next->kind == TOKEN_DIGIT || next->kind == TOKEN_TEXT) &&
               (based->count == 0 || is_adjacent(next));
        if (more && next->kind == TOKEN_TEXT && !add_upright_digits(based, token_text(reader, next)))
            return false;
        if (more && next->kind != TOKEN_TEXT)
            add_digit(based, (char)(next->kind == TOKEN_LETTER ? next->value : '0' + next->value));
    }
    if (group &&
        peek_at(reader, based->end++)->kind != (opening == TOKEN_OPEN_BRACE ? TOKEN_CLOSE_BRACE : TOKEN_CLOSE_PAREN))
        return false;
    return based->count && peek_at(reader, based->end)->kind == TOKEN_SUBSCRIPT;
}

/* AB_{12} and 2a_{16} are products with a subscript, FF_{16} and 2ff_{16} are not. */
static bool is_product(const struct based *based)
{
    bool digit = based->letters < based->count;

    if (based->letters == 0 || based->upright)
        return false;
    for (size_t i = 0; i < based->count && !digit; i++)
        if (based->digits[i] - 'A' + 10 >= (int)based->base)
            return true;
    if (based->base <= 10 || (based->small && based->small < based->letters))
        return true;
    return based->small || !digit ? based->base != 16 || based->letters < 2 : false;
}

static unsigned base_of_word(struct text word)
{
    static const struct {
        const char *name;
        unsigned base;
    } names[] = {{"two", 2},   {"three", 3}, {"four", 4}, {"five", 5},    {"six", 6},     {"seven", 7},
                 {"eight", 8}, {"nine", 9},  {"ten", 10}, {"twelve", 12}, {"sixteen", 16}};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (text_equals(word, names[i].name))
            return names[i].base;
    return 0;
}

/* 1010_{\text{base }2} */
static bool is_base(struct text word)
{
    while (word.length_bytes && word.data[word.length_bytes - 1] == ' ')
        word.length_bytes--;
    return text_equals(word, "base") || text_equals(word, "in base");
}

/* Behind the subscript sign; `end` moves behind the base. 0: it is none. */
static unsigned scan_base(const struct math_reader *reader, size_t *end)
{
    bool braces = peek_at(reader, ++*end)->kind == TOKEN_OPEN_BRACE;
    bool brackets = peek_at(reader, *end += braces)->kind == TOKEN_OPEN_PAREN;
    const struct math_token *token = peek_at(reader, *end += brackets);
    unsigned base = 0;

    if (token->kind == TOKEN_TEXT || (token->kind == TOKEN_LETTER && braces)) {
        size_t run = token->kind == TOKEN_TEXT ? 1 : token->run;
        struct text word = {reader->text.data + token->at, token->kind == TOKEN_TEXT ? token->length : run};
        base = base_of_word(word);
        if (base == 0 && !is_base(word))
            return 0;
        *end += run;
    }
    for (size_t digits = 0; base < 100 && peek_at(reader, *end)->kind == TOKEN_DIGIT &&
                            (digits == 0 || is_adjacent(peek_at(reader, *end)));
         digits++)
        base = base * 10 + peek_at(reader, (*end)++)->value;
    if (brackets && peek_at(reader, (*end)++)->kind != TOKEN_CLOSE_PAREN)
        return 0;
    if (braces && peek_at(reader, (*end)++)->kind != TOKEN_CLOSE_BRACE)
        return 0;
    return base >= 2 && base <= 36 ? base : 0;
}

static bool set_based_value(const struct based *based, fmpz_t value)
{
    for (size_t i = 0; i < based->count; i++) {
        char byte = based->digits[i];
        unsigned digit = (unsigned)(byte >= 'A' ? byte - 'A' + 10 : byte - '0');
        if (digit >= based->base)
            return false;
        fmpz_mul_ui(value, value, based->base);
        fmpz_add_ui(value, value, digit);
    }
    return true;
}

static struct math_node *make_based(struct math_reader *reader, const struct based *based)
{
    struct math_node *node = NULL;
    fmpq_t value;

    fmpq_init(value);
    if (set_based_value(based, fmpq_numref(value)))
        node = number_of(reader, value, (struct text){based->digits, based->count}, false);
    else
        math_refuse(reader, "digits of the base");
    fmpq_clear(value);
    if (!node)
        return NULL;
    node->kind = MATH_BASED;
    node->base = based->base;
    reader->at += based->end;
    return node;
}

struct math_node *math_read_digits_in_base(struct math_reader *reader)
{
    struct based based;

    based.count = 0;
    based.letters = based.small = 0;
    based.upright = false;
    if (!scan_based_digits(reader, &based))
        return NULL;
    based.base = scan_base(reader, &based.end);
    if (based.base == 0 || is_product(&based))
        return NULL;
    return make_based(reader, &based);
}
