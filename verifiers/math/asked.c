/* Answers that repeat the expression that was asked for: m + n = 5, |AB| = 5, A \cap B = \{1\}, A^{-1} = M.
 *
 * Only names, each once, and only before a value without names: x + 1 = 5 and 2x = 5 were given, not asked for. */
#include "verifiers/math/comparison.h"

#include <ctype.h>

#include "server/base/cleanup.h"

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

/* |AB|, |\vec{a}|. Not |x| = 5, which is also true of -5. */
static bool is_length(const struct math_node *node)
{
    return node->kind == MATH_ABSOLUTE && (math_is_capitals(node->children[0]) || is_vector(node->children[0]));
}

static bool is_number_asked(const struct math_node *node)
{
    return is_sum_of_names(node) || is_product_of_names(node) || is_length(node);
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

static bool is_asked(const struct math_node *expression, const struct math_node *value)
{
    if (math_is_scalar(value))
        return is_number_asked(expression);
    if ((value->kind == MATH_MATRIX || value->kind == MATH_TUPLE) && is_array_asked(expression))
        return true;
    return (value->kind == MATH_SET || math_may_be_region(value)) && is_set_of_names(expression);
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

const struct math_node *math_name_asked(struct comparison *comparison, const struct math_node *reference,
                                        const struct math_node *answer)
{
    if (answer->kind != MATH_RELATION || answer->relations[0] != MATH_EQUALS || math_has_names(reference) ||
        !is_asked(answer->children[0], reference))
        return answer;
    for (size_t i = 1; i < answer->count; i++)
        if (math_has_names(answer->children[i]))
            return answer;
    return with_name(comparison, answer);
}
