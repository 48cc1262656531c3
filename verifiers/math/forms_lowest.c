#include "verifiers/math/forms.h"

/* --- whole numbers --- */

/* Of all terms of a sum. *ret_content: initialised. */
static void content_of(const struct math_node *node, fmpz_t ret_content)
{
    fmpz_t part;

    fmpz_one(ret_content);
    if (node->kind == MATH_NEGATE || node->kind == MATH_PLUS_MINUS) {
        content_of(node->children[0], ret_content);
        return;
    }
    if (math_is_integer(node))
        fmpz_set(ret_content, math_integer_of(node));
    if (node->kind != MATH_PRODUCT && node->kind != MATH_SUM)
        return;
    fmpz_init(part);
    for (size_t i = 0; i < node->count; i++) {
        content_of(node->children[i], part);
        if (node->kind == MATH_PRODUCT)
            fmpz_mul(ret_content, ret_content, part);
        else if (i)
            fmpz_gcd(ret_content, ret_content, part);
        else
            fmpz_swap(ret_content, part);
    }
    fmpz_clear(part);
}

/* Of both sides of a quotient, or of a product of quotients and others. */
static void gather(const struct math_node *node, fmpz_t upper, fmpz_t lower)
{
    fmpz_t content;

    node = math_without_sign(node);
    if (node->kind == MATH_PRODUCT) {
        for (size_t i = 0; i < node->count; i++)
            gather(node->children[i], upper, lower);
    } else if (node->kind == MATH_QUOTIENT) {
        gather(node->children[0], upper, lower);
        gather(node->children[1], lower, upper);
    } else {
        fmpz_init(content);
        content_of(node, content);
        fmpz_mul(upper, upper, content);
        fmpz_clear(content);
    }
}

static bool shares_whole_number(const struct math_node *node)
{
    bool shared;
    fmpz_t upper;
    fmpz_t lower;

    fmpz_init_set_ui(upper, 1);
    fmpz_init_set_ui(lower, 1);
    gather(node, upper, lower);
    fmpz_gcd(upper, upper, lower);
    shared = !fmpz_is_one(upper);
    fmpz_clear(lower);
    fmpz_clear(upper);
    return shared;
}

/* --- factors as they are written --- */

static bool is_whole_power(const struct math_node *node)
{
    return node->kind == MATH_POWER && node->children[1]->kind == MATH_NUMBER && math_is_integer(node->children[1]);
}

/* Does each term have it? */
static bool has_factor(const struct math_node *node, const struct math_node *factor)
{
    node = math_without_sign(node);
    if (math_same_tree(node, factor))
        return true;
    if (is_whole_power(node))
        return has_factor(node->children[0], factor);
    if (node->kind != MATH_PRODUCT && node->kind != MATH_SUM)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (has_factor(node->children[i], factor) == (node->kind == MATH_PRODUCT))
            return node->kind == MATH_PRODUCT;
    return node->kind == MATH_SUM;
}

static size_t size_of(const struct math_node *node)
{
    size_t size = 1;

    for (size_t i = 0; i < node->count; i++)
        size += size_of(node->children[i]);
    return size;
}

static bool shares_factor(struct comparison *comparison, const struct math_node *upper, const struct math_node *lower)
{
    lower = math_without_sign(lower);
    if (lower->kind == MATH_PRODUCT) {
        for (size_t i = 0; i < lower->count; i++)
            if (shares_factor(comparison, upper, lower->children[i]))
                return true;
        return false;
    }
    if (is_whole_power(lower))
        return shares_factor(comparison, upper, lower->children[0]);
    return !math_is_integer(lower) &&
           (!math_decider_spend(comparison->decider, (int64_t)size_of(upper)) || has_factor(upper, lower));
}

bool math_is_in_lowest_terms(struct comparison *comparison, const struct math_node *node)
{
    if (node->kind == MATH_QUOTIENT &&
        ((math_is_integer(node->children[1]) && fmpz_is_one(math_integer_of(node->children[1]))) ||
         shares_factor(comparison, node->children[0], node->children[1])))
        return false;
    return (node->kind != MATH_QUOTIENT && node->kind != MATH_PRODUCT) || !shares_whole_number(node);
}
