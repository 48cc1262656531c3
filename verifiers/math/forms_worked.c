#include "verifiers/math/forms.h"

#include "server/base/cleanup.h"

/* --- signs --- */

bool math_has_spare_signs(const struct math_node *node)
{
    const struct math_node *body = math_without_sign(node);
    size_t signs = node->kind == MATH_NEGATE;

    if (body->kind == MATH_NEGATE)
        return true;
    if (body->kind != MATH_QUOTIENT && body->kind != MATH_PRODUCT)
        return false;
    for (size_t i = 0; i < body->count; i++)
        signs += body->children[i]->kind == MATH_NEGATE;
    return signs > 1;
}

/* --- terms --- */

#define FACTORS_MAX 16

/* The irrational factors of a term. */
struct factors {
    size_t upper_count, lower_count;
    const struct math_node *upper[FACTORS_MAX];
    const struct math_node *lower[FACTORS_MAX];
    bool overflow;
};

static void split(const struct math_node *node, bool below, struct factors *factors)
{
    size_t *count = below ? &factors->lower_count : &factors->upper_count;

    node = math_without_sign(node);
    if (node->kind == MATH_PRODUCT) {
        for (size_t i = 0; i < node->count; i++)
            split(node->children[i], below, factors);
    } else if (node->kind == MATH_QUOTIENT) {
        split(node->children[0], below, factors);
        split(node->children[1], !below, factors);
    } else if (node->kind != MATH_NUMBER && node->kind != MATH_MIXED) {
        factors->overflow |= *count == FACTORS_MAX;
        if (*count < FACTORS_MAX)
            (below ? factors->lower : factors->upper)[(*count)++] = node;
    }
}

/* In any order. */
static bool same_factors(size_t count, const struct math_node *const *left, const struct math_node *const *right)
{
    bool taken[FACTORS_MAX] = {false};

    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < count && (taken[k] || !math_same_tree(left[i], right[k])))
            k++;
        if (k == count)
            return false;
        taken[k] = true;
    }
    return true;
}

/* \pi and 2\pi, \frac{x}{2} and -x. Two numbers are somebody else's. */
static bool can_be_collected(const struct math_node *left, const struct math_node *right)
{
    struct factors one = {.upper_count = 0};
    struct factors other = {.upper_count = 0};

    split(left, false, &one);
    split(right, false, &other);
    return !one.overflow && !other.overflow && one.upper_count + one.lower_count > 0 &&
           one.upper_count == other.upper_count && one.lower_count == other.lower_count &&
           same_factors(one.upper_count, one.upper, other.upper) &&
           same_factors(one.lower_count, one.lower, other.lower);
}

#define PAIR_WORK 64

static bool has_terms_to_collect(struct comparison *comparison, const struct math_node *sum)
{
    if (sum->kind != MATH_SUM)
        return false;
    if (!math_decider_spend(comparison->decider, (int64_t)(sum->count * sum->count) * PAIR_WORK))
        return true;
    for (size_t i = 1; i < sum->count; i++)
        for (size_t k = 0; k < i; k++)
            if (can_be_collected(sum->children[i], sum->children[k]))
                return true;
    return false;
}

/* --- powers and products of numbers --- */

static bool is_imaginary_unit(const struct math_node *node)
{
    return node->kind == MATH_CONSTANT && node->constant == MATH_I;
}

static bool is_algebraic(const struct math_node *node)
{
    switch ((int)node->kind) {
    case MATH_NUMBER:
    case MATH_MIXED:
        return true;
    case MATH_SUM:
    case MATH_PRODUCT:
    case MATH_QUOTIENT:
    case MATH_NEGATE:
    case MATH_POWER:
    case MATH_ROOT:
        for (size_t i = 0; i < node->count; i++)
            if (!is_algebraic(node->children[i]))
                return false;
        return true;
    default:
        return is_imaginary_unit(node);
    }
}

static bool has_imaginary_unit(const struct math_node *node)
{
    bool found = is_imaginary_unit(node);

    for (size_t i = 0; i < node->count && !found; i++)
        found = has_imaginary_unit(node->children[i]);
    return found;
}

/* 2 + i, 2i, 1 + \sqrt5: what its powers and its products with its like are multiplied out to. */
static bool multiplies_out(const struct math_node *node)
{
    return is_algebraic(node) && (math_without_sign(node)->kind == MATH_SUM || has_imaginary_unit(node));
}

static bool has_product_to_multiply_out(const struct math_node *node)
{
    size_t factors = 0;

    if (node->kind == MATH_POWER)
        return math_is_integer(node->children[1]) && multiplies_out(node->children[0]);
    if (node->kind != MATH_PRODUCT)
        return false;
    for (size_t i = 0; i < node->count; i++)
        factors += multiplies_out(node->children[i]);
    return factors > 1;
}

/* --- functions --- */

static const struct math_node *integer(struct comparison *comparison, slong value)
{
    struct math_node *node;
    fmpq_t number;

    fmpq_init(number);
    fmpq_set_si(number, labs(value), 1);
    node = math_number_create(comparison->rules->arena, number);
    fmpq_clear(number);
    return node && value < 0 ? math_build(comparison, MATH_NEGATE, 1, (const struct math_node *[]){node}) : node;
}

/* numerator · what / denominator */
static const struct math_node *multiple(struct comparison *comparison, slong numerator, const struct math_node *what,
                                        slong denominator)
{
    const struct math_node *upper =
        math_build(comparison, MATH_PRODUCT, 2, (const struct math_node *[]){integer(comparison, numerator), what});

    return math_build(comparison, MATH_QUOTIENT, 2,
                      (const struct math_node *[]){upper, integer(comparison, denominator)});
}

static bool is_value(struct comparison *comparison, const struct math_node *node, const struct math_node *value)
{
    return value && math_decide_equal(comparison->decider, node, value) == MATH_EQUAL;
}

/* \arctan 1: a multiple of \pi / 12, \pi / 10 or \pi / 8 */
static bool is_known_arc(struct comparison *comparison, const struct math_node *node)
{
    static const slong denominators[] = {12, 10, 8};
    struct math_node *pi = math_node_create(comparison->rules->arena, MATH_CONSTANT, 0);

    if (!pi)
        return false;
    pi->constant = MATH_PI;
    for (size_t i = 0; i < ARRAY_LENGTH(denominators); i++)
        for (slong k = -denominators[i]; k <= denominators[i]; k++)
            if (is_value(comparison, node, multiple(comparison, k, pi, denominators[i])))
                return true;
    return false;
}

/* \sin 60^\circ: \sqrt3 / 2 and its like; rational values are somebody else's. */
static bool is_known_ratio(struct comparison *comparison, const struct math_node *node)
{
    static const struct {
        slong radicand, denominator;
    } ratios[] = {{2, 2}, {3, 2}, {3, 1}, {3, 3}, {2, 1}, {12, 3}};

    for (size_t i = 0; i < ARRAY_LENGTH(ratios); i++) {
        const struct math_node *root =
            math_build(comparison, MATH_ROOT, 2,
                       (const struct math_node *[]){integer(comparison, ratios[i].radicand), integer(comparison, 2)});
        for (slong sign = -1; sign <= 1; sign += 2)
            if (is_value(comparison, node, multiple(comparison, sign, root, ratios[i].denominator)))
                return true;
    }
    return false;
}

static bool has_known_value(struct comparison *comparison, const struct math_node *node)
{
    if (node->kind != MATH_FUNCTION || math_has_names(node) || !math_is_scalar(node))
        return false;
    if (node->function >= MATH_ASIN && node->function <= MATH_ACSC)
        return is_known_arc(comparison, node);
    return node->function >= MATH_SIN && node->function <= MATH_CSC && is_known_ratio(comparison, node);
}

bool math_has_work_left(struct comparison *comparison, const struct math_node *node)
{
    return has_terms_to_collect(comparison, node) || has_product_to_multiply_out(node) ||
           has_known_value(comparison, node);
}
