/* Trees to LaTeX that reads back as the same tree. */
#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/tree.h"

/* How tightly a node holds together: what is looser than its place allows stands in brackets. */
enum level {
    LEVEL_LIST,
    LEVEL_RELATION,
    LEVEL_OPERAND,
    LEVEL_RATIO,
    LEVEL_SUM,
    LEVEL_SIGNED,
    LEVEL_TERM,
    LEVEL_FACTOR,
    LEVEL_ATOM
};

struct printer {
    struct buffer *out;
    int sets;      /* open \{ */
    int integrals; /* open \int */
};

static void print(struct printer *printer, const struct math_node *node, enum level least);

/* --- bytes --- */

/* Does a command's name end the text, so that a letter behind it would become a part of it? */
static bool ends_in_command(const struct buffer *out)
{
    size_t at = out->length_bytes;

    for (int i = 0; i < 24 && at > 0 && isalpha((unsigned char)out->data[at - 1]); i++)
        at--;
    return at > 0 && at < out->length_bytes && out->data[at - 1] == '\\';
}

static void put_text(struct printer *printer, struct text text)
{
    if (text.length_bytes && isalpha((unsigned char)text.data[0]) && ends_in_command(printer->out))
        buffer_append_byte(printer->out, ' ');
    buffer_append(printer->out, text.data, text.length_bytes);
}

static void put(struct printer *printer, const char *string)
{
    put_text(printer, text_of(string));
}

static void put_joined(struct printer *printer, const struct math_node *node, size_t first, enum level least,
                       const char *between)
{
    for (size_t i = first; i < node->count; i++) {
        put(printer, i > first ? between : "");
        print(printer, node->children[i], least);
    }
}

static void put_group(struct printer *printer, const struct math_node *node)
{
    put(printer, "{");
    print(printer, node, LEVEL_SUM);
    put(printer, "}");
}

/* --- scalars --- */

static void print_integer(struct printer *printer, const fmpz_t value)
{
    char *digits = fmpz_get_str(NULL, 10, value);

    put(printer, digits);
    flint_free(digits);
}

static void print_number(struct printer *printer, const struct math_node *node)
{
    if (node->text.data) {
        put_text(printer, node->text);
        return;
    }
    if (fmpz_is_one(fmpq_denref(node->value))) {
        print_integer(printer, fmpq_numref(node->value));
        return;
    }
    put(printer, "\\frac{");
    print_integer(printer, fmpq_numref(node->value));
    put(printer, "}{");
    print_integer(printer, fmpq_denref(node->value));
    put(printer, "}");
}

static void print_constant(struct printer *printer, const struct math_node *node)
{
    static const char *const names[] = {
        [MATH_PI] = "\\pi", [MATH_E] = "e", [MATH_I] = "i", [MATH_INFINITY] = "\\infty"};

    put(printer, names[node->constant]);
}

/* dx ends an integrand: a variable d needs braces there. */
static void print_name(struct printer *printer, const struct math_node *node)
{
    bool braces = printer->integrals && text_equals(node->text, "d");

    put(printer, braces ? "{" : "");
    put_text(printer, node->text);
    put(printer, braces ? "}" : "");
}

static const char *sign_of(const struct math_node *node)
{
    if (node->kind == MATH_NEGATE)
        return "-";
    return node->flags & MATH_FLIPPED ? "\\mp" : "\\pm";
}

static bool is_signed(const struct math_node *node)
{
    return node->kind == MATH_NEGATE || node->kind == MATH_PLUS_MINUS;
}

static void print_signed(struct printer *printer, const struct math_node *node)
{
    put(printer, sign_of(node));
    put(printer, node->kind == MATH_NEGATE ? "" : " ");
    print(printer, node->children[0], LEVEL_TERM);
}

static void print_sum(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_SIGNED);
    for (size_t i = 1; i < node->count; i++) {
        const struct math_node *term = node->children[i];
        put(printer, " ");
        put(printer, is_signed(term) ? sign_of(term) : "+");
        put(printer, " ");
        print(printer, is_signed(term) ? term->children[0] : term, LEVEL_TERM);
    }
}

static const struct math_node *leftmost(const struct math_node *node)
{
    while (node->kind == MATH_POWER || node->kind == MATH_FACTORIAL || node->kind == MATH_PERCENT ||
           node->kind == MATH_DEGREES || node->kind == MATH_MIXED)
        node = node->children[0];
    return node;
}

static bool is_fraction_of_numbers(const struct math_node *node)
{
    return node->kind == MATH_QUOTIENT && node->children[0]->kind == MATH_NUMBER &&
           node->children[1]->kind == MATH_NUMBER;
}

/* Behind another factor, digits would be read as a part of it, and a fraction behind a number as a mixed number. */
static bool needs_brackets(const struct math_node *before, const struct math_node *factor)
{
    enum math_kind first = leftmost(factor)->kind;

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): no factor of a product is missing */
    return first == MATH_NUMBER || (before->kind == MATH_NUMBER && is_fraction_of_numbers(leftmost(factor)));
}

/* Is it behind a degree sign the name of a scale, or between intervals a union? */
static bool is_sign_letter(const struct math_node *before, const struct math_node *factor)
{
    const struct math_node *first = leftmost(factor);
    bool scale = before->kind == MATH_DEGREES && first->kind == MATH_NAME &&
                 (first->text.data[0] == 'C' || first->text.data[0] == 'F');

    return scale || (first->kind == MATH_NAME && text_equals(first->text, "U"));
}

static enum level level_of(const struct math_node *node);

/* f(x + 1) and x(a b) in front of an equals sign would be calls. */
static bool looks_like_call(const struct math_node *name, const struct math_node *next, bool brackets)
{
    bool opens = brackets || leftmost(next)->kind == MATH_TUPLE || level_of(leftmost(next)) < LEVEL_ATOM;

    return name->kind == MATH_NAME && opens &&
           (next->kind != MATH_SUM || strchr("fghpqFGHPQ", name->text.data[0]) != NULL);
}

static void print_juxtaposed(struct printer *printer, const struct math_node *node)
{
    bool brackets = false;

    for (size_t i = 0; i < node->count; i++) {
        const struct math_node *factor = node->children[i];
        const struct math_node *next = i + 1 < node->count ? node->children[i + 1] : NULL;
        bool next_brackets = next && (needs_brackets(factor, next) || is_sign_letter(factor, next));
        bool braces = i == 0 && next && looks_like_call(leftmost(factor), next, next_brackets);

        put(printer, i ? " " : "");
        put(printer, brackets ? "(" : braces ? "{" : "");
        print(printer, factor, brackets ? LEVEL_SUM : LEVEL_FACTOR);
        put(printer, brackets ? ")" : braces ? "}" : "");
        brackets = next_brackets;
    }
}

static void print_product(struct printer *printer, const struct math_node *node)
{
    if (node->flags & MATH_WORD)
        put_text(printer, node->text);
    else if (node->flags & MATH_JUXTAPOSED)
        print_juxtaposed(printer, node);
    else
        put_joined(printer, node, 0, LEVEL_FACTOR, " \\cdot ");
}

static void print_quotient(struct printer *printer, const struct math_node *node)
{
    put(printer, "\\frac");
    put_group(printer, node->children[0]);
    put_group(printer, node->children[1]);
}

static void print_mixed(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_ATOM);
    print_quotient(printer, node->children[1]);
}

/* 12^{{o}}: with one pair of braces the o would be a degree sign. */
static void print_power(struct printer *printer, const struct math_node *node)
{
    const struct math_node *base = node->children[0];
    const struct math_node *exponent = node->children[1];
    bool circle = exponent->kind == MATH_NAME && text_equals(exponent->text, "o");
    /* C_{5}^{2} would be a number of choices. */
    bool grouped = base->kind == MATH_NAME && base->text.length_bytes > 2 && strchr("AC", base->text.data[0]) &&
                   base->text.data[1] == '_';

    put(printer, grouped ? "{" : "");
    print(printer, base, LEVEL_ATOM);
    put(printer, grouped ? "}" : "");
    put(printer, circle ? "^{" : "^");
    put_group(printer, exponent);
    put(printer, circle ? "}" : "");
}

static void print_root(struct printer *printer, const struct math_node *node)
{
    const struct math_node *degree = node->children[1];
    bool square = degree->kind == MATH_NUMBER && fmpq_equal_ui(degree->value, 2) && !degree->flags;

    put(printer, "\\sqrt");
    if (!square) {
        put(printer, "[");
        print(printer, degree, LEVEL_SUM);
        put(printer, "]");
    }
    put_group(printer, node->children[0]);
}

static void print_factorial(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_ATOM);
    put(printer, node->flags & MATH_DOUBLED ? "!!" : "!");
}

static void print_binomial(struct printer *printer, const struct math_node *node)
{
    put(printer, "\\binom");
    put_group(printer, node->children[0]);
    put_group(printer, node->children[1]);
}

static void print_fence(struct printer *printer, const struct math_node *node)
{
    static const char *const fences[][2] = {{"\\lvert", "\\rvert"}, {"\\lfloor", "\\rfloor"}, {"\\lceil", "\\rceil"}};
    const char *const *fence = fences[node->kind - MATH_ABSOLUTE];

    put(printer, fence[0]);
    put(printer, " ");
    print(printer, node->children[0], LEVEL_SUM);
    put(printer, " ");
    put(printer, fence[1]);
}

static void print_degrees(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_ATOM);
    put(printer, "^{\\circ}");
}

static void print_percent(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_ATOM);
    put(printer, "\\%");
}

/* --- functions --- */

static void print_conjugate(struct printer *printer, const struct math_node *node)
{
    bool twice = node->children[0]->flags & MATH_WORD || node->children[0]->kind == MATH_NUMBER;

    put(printer, twice ? "\\overline{" : "\\overline");
    put_group(printer, node->children[0]);
    put(printer, twice ? "}" : "");
}

static void print_modulo(struct printer *printer, const struct math_node *node)
{
    print(printer, node->children[0], LEVEL_FACTOR);
    put(printer, " \\bmod ");
    print(printer, node->children[1], LEVEL_FACTOR);
}

static void put_function_name(struct printer *printer, enum math_function function)
{
    bool operatorname = function == MATH_LCM || function == MATH_SIGN || function == MATH_ACOT ||
                        function == MATH_ASEC || function == MATH_ACSC ||
                        (function >= MATH_ASINH && function <= MATH_ATANH);

    put(printer, operatorname ? "\\operatorname{" : "\\");
    buffer_append_string(printer->out, math_function_names[function]);
    put(printer, operatorname ? "}" : "");
}

static void print_function(struct printer *printer, const struct math_node *node)
{
    bool many = node->function >= MATH_GCD && node->function <= MATH_MAX;

    if (node->function == MATH_CONJUGATE) {
        print_conjugate(printer, node);
        return;
    }
    if (node->function == MATH_MOD) {
        print_modulo(printer, node);
        return;
    }
    put_function_name(printer, node->function);
    if (node->function == MATH_LOG) {
        put(printer, "_");
        put_group(printer, node->children[1]);
    }
    put(printer, "(");
    if (many)
        put_joined(printer, node, 0, LEVEL_SUM, ", ");
    else
        print(printer, node->children[0], LEVEL_SUM);
    put(printer, ")");
}

static void print_bound(struct printer *printer, const char *mark, const struct math_node *bound)
{
    if (bound->kind == MATH_NOTHING)
        return;
    put(printer, mark);
    put(printer, "{");
    print(printer, bound, LEVEL_RELATION);
    put(printer, "}");
}

static void print_operator(struct printer *printer, const struct math_node *node)
{
    bool integral = node->count == 4;

    put(printer, "\\");
    buffer_append(printer->out, node->text.data, node->text.length_bytes);
    print_bound(printer, "_", node->children[0]);
    print_bound(printer, "^", node->children[1]);
    put(printer, " ");
    printer->integrals += integral;
    print(printer, node->children[2], integral ? LEVEL_SUM : LEVEL_TERM);
    printer->integrals -= integral;
    if (integral) {
        put(printer, " \\, d ");
        print(printer, node->children[3], LEVEL_ATOM);
    }
}

static void print_call(struct printer *printer, const struct math_node *node)
{
    put_text(printer, node->text);
    put(printer, "(");
    put_joined(printer, node, 0, LEVEL_SUM, ", ");
    put(printer, ")");
}

/* The sign of the money that a unit begins with, and how it is written. */
static const char *money_of(struct text unit, size_t *ret_length)
{
    static const char *const money[][2] = {{"$", "\\$"}, {"€", "\\euro "}, {"£", "\\pounds "}, {"¥", "\\yen "}};

    for (size_t i = 0; i < ARRAY_LENGTH(money); i++) {
        *ret_length = strlen(money[i][0]);
        if (unit.length_bytes >= *ret_length && memcmp(unit.data, money[i][0], *ret_length) == 0)
            return money[i][1];
    }
    *ret_length = 0;
    return NULL;
}

static void print_quantity(struct printer *printer, const struct math_node *node)
{
    size_t skipped;
    const char *money = money_of(node->text, &skipped);
    bool temperature = node->text.length_bytes > 2 && memcmp(node->text.data, "\u00b0", 2) == 0;
    struct text words;

    skipped += 2 * temperature;
    words = (struct text){node->text.data + skipped, node->text.length_bytes - skipped};
    put(printer, money ? money : "");
    if (temperature && node->children[0]->kind == MATH_NEGATE) {
        put(printer, "-");
        print(printer, node->children[0]->children[0], LEVEL_ATOM);
    } else {
        print(printer, node->children[0], temperature ? LEVEL_ATOM : LEVEL_RATIO);
    }
    if (words.length_bytes == 0)
        return;
    if (money && words.data[0] == '/') {
        put(printer, "/");
        words = (struct text){words.data + 1, words.length_bytes - 1};
    }
    put(printer, temperature ? "^{\\circ}\\text{" : " \\text{");
    put_text(printer, words);
    put(printer, "}");
}

/* --- structures --- */

static void print_list(struct printer *printer, const struct math_node *node)
{
    put_joined(printer, node, 0, LEVEL_RELATION, node->flags & MATH_BY_OR ? " \\text{ or } " : ", ");
}

static void print_set(struct printer *printer, const struct math_node *node)
{
    printer->sets++;
    put(printer, "\\{");
    if (node->kind == MATH_SET) {
        put_joined(printer, node, 0, LEVEL_RELATION, ", ");
    } else {
        print(printer, node->children[0], LEVEL_RELATION);
        put(printer, " : ");
        print(printer, node->children[1], LEVEL_LIST);
    }
    put(printer, "\\}");
    printer->sets--;
}

static void print_tuple(struct printer *printer, const struct math_node *node)
{
    buffer_append_byte(printer->out, node->opening);
    put_joined(printer, node, 0, LEVEL_RELATION, ", ");
    buffer_append_byte(printer->out, node->closing);
}

static void print_sets(struct printer *printer, const struct math_node *node)
{
    static const char *const signs[] = {" \\cup ", " \\cap ", " \\setminus "};

    put_joined(printer, node, 0, LEVEL_ATOM, signs[node->kind - MATH_UNION]);
}

static void print_number_set(struct printer *printer, const struct math_node *node)
{
    put(printer, "\\mathbb{");
    buffer_append(printer->out, node->text.data, 1);
    put(printer, "}");
    put_text(printer, (struct text){node->text.data + 1, node->text.length_bytes - 1});
}

static void print_matrix(struct printer *printer, const struct math_node *node)
{
    const char *name = node->flags & MATH_DETERMINANT ? "vmatrix" : "pmatrix";

    if (node->flags & MATH_ANGLED) {
        put(printer, "\\langle ");
        put_joined(printer, node, 0, LEVEL_SUM, ", ");
        put(printer, " \\rangle");
        return;
    }
    buffer_append_format(printer->out, "\\begin{%s}", name);
    for (size_t i = 0; i < node->count; i++) {
        put(printer, i == 0 ? "" : i % node->columns ? " & " : " \\\\ ");
        print(printer, node->children[i], LEVEL_SUM);
    }
    buffer_append_format(printer->out, "\\end{%s}", name);
}

static void print_relation(struct printer *printer, const struct math_node *node)
{
    static const char *const signs[MATH_RELATIONS] = {
        [MATH_EQUALS] = " = ",          [MATH_NOT_EQUAL] = " \\ne ",         [MATH_LESS] = " < ",
        [MATH_GREATER] = " > ",         [MATH_LESS_EQUAL] = " \\le ",        [MATH_GREATER_EQUAL] = " \\ge ",
        [MATH_IN] = " \\in ",           [MATH_APPROXIMATELY] = " \\approx ", [MATH_NOT_IN] = " \\notin ",
        [MATH_CONGRUENT] = " \\equiv ", [MATH_APPROACHES] = " \\to "};

    print(printer, node->children[0], LEVEL_OPERAND);
    for (size_t i = 1; i < node->count; i++) {
        put(printer, signs[node->relations[i - 1]]);
        print(printer, node->children[i], LEVEL_OPERAND);
    }
}

static void print_ratio(struct printer *printer, const struct math_node *node)
{
    put_joined(printer, node, 0, LEVEL_SUM, node->flags & MATH_BY_TO ? " \\text{ to } " : ":");
}

/* AB_{12} would be a product. */
static void print_based(struct printer *printer, const struct math_node *node)
{
    bool letters = true;

    for (size_t i = 0; i < node->text.length_bytes; i++)
        letters = letters && isalpha((unsigned char)node->text.data[i]);
    put(printer, letters ? "\\text{" : "");
    put_text(printer, node->text);
    put(printer, letters ? "}" : "");
    buffer_append_format(printer->out, "_{%u}", node->base);
}

static void print_text(struct printer *printer, const struct math_node *node)
{
    put(printer, "\\text{");
    buffer_append(printer->out, node->text.data, node->text.length_bytes);
    put(printer, "}");
}

/* --- the table --- */

static const struct {
    void (*print)(struct printer *printer, const struct math_node *node);
    enum level level;
} forms[MATH_KINDS] = {
    [MATH_NUMBER] = {print_number, LEVEL_ATOM},
    [MATH_MIXED] = {print_mixed, LEVEL_FACTOR},
    [MATH_CONSTANT] = {print_constant, LEVEL_ATOM},
    [MATH_NAME] = {print_name, LEVEL_ATOM},
    [MATH_SUM] = {print_sum, LEVEL_SUM},
    [MATH_PRODUCT] = {print_product, LEVEL_TERM},
    [MATH_QUOTIENT] = {print_quotient, LEVEL_FACTOR},
    [MATH_NEGATE] = {print_signed, LEVEL_SIGNED},
    [MATH_POWER] = {print_power, LEVEL_FACTOR},
    [MATH_ROOT] = {print_root, LEVEL_ATOM},
    [MATH_FACTORIAL] = {print_factorial, LEVEL_FACTOR},
    [MATH_BINOMIAL] = {print_binomial, LEVEL_ATOM},
    [MATH_ABSOLUTE] = {print_fence, LEVEL_ATOM},
    [MATH_FLOOR] = {print_fence, LEVEL_ATOM},
    [MATH_CEILING] = {print_fence, LEVEL_ATOM},
    [MATH_FUNCTION] = {print_function, LEVEL_ATOM},
    [MATH_PLUS_MINUS] = {print_signed, LEVEL_SIGNED},
    [MATH_DEGREES] = {print_degrees, LEVEL_FACTOR},
    [MATH_PERCENT] = {print_percent, LEVEL_FACTOR},
    [MATH_OPERATOR] = {print_operator, LEVEL_TERM},
    [MATH_CALL] = {print_call, LEVEL_ATOM},
    [MATH_QUANTITY] = {print_quantity, LEVEL_OPERAND},
    [MATH_LIST] = {print_list, LEVEL_LIST},
    [MATH_SET] = {print_set, LEVEL_ATOM},
    [MATH_SET_BUILDER] = {print_set, LEVEL_ATOM},
    [MATH_TUPLE] = {print_tuple, LEVEL_ATOM},
    [MATH_UNION] = {print_sets, LEVEL_OPERAND},
    [MATH_INTERSECTION] = {print_sets, LEVEL_OPERAND},
    [MATH_DIFFERENCE] = {print_sets, LEVEL_OPERAND},
    [MATH_NUMBER_SET] = {print_number_set, LEVEL_ATOM},
    [MATH_MATRIX] = {print_matrix, LEVEL_ATOM},
    [MATH_RELATION] = {print_relation, LEVEL_RELATION},
    [MATH_RATIO] = {print_ratio, LEVEL_RATIO},
    [MATH_BASED] = {print_based, LEVEL_ATOM},
    [MATH_TEXT] = {print_text, LEVEL_ATOM},
};

static enum level level_of(const struct math_node *node)
{
    return node->kind == MATH_FUNCTION && node->function == MATH_MOD ? LEVEL_TERM : forms[node->kind].level;
}

static void print(struct printer *printer, const struct math_node *node, enum level least)
{
    bool enclosed = level_of(node) < least || (node->kind == MATH_RATIO && printer->sets);
    bool list = node->kind == MATH_LIST; /* in round brackets it would be a tuple */

    if (enclosed)
        put(printer, list ? "{" : "(");
    if (forms[node->kind].print)
        forms[node->kind].print(printer, node);
    if (enclosed)
        put(printer, list ? "}" : ")");
}

void math_print(const struct math_node *node, struct buffer *out)
{
    struct printer printer = {.out = out};

    print(&printer, node, LEVEL_LIST);
}
