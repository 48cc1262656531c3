#include "verifiers/math/height.h"

#include "verifiers/math/rational.h"

#include <math.h>

#define WHOLE_BITS 1200
#define RADICAND_BITS 128 /* factoring the product of two primes of 64 bits takes 6 ms */
#define ARC_BITS 60       /* of x, where the root is of 1 - x^2 or of x^2 + y^2 */
#define TOO_HIGH 1e9

static double height(struct math_decider *decider, const struct math_node *node);

/* Sums have a common denominator and products multiply: both add up. */
static double sum_of_children(struct math_decider *decider, const struct math_node *node)
{
    double bits = 1;

    for (size_t i = 0; i < node->count; i++)
        bits += height(decider, node->children[i]);
    return bits;
}

static double within(double bits, double limit)
{
    return bits <= limit ? bits : TOO_HIGH;
}

static double of_power(struct math_decider *decider, const struct math_node *node)
{
    MATH_LOCAL_FMPQ(exponent);
    double bits = height(decider, node->children[0]);

    if (math_rational(decider, node->children[1], exponent) != MATH_VALUE)
        return bits + height(decider, node->children[1]);
    if (!fmpz_is_one(fmpq_denref(exponent)))
        bits = within(bits, RADICAND_BITS);
    return bits * (1 + fabs(fmpz_get_d(fmpq_numref(exponent)) / fmpz_get_d(fmpq_denref(exponent))));
}

static bool takes_a_root(enum math_function function)
{
    return function == MATH_ASIN || function == MATH_ACOS || function == MATH_ASEC || function == MATH_ACSC ||
           function == MATH_ARG || function == MATH_ASINH || function == MATH_ACOSH || function == MATH_SIGN ||
           function == MATH_ATAN || function == MATH_ACOT;
}

static double of_rational(const fmpq_t value)
{
    return (double)(fmpz_bits(fmpq_numref(value)) + fmpz_bits(fmpq_denref(value)));
}

static double height(struct math_decider *decider, const struct math_node *node)
{
    MATH_LOCAL_FMPQ(value);

    if (math_rational(decider, node, value) == MATH_VALUE)
        return of_rational(value);
    if (node->kind == MATH_POWER)
        return of_power(decider, node);
    if (node->kind == MATH_ROOT)
        return within(height(decider, node->children[0]), RADICAND_BITS);
    double bits = sum_of_children(decider, node);
    bool root = node->kind == MATH_ABSOLUTE || (node->kind == MATH_FUNCTION && takes_a_root(node->function));
    return root ? within(bits, ARC_BITS) : bits;
}

bool math_height_fits(struct math_decider *decider, const struct math_node *node)
{
    return height(decider, node) <= WHOLE_BITS;
}
