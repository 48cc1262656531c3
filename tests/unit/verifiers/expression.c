#include "expression.h"

#include <ctype.h>
#include <stdio.h>

struct reader {
    struct math_arena *arena;
    const char *whole;
    const char *at;
};

static struct math_node *read_sum(struct reader *reader);

static _Noreturn void give_up(const struct reader *reader)
{
    fprintf(stderr, "the test's expression cannot be read: %s at %s\n", reader->whole, reader->at);
    abort();
}

static bool take(struct reader *reader, const char *sign)
{
    while (*reader->at == ' ')
        reader->at++;
    if (strncmp(reader->at, sign, strlen(sign)) != 0)
        return false;
    reader->at += strlen(sign);
    return true;
}

static struct math_node *of(struct reader *reader, enum math_kind kind, size_t count, struct math_node **children)
{
    struct math_node *node = math_node_of(reader->arena, kind, count, children);

    if (!node)
        give_up(reader);
    return node;
}

static struct math_node *two(struct reader *reader, enum math_kind kind, struct math_node *left,
                             struct math_node *right)
{
    return of(reader, kind, 2, (struct math_node *[]){left, right});
}

static struct math_node *whole_number(struct reader *reader, slong value)
{
    fmpq_t number;

    fmpq_init(number);
    fmpq_set_si(number, value, 1);
    struct math_node *node = math_number_create(reader->arena, number);
    fmpq_clear(number);
    return node;
}

static struct math_node *read_number(struct reader *reader)
{
    char digits[4096];
    size_t length = 0;
    ulong places = 0;
    bool point = false;
    fmpq_t value;
    fmpz_t scale;

    for (; isdigit((unsigned char)*reader->at) || *reader->at == '.'; reader->at++) {
        places += point;
        if (*reader->at == '.')
            point = true;
        else
            digits[length++] = *reader->at;
    }
    digits[length] = '\0';
    fmpq_init(value);
    fmpz_init(scale);
    fmpz_set_str(fmpq_numref(value), digits, 10);
    fmpz_set_ui(scale, 10);
    fmpz_pow_ui(scale, scale, places);
    fmpq_div_fmpz(value, value, scale);
    struct math_node *node = math_number_create(reader->arena, value);
    fmpz_clear(scale);
    fmpq_clear(value);
    return node;
}

static const struct {
    const char *word;
    enum math_kind kind;
} kinds[] = {
    {"binom", MATH_BINOMIAL}, {"abs", MATH_ABSOLUTE},   {"floor", MATH_FLOOR},
    {"ceil", MATH_CEILING},   {"dfac", MATH_FACTORIAL}, {"mixed", MATH_MIXED},
};

static const char *const functions[MATH_FUNCTIONS] = {
    [MATH_LN] = "ln",       [MATH_LOG] = "log",   [MATH_EXP] = "exp",        [MATH_SIN] = "sin",
    [MATH_COS] = "cos",     [MATH_TAN] = "tan",   [MATH_COT] = "cot",        [MATH_SEC] = "sec",
    [MATH_CSC] = "csc",     [MATH_ASIN] = "asin", [MATH_ACOS] = "acos",      [MATH_ATAN] = "atan",
    [MATH_ACOT] = "acot",   [MATH_ASEC] = "asec", [MATH_ACSC] = "acsc",      [MATH_SINH] = "sinh",
    [MATH_COSH] = "cosh",   [MATH_TANH] = "tanh", [MATH_ASINH] = "asinh",    [MATH_ACOSH] = "acosh",
    [MATH_ATANH] = "atanh", [MATH_GCD] = "gcd",   [MATH_LCM] = "lcm",        [MATH_MIN] = "min",
    [MATH_MAX] = "max",     [MATH_MOD] = "mod",   [MATH_SIGN] = "sign",      [MATH_RE] = "re",
    [MATH_IM] = "im",       [MATH_ARG] = "arg",   [MATH_CONJUGATE] = "conj", [MATH_LOG_PLAIN] = "plain",
};

static struct math_node *operator_of(struct reader *reader, const char *word, struct math_node **arguments)
{
    struct math_node *start = two(reader, MATH_RELATION, arguments[0], arguments[1]);
    struct math_node *node = of(reader, MATH_OPERATOR, 3, (struct math_node *[]){start, arguments[2], arguments[3]});

    start->relations = math_allocate(reader->arena, sizeof *start->relations);
    start->relations[0] = MATH_EQUALS;
    node->text = math_copy_text(reader->arena, text_of(word));
    return node;
}

static struct math_node *call(struct reader *reader, const char *word, size_t count, struct math_node **arguments)
{
    if (strcmp(word, "sqrt") == 0)
        return two(reader, MATH_ROOT, arguments[0], whole_number(reader, 2));
    if (strcmp(word, "root") == 0)
        return two(reader, MATH_ROOT, arguments[1], arguments[0]);
    if (strcmp(word, "sum") == 0 || strcmp(word, "prod") == 0)
        return operator_of(reader, word, arguments);
    struct math_node *base = arguments[0];
    if (strcmp(word, "log") == 0) {
        arguments[0] = arguments[1];
        arguments[1] = base;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strcmp(word, kinds[i].word) != 0)
            continue;
        struct math_node *node = of(reader, kinds[i].kind, count, arguments);
        node->flags = strcmp(word, "dfac") == 0 ? MATH_DOUBLED : 0;
        return node;
    }
    for (size_t i = 0; i < MATH_FUNCTIONS; i++) {
        if (strcmp(word, functions[i]) != 0)
            continue;
        struct math_node *node = of(reader, MATH_FUNCTION, count, arguments);
        node->function = (enum math_function)i;
        return node;
    }
    give_up(reader);
}

static struct math_node *constant(struct reader *reader, enum math_constant value)
{
    struct math_node *node = math_node_create(reader->arena, MATH_CONSTANT, 0);

    node->constant = value;
    return node;
}

static struct math_node *read_word(struct reader *reader)
{
    char word[16] = "";
    size_t length = 0, count = 0;
    struct math_node *arguments[8];

    while (isalpha((unsigned char)*reader->at) && length < sizeof word - 1)
        word[length++] = *reader->at++;
    if (strcmp(word, "pi") == 0)
        return constant(reader, MATH_PI);
    if (strcmp(word, "e") == 0)
        return constant(reader, MATH_E);
    if (strcmp(word, "i") == 0)
        return constant(reader, MATH_I);
    if (strcmp(word, "inf") == 0)
        return constant(reader, MATH_INFINITY);
    if (length == 1) {
        struct math_node *node = math_node_create(reader->arena, MATH_NAME, 0);
        node->text = math_copy_text(reader->arena, text_of(word));
        return node;
    }
    if (!take(reader, "("))
        give_up(reader);
    do
        arguments[count++] = read_sum(reader);
    while (count < 8 && take(reader, ","));
    if (!take(reader, ")"))
        give_up(reader);
    return call(reader, word, count, arguments);
}

static struct math_node *read_atom(struct reader *reader)
{
    if (take(reader, "(")) {
        struct math_node *node = read_sum(reader);
        if (!take(reader, ")"))
            give_up(reader);
        return node;
    }
    if (isdigit((unsigned char)*reader->at))
        return read_number(reader);
    if (isalpha((unsigned char)*reader->at))
        return read_word(reader);
    give_up(reader);
}

static struct math_node *read_power(struct reader *reader)
{
    struct math_node *node = read_atom(reader);

    for (;;) {
        if (take(reader, "!"))
            node = of(reader, MATH_FACTORIAL, 1, &node);
        else if (take(reader, "deg"))
            node = of(reader, MATH_DEGREES, 1, &node);
        else if (take(reader, "%"))
            node = of(reader, MATH_PERCENT, 1, &node);
        else
            break;
    }
    if (!take(reader, "^"))
        return node;
    if (take(reader, "-")) {
        struct math_node *exponent = read_power(reader);
        return two(reader, MATH_POWER, node, of(reader, MATH_NEGATE, 1, &exponent));
    }
    return two(reader, MATH_POWER, node, read_power(reader));
}

static struct math_node *read_product(struct reader *reader)
{
    if (take(reader, "-")) {
        struct math_node *node = read_product(reader);
        return of(reader, MATH_NEGATE, 1, &node);
    }
    struct math_node *node = read_power(reader);
    for (;;) {
        if (take(reader, "*"))
            node = two(reader, MATH_PRODUCT, node, read_power(reader));
        else if (take(reader, "/"))
            node = two(reader, MATH_QUOTIENT, node, read_power(reader));
        else
            return node;
    }
}

static struct math_node *read_sum(struct reader *reader)
{
    struct math_node *node = read_product(reader);

    for (;;) {
        if (take(reader, "+")) {
            node = two(reader, MATH_SUM, node, read_product(reader));
        } else if (take(reader, "-")) {
            struct math_node *term = read_product(reader);
            node = two(reader, MATH_SUM, node, of(reader, MATH_NEGATE, 1, &term));
        } else {
            return node;
        }
    }
}

struct math_node *expression(struct math_arena *arena, const char *text)
{
    struct reader reader = {arena, text, text};
    struct math_node *node = read_sum(&reader);

    while (*reader.at == ' ')
        reader.at++;
    if (*reader.at)
        give_up(&reader);
    return node;
}
