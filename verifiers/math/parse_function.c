/* Named functions with their arguments; sums, integrals, limits as they are written. */
#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

/* --- arguments --- */

static bool is_opening(enum token_kind kind)
{
    return kind == TOKEN_OPEN_PAREN || kind == TOKEN_OPEN_SQUARE || kind == TOKEN_OPEN_BRACE || kind == TOKEN_BAR ||
           kind == TOKEN_OPEN_BAR || kind == TOKEN_OPEN_FLOOR || kind == TOKEN_OPEN_CEILING;
}

/* Does a product without signs continue inside the argument? \sin 2x, \cos n\pi; not \sin x \cos y, not \ln 2 e^x. */
static bool argument_goes_on(const struct math_reader *reader)
{
    const struct math_token *token = peek(reader);

    if (!math_starts_factor(reader))
        return false;
    if (token->kind == TOKEN_LETTER)
        return token->value != 'e' && token->value != 'i';
    return token->kind == TOKEN_GREEK || token->kind == TOKEN_CONSTANT;
}

/* Without brackets. A denominator behind it would leave open what is divided. */
static struct math_node *read_bare_argument(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    const struct math_token *start = peek(reader);
    struct math_node *node;

    if (!math_starts_factor(reader) || start->kind == TOKEN_OPERATOR || start->kind == TOKEN_BEGIN)
        return math_refuse(reader, "an argument of the function");
    if (start->kind == TOKEN_DIGIT && reader->tokens[reader->at - 1].flags & TOKEN_ASCII && is_adjacent(start))
        return math_refuse(reader, "brackets around the argument");
    do {
        bool name = reader->stack_count > mark && reader->stack[reader->stack_count - 1]->kind == MATH_NAME;
        if (name && (peek(reader)->flags & TOKEN_SPACED) && sees(reader, TOKEN_LETTER))
            return math_refuse(reader, "brackets around the argument");
        if (!math_push(reader, math_read_power(reader)))
            return NULL;
        if (!math_can_combine(reader->stack[reader->stack_count - 1]))
            return math_refuse(reader, "an argument of the function");
    } while (argument_goes_on(reader));
    if (sees(reader, TOKEN_SLASH) && peek_at(reader, 1)->kind != TOKEN_FUNCTION &&
        peek_at(reader, 1)->kind != TOKEN_LOG_TEN)
        return math_refuse(reader, "brackets: is the argument divided, or the function?");
    if (reader->stack_count == mark + 1)
        return reader->stack[--reader->stack_count];
    node = math_collect(reader, MATH_PRODUCT, mark);
    if (node)
        node->flags = MATH_JUXTAPOSED;
    return node;
}

static struct math_node *read_one_argument(struct math_reader *reader)
{
    struct math_node *node;

    if (!is_opening(peek(reader)->kind))
        return read_bare_argument(reader);
    node = math_read_atom(reader);
    return !node || math_can_combine(node) ? node : math_refuse(reader, "one argument");
}

/* \gcd(12, 18), \max\{a, b\}: pushes them. */
static bool push_arguments(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    enum token_kind closing = sees(reader, TOKEN_OPEN_SET) ? TOKEN_CLOSE_SET : TOKEN_CLOSE_PAREN;

    if (!take(reader, TOKEN_OPEN_SET) && !take(reader, TOKEN_OPEN_PAREN))
        return math_refuse(reader, "arguments in brackets");
    reader->context = (struct math_context){.brackets = true};
    do {
        if (!math_push(reader, math_read_scalar(reader)))
            return false;
    } while (take(reader, TOKEN_COMMA));
    if (!take(reader, closing))
        return math_refuse(reader, "a closing bracket behind the arguments");
    reader->context = outside;
    return true;
}

static struct math_node *read_many(struct math_reader *reader, enum math_function function)
{
    size_t mark = reader->stack_count;
    struct math_node *node;

    if (!push_arguments(reader))
        return NULL;
    if (reader->stack_count < mark + 2)
        return math_refuse(reader, "two arguments or more");
    node = math_collect(reader, MATH_FUNCTION, mark);
    if (node)
        node->function = function;
    return node;
}

/* --- one function --- */

static const struct {
    enum math_function function, inverse;
} inverses[] = {
    {MATH_SIN, MATH_ASIN},   {MATH_COS, MATH_ACOS},   {MATH_TAN, MATH_ATAN},
    {MATH_COT, MATH_ACOT},   {MATH_SEC, MATH_ASEC},   {MATH_CSC, MATH_ACSC},
    {MATH_SINH, MATH_ASINH}, {MATH_COSH, MATH_ACOSH}, {MATH_TANH, MATH_ATANH},
};

static bool is_minus_one(const struct math_node *node)
{
    return node->kind == MATH_NEGATE && node->children[0]->kind == MATH_NUMBER && fmpq_is_one(node->children[0]->value);
}

/* \sin^{-1} is the inverse function, \sin^2 x the square. true: it was the inverse. */
static bool invert(enum math_function *function, const struct math_node *power)
{
    for (size_t i = 0; is_minus_one(power) && i < ARRAY_LENGTH(inverses); i++) {
        if (inverses[i].function != *function)
            continue;
        *function = inverses[i].inverse;
        return true;
    }
    return false;
}

struct head {
    enum math_function function;
    struct math_node *base, *power;
};

/* The part between the name and the argument: \log_2^3. */
static bool read_head(struct math_reader *reader, struct head *head)
{
    while (true) {
        if (sees(reader, TOKEN_SUBSCRIPT) && head->function == MATH_LOG_PLAIN) {
            reader->at++;
            head->base = math_read_argument(reader, true);
            head->function = MATH_LOG;
            if (!head->base)
                return false;
        } else if (sees(reader, TOKEN_CARET) && !head->power && !math_sees_degree_mark(reader)) {
            reader->at++;
            head->power = math_read_exponent(reader);
            if (!head->power)
                return false;
            if (invert(&head->function, head->power))
                head->power = NULL;
        } else {
            return true;
        }
    }
}

struct math_node *math_read_function(struct math_reader *reader)
{
    bool ten = sees(reader, TOKEN_LOG_TEN);
    struct head head = {.function = ten ? MATH_LOG : peek(reader)->value};
    struct math_node *argument;
    struct math_node *node;

    reader->at++;
    if (head.function >= MATH_GCD && head.function <= MATH_MAX)
        return read_many(reader, head.function);
    if (ten)
        head.base = math_make_integer(reader, 10);
    if (!read_head(reader, &head))
        return NULL;
    argument = read_one_argument(reader);
    if (!argument)
        return NULL;
    node = head.base ? math_make_two(reader, MATH_FUNCTION, argument, head.base)
                     : math_make_one(reader, MATH_FUNCTION, argument);
    if (node)
        node->function = head.function;
    return node && head.power ? math_make_two(reader, MATH_POWER, node, head.power) : node;
}

/* --- big operators --- */

enum { OPERATOR_SUM, OPERATOR_PRODUCT, OPERATOR_INTEGRAL, OPERATOR_LIMIT };

static struct math_node *read_lower(struct math_reader *reader, bool relation)
{
    struct math_node *node;

    if (!relation)
        return math_read_argument(reader, true);
    if (!take(reader, TOKEN_OPEN_BRACE))
        return math_refuse(reader, "braces below the sign");
    node = math_read_relation(reader);
    if (node && !take(reader, TOKEN_CLOSE_BRACE))
        return math_refuse(reader, "a closing brace below the sign");
    return node;
}

/* A minus without braces is fine here: \int_0^\infty, \int_{-1}^1. */
static bool read_bounds(struct math_reader *reader, unsigned sign, struct math_node *bounds[2])
{
    while (sees(reader, TOKEN_SUBSCRIPT) || sees(reader, TOKEN_CARET)) {
        bool upper = sees(reader, TOKEN_CARET);
        reader->at++;
        if (bounds[upper])
            return math_refuse(reader, "one bound below and one above");
        bounds[upper] = upper ? math_read_argument(reader, true) : read_lower(reader, sign != OPERATOR_INTEGRAL);
        if (!bounds[upper])
            return false;
    }
    for (int i = 0; i < 2; i++)
        if (!bounds[i])
            bounds[i] = math_make(reader, MATH_NOTHING, 0, NULL);
    return bounds[0] && bounds[1];
}

static struct math_node *read_integrand(struct math_reader *reader)
{
    struct math_context outside = reader->context;
    struct math_node *body;

    reader->context.integral = true;
    body = math_ends_integrand(reader) ? math_make_integer(reader, 1) : math_read_scalar(reader);
    reader->context = outside;
    if (body && (!sees(reader, TOKEN_LETTER) || peek(reader)->value != 'd'))
        return math_refuse(reader, "the variable of the integral");
    reader->at += body != NULL;
    return body;
}

struct math_node *math_read_operator(struct math_reader *reader)
{
    unsigned sign = peek(reader)->value;
    struct math_node *bounds[2] = {NULL, NULL};
    struct math_node *body;
    struct math_node *variable;
    struct math_node *node;

    reader->at++;
    if (!read_bounds(reader, sign, bounds))
        return NULL;
    if (sign == OPERATOR_INTEGRAL) {
        body = read_integrand(reader);
        variable = body ? math_read_name(reader) : NULL;
        if (variable && text_equals(variable->text, "d"))
            return math_refuse(reader, "another variable than d");
        node = math_make(reader, MATH_OPERATOR, 4, (struct math_node *const[]){bounds[0], bounds[1], body, variable});
    } else {
        body = math_read_term(reader);
        if (body && !math_can_combine(body))
            return math_refuse(reader, "a number or expression behind the sign");
        node = math_make(reader, MATH_OPERATOR, 3, (struct math_node *const[]){bounds[0], bounds[1], body});
    }
    if (node)
        node->text = text_of(math_operators[sign]);
    return node;
}
