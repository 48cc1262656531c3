/* The form an answer was asked for: worked out, in lowest terms, in factors. */
#include "verifiers/math/forms.h"

#include <stdlib.h>

/* --- evaluated --- */

static bool is_lowest(const struct math_node *quotient)
{
    bool lowest;
    fmpz_t divisor;

    if (math_has_spare_signs(quotient) || !math_is_integer(quotient->children[0]) ||
        !math_is_integer(quotient->children[1]))
        return false;
    fmpz_init(divisor);
    fmpz_gcd(divisor, math_integer_of(quotient->children[0]), math_integer_of(quotient->children[1]));
    lowest = fmpz_is_one(divisor) && !fmpz_is_pm1(math_integer_of(quotient->children[1]));
    fmpz_clear(divisor);
    return lowest;
}

/* 2.5 × 10^3 */
static bool is_scientific(const struct math_node *node)
{
    const struct math_node *power;

    if (node->kind != MATH_PRODUCT || node->count != 2 || node->children[0]->kind != MATH_NUMBER)
        return false;
    power = node->children[1];
    return power->kind == MATH_POWER && math_is_integer(power->children[0]) && math_is_integer(power->children[1]) &&
           fmpz_equal_ui(math_integer_of(power->children[0]), 10) && power->children[0]->kind == MATH_NUMBER;
}

/* A number with nothing left to do. */
static bool is_literal(const struct math_node *node)
{
    switch ((int)node->kind) {
    case MATH_NUMBER:
    case MATH_BASED:
        return true;
    case MATH_NEGATE:
        return !math_has_spare_signs(node) && is_literal(node->children[0]);
    case MATH_PERCENT:
    case MATH_DEGREES:
    case MATH_QUANTITY:
        return is_literal(node->children[0]);
    case MATH_MIXED:
        return is_lowest(node->children[1]);
    case MATH_QUOTIENT:
        return is_lowest(node);
    default:
        return is_scientific(node);
    }
}

static bool is_rational(struct comparison *comparison, const struct math_node *node)
{
    bool rational;
    fmpq_t value;

    if (!math_is_scalar(node) || math_has_names(node))
        return false;
    fmpq_init(value);
    rational = math_decide_rational(comparison->decider, node, value);
    fmpq_clear(value);
    return rational;
}

static bool is_evaluated(struct comparison *comparison, const struct math_node *node)
{
    size_t numbers = 0;

    if (is_literal(node))
        return true;
    if (node->kind == MATH_OPERATOR || (node->kind == MATH_MATRIX && (node->flags & MATH_DETERMINANT)) ||
        is_rational(comparison, node) || math_has_spare_signs(node) || math_has_work_left(comparison, node) ||
        !math_is_in_lowest_terms(comparison, node))
        return false;
    for (size_t i = 0; i < node->count; i++) {
        if (!is_evaluated(comparison, node->children[i]))
            return false;
        numbers += is_literal(node->children[i]);
    }
    return numbers < 2 || (node->kind != MATH_SUM && node->kind != MATH_PRODUCT);
}

/* --- reduced --- */

#define ROOT_TRIALS 1000

static bool has_power_factor(const fmpz *radicand, unsigned degree)
{
    bool found = false;
    fmpz_t power;

    fmpz_init(power);
    for (unsigned base = 2; base < ROOT_TRIALS && !found; base++) {
        fmpz_set_ui(power, base);
        fmpz_pow_ui(power, power, degree);
        if (fmpz_cmp(power, radicand) > 0)
            break;
        found = fmpz_divisible(radicand, power);
    }
    fmpz_clear(power);
    return found;
}

static bool has_reduced_roots(const struct math_node *node)
{
    if (node->kind == MATH_ROOT && node->children[0]->kind == MATH_NUMBER && math_is_integer(node->children[0]) &&
        math_is_integer(node->children[1]) && fmpz_cmp_ui(math_integer_of(node->children[1]), 2) >= 0 &&
        fmpz_cmp_ui(math_integer_of(node->children[1]), 64) <= 0 &&
        has_power_factor(math_integer_of(node->children[0]), (unsigned)fmpz_get_ui(math_integer_of(node->children[1]))))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (!has_reduced_roots(node->children[i]))
            return false;
    return true;
}

/* --- factored --- */

#define FACTORS_MAX 32
#define EXPONENT_MAX 1000
#define MULTIPLICITY_MAX 1000000

struct factors {
    size_t count;
    const struct math_node *node[FACTORS_MAX];
    long multiplicity[FACTORS_MAX];
};

static bool same_up_to_sign(struct comparison *comparison, const struct math_node *left, const struct math_node *right)
{
    const struct math_node *negative;

    if (!math_is_scalar(left) || !math_is_scalar(right))
        return math_same_tree(left, right);
    if (math_decide_equal(comparison->decider, left, right) == MATH_EQUAL)
        return true;
    negative = math_build(comparison, MATH_NEGATE, 1, &right);
    return negative && math_decide_equal(comparison->decider, left, negative) == MATH_EQUAL;
}

static bool add_factor(struct comparison *comparison, struct factors *factors, const struct math_node *node,
                       long multiplicity)
{
    for (size_t i = 0; i < factors->count; i++) {
        if (same_up_to_sign(comparison, factors->node[i], node)) {
            factors->multiplicity[i] += multiplicity;
            return true;
        }
    }
    if (factors->count == FACTORS_MAX)
        return false;
    factors->node[factors->count] = node;
    factors->multiplicity[factors->count++] = multiplicity;
    return true;
}

static bool is_one(const struct math_node *node)
{
    return math_is_integer(node) && fmpz_is_pm1(math_integer_of(node));
}

static bool small_exponent(const struct math_node *node, long *ret_exponent)
{
    if (!math_is_integer(node) || fmpz_cmp_ui(math_integer_of(node), EXPONENT_MAX) > 0)
        return false;
    *ret_exponent = (long)fmpz_get_ui(math_integer_of(node)) * (node->kind == MATH_NEGATE ? -1 : 1);
    return true;
}

/* Nested powers multiply: their product must stay a number. */
static bool take_apart(struct comparison *comparison, const struct math_node *node, long multiplicity,
                       struct factors *factors)
{
    long exponent;

    if (labs(multiplicity) > MULTIPLICITY_MAX)
        return false;
    if (node->kind == MATH_NEGATE)
        return take_apart(comparison, node->children[0], multiplicity, factors);
    if (node->kind == MATH_PRODUCT) {
        for (size_t i = 0; i < node->count; i++)
            if (!take_apart(comparison, node->children[i], multiplicity, factors))
                return false;
        return true;
    }
    if (node->kind == MATH_QUOTIENT)
        return take_apart(comparison, node->children[0], multiplicity, factors) &&
               take_apart(comparison, node->children[1], -multiplicity, factors);
    if (node->kind == MATH_POWER && small_exponent(node->children[1], &exponent))
        return take_apart(comparison, node->children[0], multiplicity * exponent, factors);
    return is_one(node) || add_factor(comparison, factors, node, multiplicity);
}

static bool has_factors_of(struct comparison *comparison, const struct factors *left, const struct factors *right)
{
    for (size_t i = 0; i < left->count; i++) {
        bool found = left->multiplicity[i] == 0;
        for (size_t k = 0; k < right->count && !found; k++)
            found = left->multiplicity[i] == right->multiplicity[k] &&
                    same_up_to_sign(comparison, left->node[i], right->node[k]);
        if (!found)
            return false;
    }
    return true;
}

static bool is_factored_like(struct comparison *comparison, const struct math_node *reference,
                             const struct math_node *answer)
{
    struct factors wanted = {.count = 0};
    struct factors given = {.count = 0};

    return take_apart(comparison, reference, 1, &wanted) && take_apart(comparison, answer, 1, &given) &&
           has_factors_of(comparison, &wanted, &given) && has_factors_of(comparison, &given, &wanted);
}

/* --- all forms --- */

/* y = 2(x+1): the form is that of the right side. */
static const struct math_node *body_of(const struct math_node *node)
{
    while (node->kind == MATH_QUANTITY || (node->kind == MATH_RELATION && node->relations[0] == MATH_EQUALS))
        node = node->children[node->count - 1];
    return node;
}

bool math_has_form(struct math_decider *decider, const struct math_node *reference, const struct math_node *answer,
                   enum math_form form, const struct math_rules *rules)
{
    struct comparison comparison = {decider, rules};

    reference = body_of(reference);
    answer = body_of(answer);
    if (form == MATH_FORM_ANY || math_same_tree(reference, answer))
        return true;
    if (form == MATH_FORM_FACTORED)
        return is_factored_like(&comparison, reference, answer);
    if (is_rational(&comparison, reference) && !is_literal(answer))
        return false;
    return is_evaluated(&comparison, answer) && (form != MATH_FORM_REDUCED || has_reduced_roots(answer));
}
