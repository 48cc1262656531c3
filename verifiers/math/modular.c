#include "verifiers/math/modular.h"

#include <flint/ulong_extras.h>

#define PRIME UWORD(2305843009213693951) /* 2^61 - 1 */

static ulong multiply(ulong left, ulong right)
{
    unsigned __int128 product = (unsigned __int128)left * right;
    ulong folded = (ulong)(product & PRIME) + (ulong)(product >> 61);

    return folded >= PRIME ? folded - PRIME : folded;
}

static ulong add(ulong left, ulong right)
{
    return n_addmod(left, right, PRIME);
}

/* The value a name has: by its letters, so that it is the same in every tree. */
static ulong value_of(struct text name)
{
    ulong hash = UWORD(14695981039346656037);

    for (size_t i = 0; i < name.length_bytes; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * UWORD(1099511628211);
    hash ^= hash >> 29;
    return (hash * UWORD(0x9e3779b97f4a7c15)) % PRIME;
}

static ulong power_of(ulong base, ulong exponent)
{
    ulong result = 1;

    for (; exponent; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1)
            result = multiply(result, base);
    return result;
}

static bool divide(ulong *value, ulong by)
{
    if (by == 0)
        return false;
    *value = multiply(*value, power_of(by, PRIME - 2));
    return true;
}

static bool rational(const fmpq_t value, ulong *ret_value)
{
    *ret_value = fmpz_fdiv_ui(fmpq_numref(value), PRIME);
    return fmpz_is_one(fmpq_denref(value)) || divide(ret_value, fmpz_fdiv_ui(fmpq_denref(value), PRIME));
}

/* A whole exponent, written as such. */
static bool whole(const struct math_node *node, slong *ret_exponent)
{
    const struct math_node *number = node->kind == MATH_NEGATE ? node->children[0] : node;

    if (number->kind != MATH_NUMBER || !fmpz_is_one(fmpq_denref(number->value)) ||
        fmpz_bits(fmpq_numref(number->value)) > 60)
        return false;
    *ret_exponent = fmpz_get_si(fmpq_numref(number->value));
    *ret_exponent = number == node ? *ret_exponent : -*ret_exponent;
    return true;
}

static bool evaluate(struct math_decider *decider, const struct math_node *node, ulong *ret_value);

static bool fold(struct math_decider *decider, const struct math_node *node, ulong *ret_value)
{
    ulong other;

    if (!evaluate(decider, node->children[0], ret_value))
        return false;
    for (size_t i = 1; i < node->count; i++) {
        if (!evaluate(decider, node->children[i], &other))
            return false;
        *ret_value = node->kind == MATH_PRODUCT ? multiply(*ret_value, other) : add(*ret_value, other);
    }
    return true;
}

static bool power(struct math_decider *decider, const struct math_node *node, ulong *ret_value)
{
    slong exponent;
    ulong base;

    if (!whole(node->children[1], &exponent) || !evaluate(decider, node->children[0], &base))
        return false;
    if (base == 0 && exponent <= 0)
        return false;
    *ret_value = 1;
    if (exponent < 0)
        return divide(ret_value, power_of(base, (ulong)-exponent));
    *ret_value = power_of(base, (ulong)exponent);
    return true;
}

static bool quotient(struct math_decider *decider, const struct math_node *node, ulong *ret_value)
{
    ulong denominator;

    return evaluate(decider, node->children[0], ret_value) && evaluate(decider, node->children[1], &denominator) &&
           divide(ret_value, denominator);
}

static bool evaluate(struct math_decider *decider, const struct math_node *node, ulong *ret_value)
{
    if (!math_spend(decider, 20))
        return false;
    switch ((int)node->kind) {
    case MATH_NUMBER:
        return rational(node->value, ret_value);
    case MATH_NAME:
        *ret_value = value_of(node->text);
        return !math_bound_value(decider, node->text);
    case MATH_MIXED:
    case MATH_SUM:
    case MATH_PRODUCT:
        return fold(decider, node, ret_value);
    case MATH_QUOTIENT:
        return quotient(decider, node, ret_value);
    case MATH_POWER:
        return power(decider, node, ret_value);
    case MATH_NEGATE:
        if (!evaluate(decider, node->children[0], ret_value))
            return false;
        *ret_value = *ret_value ? PRIME - *ret_value : 0;
        return true;
    default:
        return false;
    }
}

enum math_outcome math_modular(struct math_decider *decider, const struct math_node *node, ulong *ret_value)
{
    return evaluate(decider, node, ret_value) ? MATH_VALUE : MATH_OTHERWISE;
}
