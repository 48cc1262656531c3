/* The fractions that stand in exponents are known before a form is begun, so that all roots of a prime are powers of
 * one: sqrt 2 and the cube root of 2 are (2^(1/6))^3 and (2^(1/6))^2. */
#include "verifiers/math/form_value.h"

#define PARTS_MAX 60
#define ANGLE_PARTS_MAX 6

static ulong common_multiple(ulong one, ulong other)
{
    ulong multiple = one / n_gcd(one, other) * other;

    return multiple <= PARTS_MAX ? multiple : one;
}

static ulong small(const fmpz_t value)
{
    return fmpz_sgn(value) > 0 && fmpz_cmp_ui(value, PARTS_MAX) <= 0 ? fmpz_get_ui(value) : 1;
}

/* Denominators inside of an exponent. */
static ulong in_exponent(const struct math_node *node)
{
    ulong parts = 1;

    if (node->kind == MATH_NUMBER)
        return small(fmpq_denref(node->value));
    if (node->kind == MATH_QUOTIENT && node->children[1]->kind == MATH_NUMBER)
        parts = small(fmpq_numref(node->children[1]->value));
    if (node->kind == MATH_DEGREES)
        return 1;
    for (size_t i = 0; i < node->count; i++)
        parts = common_multiple(parts, in_exponent(node->children[i]));
    return parts;
}

/* Of a root or power itself. */
static ulong of_node(const struct math_node *node)
{
    if (node->kind == MATH_ROOT && node->children[1]->kind == MATH_NUMBER)
        return small(fmpq_numref(node->children[1]->value));
    if (node->kind == MATH_POWER)
        return in_exponent(node->children[1]);
    if (node->kind != MATH_FUNCTION)
        return node->kind == MATH_ABSOLUTE ? 2 : 1;
    if (node->function == MATH_EXP || (node->function >= MATH_SINH && node->function <= MATH_TANH))
        return in_exponent(node->children[0]);
    return node->function >= MATH_SIN && node->function <= MATH_ACOSH ? 2 : 1; /* sines are in square roots */
}

static ulong scan(const struct math_node *node)
{
    ulong below = 1, own = of_node(node);

    for (size_t i = 0; i < node->count; i++)
        below = common_multiple(below, scan(node->children[i]));
    /* A root of a root: of the product's degree. */
    bool nested = (node->kind == MATH_ROOT || node->kind == MATH_POWER) && own * below <= PARTS_MAX;
    return nested ? own * below : common_multiple(below, own);
}

/* Denominators of the angles of sines. */
static ulong of_angles(const struct math_node *node)
{
    ulong parts = 1;

    if (node->kind == MATH_FUNCTION && math_is_trigonometric(node->function))
        return in_exponent(node->children[0]);
    for (size_t i = 0; i < node->count; i++)
        parts = common_multiple(parts, of_angles(node->children[i]));
    return parts;
}

void math_form_choose_parts(struct math_form *form, const struct math_node *left, const struct math_node *right)
{
    form->parts = common_multiple(scan(left), scan(right));
    form->angle_parts = common_multiple(of_angles(left), of_angles(right));
    form->angle_parts = form->angle_parts <= ANGLE_PARTS_MAX ? form->angle_parts : 1;
}
