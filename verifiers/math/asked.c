/* Answers that repeat the expression that was asked for: m + n = 5, |AB| = 5, A \cap B = \{1\}, A^{-1} = M.
 *
 * Only names, each once, and only before a value without names: x + 1 = 5 and 2x = 5 were given, not asked for. */
#include "verifiers/math/comparison.h"

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/parse.h"

static const struct math_node *without_sign(const struct math_node *term)
{
    return term->kind == MATH_NEGATE ? term->children[0] : term;
}

static bool are_different(const struct math_node *node)
{
    for (size_t i = 1; i < node->count; i++)
        for (size_t k = 0; k < i; k++)
            if (math_same_tree(without_sign(node->children[i]), without_sign(node->children[k])))
                return false;
    return true;
}

/* m + n, x - y, AB + BC */
static bool is_sum_of_names(const struct math_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        const struct math_node *term = without_sign(node->children[i]);
        if (term->kind != MATH_NAME && !math_is_capitals(term))
            return false;
    }
    return node->kind == MATH_SUM && node->children[0]->kind != MATH_NEGATE && are_different(node);
}

/* mn */
static bool is_product_of_names(const struct math_node *node)
{
    return node->kind == MATH_PRODUCT && (node->flags & MATH_JUXTAPOSED) && math_are_names(node) && are_different(node);
}

/* \vec{a}, \vec{a} - \vec{b}, \overrightarrow{AB} */
static bool is_vector(const struct math_node *node)
{
    static const char *const marks[] = {"\\vec{", "\\overrightarrow{"};
    bool vector = node->kind == MATH_SUM;

    vector = vector && node->children[0]->kind != MATH_NEGATE && are_different(node);
    for (size_t i = 0; vector && i < node->count; i++)
        vector = is_vector(without_sign(node->children[i]));
    for (size_t i = 0; node->kind == MATH_NAME && i < ARRAY_LENGTH(marks); i++)
        vector = vector || (node->text.length_bytes > strlen(marks[i]) &&
                            memcmp(node->text.data, marks[i], strlen(marks[i])) == 0);
    return vector;
}

/* z, w, u, v: letters of complex numbers and vectors. */
static bool is_of_two_numbers(const struct math_node *node)
{
    return node->kind == MATH_NAME && strchr("zwuv", node->text.data[0]);
}

/* |AB|, |\vec{a}|, |z|. Not |x| = 5, which is also true of -5. */
static bool is_length(const struct math_node *node)
{
    const struct math_node *inner = node->count == 1 ? node->children[0] : node;

    return node->kind == MATH_ABSOLUTE && (math_is_capitals(inner) || is_vector(inner) || is_of_two_numbers(inner));
}

/* \vec{a} \cdot \vec{b}, a \cdot b */
static bool is_product_of_vectors(const struct math_node *node)
{
    bool vectors = node->kind == MATH_PRODUCT && are_different(node);

    for (size_t i = 0; vectors && i < node->count; i++)
        vectors = node->children[i]->kind == MATH_NAME || is_vector(node->children[i]);
    return vectors;
}

/* m/n, m : n */
static bool is_proportion(const struct math_node *node)
{
    bool names = node->kind == MATH_QUOTIENT || node->kind == MATH_RATIO;

    for (size_t i = 0; names && i < node->count; i++)
        names = node->children[i]->kind == MATH_NAME || math_is_capitals(node->children[i]);
    return names && are_different(node);
}

/* \cos\theta, \sin(\alpha + \beta), \gcd(a, b), \bar{x}. Not \ln x or \sqrt{x}, which hide a value. */
static bool is_function(const struct math_node *node)
{
    bool hides = node->function <= MATH_EXP || node->function == MATH_LOG_PLAIN;

    return node->kind == MATH_FUNCTION && !hides && math_has_names(node);
}

/* \phi(12): not a(3), which is a product. */
static bool is_value_at(const struct math_node *node)
{
    static const char *const functions[] = {"\\phi", "\\varphi", "\\sigma", "\\tau",
                                            "\\mu",  "\\Gamma",  "\\zeta",  "\\psi"};
    const struct math_node *name = node->count == 2 ? node->children[0] : node;

    if (node->kind != MATH_PRODUCT || node->count != 2 || name->kind != MATH_NAME ||
        !(node->children[1]->flags & MATH_BRACKETED))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
        if (text_equals(name->text, functions[i]))
            return true;
    return false;
}

/* \int_0^1 f(x) dx, \lim_{x \to 0} f(x): of a function that nobody knows. */
static bool is_of_unknown_function(const struct math_node *node)
{
    bool call = node->kind == MATH_PRODUCT && node->count == 2 && node->children[0]->kind == MATH_NAME &&
                node->children[0]->text.length_bytes == 1 && strchr("fgh", node->children[0]->text.data[0]) &&
                (node->children[1]->flags & MATH_BRACKETED);

    if (node->kind != MATH_OPERATOR)
        return call;
    return node->count > 2 && is_of_unknown_function(node->children[2]);
}

static bool is_number_asked(const struct math_node *node)
{
    return is_sum_of_names(node) || is_product_of_names(node) || is_length(node) || is_product_of_vectors(node) ||
           is_proportion(node) || is_function(node) || is_value_at(node) ||
           (node->kind == MATH_OPERATOR && is_of_unknown_function(node));
}

/* A, \vec{a}, A^{-1}, A^T, A^2 */
static bool is_array(const struct math_node *node)
{
    if (node->kind == MATH_POWER && node->children[1]->kind == MATH_NUMBER && fmpq_is_zero(node->children[1]->value))
        return false;
    if (node->kind == MATH_POWER)
        return math_is_scalar(node->children[1]) && is_array(node->children[0]);
    return is_vector(node) || (node->kind == MATH_NAME && isupper((unsigned char)node->text.data[0]));
}

/* A + B, A - B, AB, \vec{a} \times \vec{b} */
static bool is_array_asked(const struct math_node *node)
{
    if (node->kind != MATH_SUM && node->kind != MATH_PRODUCT)
        return is_array(node);
    if (node->children[0]->kind == MATH_NEGATE || !are_different(node))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (!is_array(without_sign(node->children[i])))
            return false;
    return true;
}

/* A \cap B, A \cup (B \setminus C) */
static bool is_set_of_names(const struct math_node *node)
{
    if (node->kind != MATH_UNION && node->kind != MATH_INTERSECTION && node->kind != MATH_DIFFERENCE)
        return false;
    if (!are_different(node))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != MATH_NAME && !is_set_of_names(node->children[i]))
            return false;
    return true;
}

static bool is_conjugate(const struct math_node *node)
{
    return node->kind == MATH_FUNCTION && node->function == MATH_CONJUGATE;
}

static bool is_asked(const struct math_node *expression, const struct math_node *value)
{
    /* \bar{z} = 3 + 4i is not what z is. */
    if (math_has_kind(value, MATH_CONSTANT) && is_conjugate(expression))
        return false;
    if (math_is_scalar(value) || value->kind == MATH_RATIO)
        return is_number_asked(expression);
    if ((value->kind == MATH_MATRIX || value->kind == MATH_TUPLE) && is_array_asked(expression))
        return true;
    return (value->kind == MATH_SET || math_may_be_region(value)) && is_set_of_names(expression);
}

/* --- formulas of the prompt --- */

#define FORMULAS_MAX 32
#define FORMULA_BYTES 160

/* Behind the formula that opens at `at`, and what is in it; at + 1: none opens there. */
static size_t take_formula(struct text prompt, size_t at, struct text *ret_formula)
{
    static const char *const marks[][2] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}};
    struct text rest = {prompt.data + at, prompt.length_bytes - at};

    *ret_formula = TEXT_NONE;
    if (rest.data[0] == '\\' && rest.length_bytes > 1 && rest.data[1] == '$')
        return at + 2;
    for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
        size_t length = strlen(marks[i][0]);
        const char *end;
        if (rest.length_bytes <= length || memcmp(rest.data, marks[i][0], length) != 0)
            continue;
        end = memmem(rest.data + length, rest.length_bytes - length, marks[i][1], length);
        if (!end)
            break;
        *ret_formula = (struct text){rest.data + length, (size_t)(end - rest.data) - length};
        return at + ret_formula->length_bytes + 2 * length;
    }
    return at + 1;
}

/* f(2) =?, x + y. */
static struct text without_question(struct text formula)
{
    while (formula.length_bytes && strchr(" =?.,;:~", formula.data[formula.length_bytes - 1]))
        formula.length_bytes--;
    return formula;
}

static bool is_formula(struct comparison *comparison, struct text formula, const struct math_node *expression)
{
    static const struct math_reading reading = {.max_depth = 32, .any_unit = true};
    struct math_node *node = NULL;

    formula = without_question(formula);
    if (formula.length_bytes == 0 || formula.length_bytes > FORMULA_BYTES)
        return false;
    return math_parse(comparison->rules->arena, formula, &reading, &node, NULL) == MATH_PARSED &&
           math_same_tree(node, expression);
}

/* The expression is a whole formula of the prompt. */
static bool is_in_prompt(struct comparison *comparison, const struct math_node *expression)
{
    struct text prompt = comparison->rules->prompt;
    size_t formulas = 0;

    if (expression->height > FORMULA_BYTES)
        return false;
    for (size_t at = 0; at < prompt.length_bytes && formulas < FORMULAS_MAX;) {
        struct text formula;
        at = take_formula(prompt, at, &formula);
        formulas += formula.data != NULL;
        if (formula.data && is_formula(comparison, formula, expression))
            return true;
    }
    return false;
}

/* With a name in place of what was asked for. NULL beyond the limit. */
static const struct math_node *with_name(struct comparison *comparison, const struct math_node *chain)
{
    const struct math_node **parts = math_allocate(comparison->rules->arena, chain->count * sizeof(struct math_node *));
    struct math_node *name = math_node_create(comparison->rules->arena, MATH_NAME, 0);

    if (!parts || !name)
        return NULL;
    name->text = text_of("?"); /* that of no variable */
    parts[0] = name;
    for (size_t i = 1; i < chain->count; i++)
        parts[i] = chain->children[i];
    return math_with_children(comparison, chain, parts);
}

/* Not of a name, which is one already. */
static bool is_question(struct comparison *comparison, const struct math_node *expression)
{
    return expression->kind != MATH_NAME && expression->kind != MATH_CALL && math_has_names(expression) &&
           is_in_prompt(comparison, expression);
}

const struct math_node *math_name_asked(struct comparison *comparison, const struct math_node *reference,
                                        const struct math_node *answer)
{
    if (answer->kind != MATH_RELATION || answer->relations[0] != MATH_EQUALS || math_has_names(reference) ||
        !(is_asked(answer->children[0], reference) || is_question(comparison, answer->children[0])))
        return answer;
    for (size_t i = 1; i < answer->count; i++)
        if (math_has_names(answer->children[i]))
            return answer;
    return with_name(comparison, answer);
}
