#include "verifiers/math/angle.h"

#include "verifiers/math/rational.h"

/* --- multiples of pi --- */

static enum math_outcome add_all(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple)
{
    MATH_LOCAL_FMPQ(term);
    enum math_outcome outcome = math_multiple_of_pi(decider, node->children[0], ret_multiple);

    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_multiple_of_pi(decider, node->children[i], term);
        if (!outcome)
            fmpq_add(ret_multiple, ret_multiple, term);
    }
    return outcome;
}

/* One factor is a multiple, the others are rational. */
static enum math_outcome multiply_all(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple)
{
    MATH_LOCAL_FMPQ(factor);
    bool found = false;

    fmpq_one(ret_multiple);
    for (size_t i = 0; i < node->count; i++) {
        enum math_outcome outcome = math_rational(decider, node->children[i], factor);
        if (outcome == MATH_OTHERWISE && !found) {
            found = true;
            outcome = math_multiple_of_pi(decider, node->children[i], factor);
        }
        if (outcome)
            return outcome;
        fmpq_mul(ret_multiple, ret_multiple, factor);
    }
    return found ? MATH_VALUE : MATH_OTHERWISE;
}

static enum math_outcome divide(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple)
{
    MATH_LOCAL_FMPQ(divisor);
    enum math_outcome outcome = math_multiple_of_pi(decider, node->children[0], ret_multiple);

    if (!outcome)
        outcome = math_rational(decider, node->children[1], divisor);
    if (!outcome && fmpq_is_zero(divisor))
        return MATH_NO_VALUE;
    if (!outcome)
        fmpq_div(ret_multiple, ret_multiple, divisor);
    return outcome;
}

static enum math_outcome degrees(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple)
{
    enum math_outcome outcome = math_rational(decider, node->children[0], ret_multiple);

    fmpq_div_fmpz(ret_multiple, ret_multiple, (const fmpz[]){180});
    return outcome;
}

enum math_outcome math_multiple_of_pi(struct math_decider *decider, const struct math_node *node, fmpq_t ret_multiple)
{
    enum math_outcome outcome;

    if (!math_spend(decider, 10))
        return MATH_TOO_LARGE_VALUE;
    switch ((int)node->kind) {
    case MATH_CONSTANT:
        fmpq_one(ret_multiple);
        return node->constant == MATH_PI ? MATH_VALUE : MATH_OTHERWISE;
    case MATH_SUM:
        return add_all(decider, node, ret_multiple);
    case MATH_PRODUCT:
        return multiply_all(decider, node, ret_multiple);
    case MATH_QUOTIENT:
        return divide(decider, node, ret_multiple);
    case MATH_DEGREES:
        return degrees(decider, node, ret_multiple);
    case MATH_NEGATE:
        outcome = math_multiple_of_pi(decider, node->children[0], ret_multiple);
        fmpq_neg(ret_multiple, ret_multiple);
        return outcome;
    default:
        outcome = math_rational(decider, node, ret_multiple);
        return outcome || fmpq_is_zero(ret_multiple) ? outcome : MATH_OTHERWISE;
    }
}

/* --- exact sines --- */

/* sin(step · pi/120) = t / divisor or sqrt(t) / divisor with t = a sqrt(m) + b sqrt(n). From the pentagon
 * (sin 18° = (sqrt 5 - 1)/4) and halving. */
struct exact_sine {
    int step;
    bool nested;
    int a, m, b, n, divisor;
};

static const struct exact_sine sines[MATH_EXACT_SINES] = {
    {0, false, 0, 1, 0, 1, 1},  {10, false, 1, 6, -1, 2, 4}, {12, false, 1, 5, -1, 1, 4}, {15, true, 2, 1, -1, 2, 2},
    {20, false, 1, 1, 0, 1, 2}, {24, true, 10, 1, -2, 5, 4}, {30, false, 1, 2, 0, 1, 2},  {36, false, 1, 5, 1, 1, 4},
    {40, false, 1, 3, 0, 1, 2}, {45, true, 2, 1, 1, 2, 2},   {48, true, 10, 1, 2, 5, 4},  {50, false, 1, 6, 1, 2, 4},
    {60, false, 1, 1, 0, 1, 1},
};

static struct math_node *integer(struct math_arena *arena, int value)
{
    MATH_LOCAL_FMPQ(number);

    fmpq_set_si(number, abs(value), 1);
    struct math_node *node = math_number_create(arena, number);
    return value < 0 ? math_node_of(arena, MATH_NEGATE, 1, &node) : node;
}

static struct math_node *pair(struct math_arena *arena, enum math_kind kind, struct math_node *left,
                              struct math_node *right)
{
    struct math_node *children[] = {left, right};

    return math_node_of(arena, kind, 2, children);
}

static struct math_node *square_root(struct math_arena *arena, struct math_node *radicand)
{
    return pair(arena, MATH_ROOT, radicand, integer(arena, 2));
}

static struct math_node *surd(struct math_arena *arena, int factor, int radicand)
{
    if (radicand == 1)
        return integer(arena, factor);
    struct math_node *root = square_root(arena, integer(arena, radicand));
    return factor == 1 ? root : pair(arena, MATH_PRODUCT, integer(arena, factor), root);
}

static struct math_node *write_sine(struct math_arena *arena, const struct exact_sine *sine, bool negative)
{
    struct math_node *value = surd(arena, sine->a, sine->m);

    if (sine->b)
        value = pair(arena, MATH_SUM, value, surd(arena, sine->b, sine->n));
    if (sine->nested)
        value = square_root(arena, value);
    if (sine->divisor != 1)
        value = pair(arena, MATH_QUOTIENT, value, integer(arena, sine->divisor));
    return negative ? math_node_of(arena, MATH_NEGATE, 1, &value) : value;
}

static struct math_node *written_sine(struct math_decider *decider, size_t index, bool negative)
{
    struct math_node **place = &decider->sines[index][negative];

    if (!*place)
        *place = write_sine(decider->arena, &sines[index], negative);
    return *place;
}

struct math_node *math_exact_sine(struct math_decider *decider, const fmpq_t multiple)
{
    MATH_LOCAL_FMPQ(scaled);

    fmpq_mul_si(scaled, multiple, 120);
    if (!fmpz_is_one(fmpq_denref(scaled)))
        return NULL;
    int step = (int)fmpz_fdiv_ui(fmpq_numref(scaled), 240);
    bool negative = step > 120;
    step = negative ? step - 120 : step;
    step = step > 60 ? 120 - step : step;
    for (size_t i = 0; i < ARRAY_LENGTH(sines); i++)
        if (sines[i].step == step)
            return written_sine(decider, i, negative && step);
    return NULL;
}
