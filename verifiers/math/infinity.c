#include "verifiers/math/infinity.h"

static bool is_infinity(const struct math_node *node)
{
    return node->kind == MATH_CONSTANT && node->constant == MATH_INFINITY;
}

bool math_has_infinity(const struct math_node *node)
{
    if (node->kind == MATH_OPERATOR)
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (math_has_infinity(node->children[i]))
            return true;
    return is_infinity(node);
}

enum math_outcome math_infinity(const struct math_node *node, int *ret_sign)
{
    if (!math_has_infinity(node))
        return MATH_OTHERWISE;
    *ret_sign = node->kind == MATH_NEGATE ? -1 : 1;
    return is_infinity(node->kind == MATH_NEGATE ? node->children[0] : node) ? MATH_VALUE : MATH_NO_VALUE;
}
