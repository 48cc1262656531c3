#include "verifiers/math/rational.h"

#include <flint/fmpz_vec.h>

/* A word operation costs one unit; so these are words, with a small sum for the call itself. Divisions by the greatest
 * common divisor are the dear part: quadratic for small numbers, some forty multiplications for large ones. */
static int64_t words(const fmpz_t value)
{
    return (int64_t)fmpz_size(value) + 1;
}

static int64_t words_of(const fmpq_t value)
{
    return words(fmpq_numref(value)) + words(fmpq_denref(value));
}

static int64_t cost(const fmpq_t left, const fmpq_t right)
{
    int64_t size = words_of(left) + words_of(right);
    bool integers = fmpz_is_one(fmpq_denref(left)) && fmpz_is_one(fmpq_denref(right));

    return 20 + size * (integers ? 60 : size < 100 ? 20 + size : 400);
}

static enum math_outcome within_bits(const fmpq_t value)
{
    bool fits = fmpz_bits(fmpq_numref(value)) <= MATH_VALUE_BITS && fmpz_bits(fmpq_denref(value)) <= MATH_VALUE_BITS;

    return fits ? MATH_VALUE : MATH_TOO_LARGE_VALUE;
}

typedef void (*operation)(fmpq_t, const fmpq_t, const fmpq_t);

static enum math_outcome operate(struct math_decider *decider, operation run, fmpq_t value, const fmpq_t other)
{
    if (!math_spend(decider, cost(value, other)))
        return MATH_TOO_LARGE_VALUE;
    run(value, value, other);
    return within_bits(value);
}

/* --- powers and roots --- */

static enum math_outcome integer_power(struct math_decider *decider, const fmpq_t base, const fmpz_t exponent,
                                       fmpq_t ret_value)
{
    ulong bits = FLINT_MAX(fmpz_bits(fmpq_numref(base)), fmpz_bits(fmpq_denref(base)));

    if (fmpz_is_zero(exponent) && fmpq_is_zero(base))
        return MATH_NO_VALUE; /* 0^0: no two books agree */
    if (fmpz_sgn(exponent) < 0 && fmpq_is_zero(base))
        return MATH_NO_VALUE;
    if (bits <= 1 && fmpz_is_pm1(fmpq_numref(base))) {
        fmpq_set_si(ret_value, fmpz_sgn(fmpq_numref(base)) < 0 && fmpz_is_odd(exponent) ? -1 : 1, 1);
        return MATH_VALUE;
    }
    if (fmpq_is_zero(base)) {
        fmpq_zero(ret_value);
        return MATH_VALUE;
    }
    if (fmpz_cmpabs(exponent, (const fmpz[]){MATH_VALUE_BITS}) > 0)
        return MATH_TOO_LARGE_VALUE;
    slong power = fmpz_get_si(exponent);
    ulong result_bits = bits * (ulong)labs(power);
    if (result_bits > MATH_VALUE_BITS || !math_spend(decider, 20 + (int64_t)result_bits * 2))
        return MATH_TOO_LARGE_VALUE;
    fmpq_pow_si(ret_value, base, power);
    return MATH_VALUE;
}

/* The exact root of an integer, if there is one. Odd roots of negative integers are negative. */
static bool integer_root(const fmpz_t value, ulong degree, fmpz_t ret_root)
{
    if (fmpz_sgn(value) < 0 && degree % 2 == 0)
        return false;
    return fmpz_root(ret_root, value, (slong)degree);
}

static enum math_outcome root(struct math_decider *decider, const fmpq_t radicand, ulong degree, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(result);

    if (!math_spend(decider, 50 + words_of(radicand) * words_of(radicand)))
        return MATH_TOO_LARGE_VALUE;
    if (!integer_root(fmpq_numref(radicand), degree, fmpq_numref(result)) ||
        !integer_root(fmpq_denref(radicand), degree, fmpq_denref(result)))
        return MATH_OTHERWISE;
    fmpq_swap(ret_value, result);
    return MATH_VALUE;
}

enum math_outcome math_rational_power(struct math_decider *decider, const fmpq_t base, const fmpq_t exponent,
                                      fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(rooted);

    if (fmpz_is_one(fmpq_denref(exponent)))
        return integer_power(decider, base, fmpq_numref(exponent), ret_value);
    if (fmpq_is_zero(base) && fmpq_sgn(exponent) < 0)
        return MATH_NO_VALUE;
    if (fmpz_cmp_ui(fmpq_denref(exponent), MATH_VALUE_BITS) > 0)
        return fmpq_is_zero(base) || fmpq_is_one(base) ? fmpq_set(ret_value, base), MATH_VALUE : MATH_OTHERWISE;
    enum math_outcome outcome = root(decider, base, fmpz_get_ui(fmpq_denref(exponent)), rooted);
    return outcome ? outcome : integer_power(decider, rooted, fmpq_numref(exponent), ret_value);
}

/* --- counting --- */

enum math_outcome math_rational_factorial(struct math_decider *decider, const fmpq_t value, bool doubled,
                                          fmpq_t ret_value)
{
    if (!fmpz_is_one(fmpq_denref(value)) || fmpq_sgn(value) < 0)
        return MATH_NO_VALUE;
    if (fmpz_cmp_ui(fmpq_numref(value), 20000) > 0)
        return MATH_TOO_LARGE_VALUE;
    ulong n = fmpz_get_ui(fmpq_numref(value));
    ulong result_words = n * FLINT_BIT_COUNT(n) / 64;
    if (result_words * 64 > MATH_VALUE_BITS ||
        !math_spend(decider, 20 + (int64_t)(n * (doubled ? result_words / 2 : 40))))
        return MATH_TOO_LARGE_VALUE;
    fmpz_one(fmpq_denref(ret_value));
    if (!doubled) {
        fmpz_fac_ui(fmpq_numref(ret_value), n);
        return MATH_VALUE;
    }
    fmpz_one(fmpq_numref(ret_value));
    for (ulong factor = n; factor > 1; factor -= 2)
        fmpz_mul_ui(fmpq_numref(ret_value), fmpq_numref(ret_value), factor);
    return MATH_VALUE;
}

/* Falling powers, so that a rational or negative upper number is fine: C(-1/2, 3). */
static enum math_outcome falling(struct math_decider *decider, const fmpq_t upper, ulong lower, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(factor);
    MATH_LOCAL_FMPQ(result);
    enum math_outcome outcome = MATH_VALUE;

    fmpq_one(result);
    for (ulong i = 0; i < lower && !outcome; i++) {
        fmpq_sub_ui(factor, upper, i);
        fmpq_div_fmpz(factor, factor, (const fmpz[]){(slong)i + 1});
        outcome = operate(decider, fmpq_mul, result, factor);
    }
    fmpq_swap(ret_value, result);
    return outcome;
}

static enum math_outcome binomial_of(struct math_decider *decider, const fmpq_t upper, const fmpq_t lower,
                                     fmpq_t ret_value)
{
    bool natural = fmpz_is_one(fmpq_denref(upper)) && fmpq_sgn(upper) >= 0;

    if (!fmpz_is_one(fmpq_denref(lower)) || fmpq_sgn(lower) < 0)
        return MATH_NO_VALUE;
    if (natural && fmpq_cmp(lower, upper) > 0) {
        fmpq_zero(ret_value);
        return MATH_VALUE;
    }
    MATH_LOCAL_FMPQ(rest);
    fmpq_sub(rest, upper, lower);
    const fmpq *fewer = natural && fmpq_cmp(rest, lower) < 0 ? rest : lower;
    if (fmpz_cmp_ui(fmpq_numref(fewer), 20000) > 0)
        return MATH_TOO_LARGE_VALUE;
    ulong few = fmpz_get_ui(fmpq_numref(fewer));
    if (!natural || !fmpz_abs_fits_ui(fmpq_numref(upper)))
        return falling(decider, upper, few, ret_value);
    ulong result_bits = few * fmpz_bits(fmpq_numref(upper));
    if (result_bits > MATH_VALUE_BITS || !math_spend(decider, 20 + (int64_t)(few * (100 + result_bits / 64))))
        return MATH_TOO_LARGE_VALUE;
    fmpz_bin_uiui(fmpq_numref(ret_value), fmpz_get_ui(fmpq_numref(upper)), few);
    fmpz_one(fmpq_denref(ret_value));
    return MATH_VALUE;
}

/* --- functions of rationals --- */

static void to_integer(fmpq_t value, bool up)
{
    (up ? fmpz_cdiv_q : fmpz_fdiv_q)(fmpq_numref(value), fmpq_numref(value), fmpq_denref(value));
    fmpz_one(fmpq_denref(value));
}

static enum math_outcome common(fmpq_t value, const fmpq_t other, void (*run)(fmpz_t, const fmpz_t, const fmpz_t))
{
    if (!fmpz_is_one(fmpq_denref(value)) || !fmpz_is_one(fmpq_denref(other)))
        return MATH_NO_VALUE;
    run(fmpq_numref(value), fmpq_numref(value), fmpq_numref(other));
    return MATH_VALUE;
}

/* a mod m: from 0 up to |m| */
static enum math_outcome modulo(fmpq_t value, const fmpq_t modulus)
{
    MATH_LOCAL_FMPQ(quotient);
    MATH_LOCAL_FMPQ(positive);

    if (fmpq_is_zero(modulus))
        return MATH_NO_VALUE;
    fmpq_abs(positive, modulus);
    fmpq_div(quotient, value, positive);
    to_integer(quotient, false);
    fmpq_mul(quotient, quotient, positive);
    fmpq_sub(value, value, quotient);
    return MATH_VALUE;
}

static enum math_outcome combine(struct math_decider *decider, enum math_function function, fmpq_t value,
                                 const fmpq_t other)
{
    if (!math_spend(decider, 4 * cost(value, other)))
        return MATH_TOO_LARGE_VALUE;
    if (function == MATH_GCD)
        return common(value, other, fmpz_gcd);
    if (function == MATH_LCM)
        return common(value, other, fmpz_lcm);
    if (function == MATH_MOD)
        return modulo(value, other);
    int sign = fmpq_cmp(value, other);
    if (function == MATH_MIN ? sign > 0 : sign < 0)
        fmpq_set(value, other);
    return MATH_VALUE;
}

static enum math_outcome of_one(enum math_function function, fmpq_t value)
{
    switch ((int)function) {
    case MATH_SIGN:
        fmpq_set_si(value, fmpq_sgn(value), 1);
        return MATH_VALUE;
    case MATH_RE:
    case MATH_CONJUGATE:
        return MATH_VALUE;
    case MATH_IM:
        fmpq_zero(value);
        return MATH_VALUE;
    default:
        return MATH_OTHERWISE;
    }
}

/* 7^{7^{7}} mod 10: the power itself may be too large. MATH_OTHERWISE: no power of whole numbers. */
static enum math_outcome power_modulo(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    const struct math_node *power = node->children[0];
    MATH_LOCAL_FMPQ(exponent);
    MATH_LOCAL_FMPQ(modulus);

    if (power->kind != MATH_POWER || math_rational(decider, power->children[0], ret_value) ||
        math_rational(decider, power->children[1], exponent) || math_rational(decider, node->children[1], modulus))
        return MATH_OTHERWISE;
    if (!fmpz_is_one(fmpq_denref(ret_value)) || !fmpz_is_one(fmpq_denref(exponent)) ||
        !fmpz_is_one(fmpq_denref(modulus)) || fmpq_sgn(exponent) <= 0 || fmpq_sgn(modulus) <= 0)
        return MATH_OTHERWISE;
    if (!math_spend(decider, cost(ret_value, modulus) * (1 + (int64_t)fmpz_bits(fmpq_numref(exponent)))))
        return MATH_TOO_LARGE_VALUE;
    fmpz_powm(fmpq_numref(ret_value), fmpq_numref(ret_value), fmpq_numref(exponent), fmpq_numref(modulus));
    return MATH_VALUE;
}

static enum math_outcome function_value(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    bool several = node->function >= MATH_GCD && node->function <= MATH_MOD;
    bool single = node->function >= MATH_SIGN && node->function <= MATH_CONJUGATE;
    MATH_LOCAL_FMPQ(other);

    if (!several && !single)
        return MATH_OTHERWISE;
    enum math_outcome outcome = node->function == MATH_MOD ? power_modulo(decider, node, ret_value) : MATH_OTHERWISE;
    if (outcome != MATH_OTHERWISE)
        return outcome;
    outcome = math_rational(decider, node->children[0], ret_value);
    if (outcome || single)
        return outcome ? outcome : of_one(node->function, ret_value);
    for (size_t i = 1; i < node->count && !outcome; i++) {
        outcome = math_rational(decider, node->children[i], other);
        if (!outcome)
            outcome = combine(decider, node->function, ret_value, other);
    }
    return outcome;
}

/* --- nodes --- */

static enum math_outcome fold(struct math_decider *decider, const struct math_node *node, operation run,
                              fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(other);
    enum math_outcome worst = math_rational(decider, node->children[0], ret_value);

    for (size_t i = 1; i < node->count && worst < MATH_NO_VALUE; i++) {
        enum math_outcome outcome = math_rational(decider, node->children[i], other);
        if (!outcome && !worst)
            outcome = operate(decider, run, ret_value, other);
        worst = math_worse(worst, outcome);
    }
    return worst;
}

static enum math_outcome sum(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    return fold(decider, node, fmpq_add, ret_value);
}

static enum math_outcome product(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    return fold(decider, node, fmpq_mul, ret_value);
}

/* Both children, whatever the first one says: an undefined second one counts. */
static enum math_outcome two(struct math_decider *decider, const struct math_node *node, fmpq_t left, fmpq_t right)
{
    enum math_outcome outcome = math_rational(decider, node->children[0], left);

    return outcome == MATH_NO_VALUE ? outcome : math_worse(outcome, math_rational(decider, node->children[1], right));
}

static enum math_outcome quotient(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(denominator);

    fmpq_one(denominator);
    enum math_outcome outcome = two(decider, node, ret_value, denominator);
    if (fmpq_is_zero(denominator))
        return MATH_NO_VALUE;
    return outcome ? outcome : operate(decider, fmpq_div, ret_value, denominator);
}

static enum math_outcome negate(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    enum math_outcome outcome = math_rational(decider, node->children[0], ret_value);

    fmpq_neg(ret_value, ret_value);
    return outcome;
}

static enum math_outcome power(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(exponent);

    enum math_outcome outcome = two(decider, node, ret_value, exponent);
    return outcome ? outcome : math_rational_power(decider, ret_value, exponent, ret_value);
}

static enum math_outcome rooted(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(degree);

    enum math_outcome outcome = two(decider, node, ret_value, degree);
    if (outcome)
        return outcome;
    if (fmpq_is_zero(degree))
        return MATH_NO_VALUE;
    fmpq_inv(degree, degree);
    return math_rational_power(decider, ret_value, degree, ret_value);
}

static enum math_outcome factorial(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    enum math_outcome outcome = math_rational(decider, node->children[0], ret_value);

    return outcome ? outcome
                   : math_rational_factorial(decider, ret_value, (node->flags & MATH_DOUBLED) != 0, ret_value);
}

static enum math_outcome binomial(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(lower);

    enum math_outcome outcome = two(decider, node, ret_value, lower);
    return outcome ? outcome : binomial_of(decider, ret_value, lower, ret_value);
}

static enum math_outcome rounded(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    enum math_outcome outcome = math_rational(decider, node->children[0], ret_value);

    if (!outcome && node->kind == MATH_ABSOLUTE)
        fmpq_abs(ret_value, ret_value);
    else if (!outcome)
        to_integer(ret_value, node->kind == MATH_CEILING);
    return outcome;
}

static enum math_outcome scaled(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    if (node->kind == MATH_DEGREES && decider->degrees_are_angles)
        return MATH_OTHERWISE;
    enum math_outcome outcome = math_rational(decider, node->children[0], ret_value);
    if (!outcome && node->kind == MATH_PERCENT)
        fmpq_div_fmpz(ret_value, ret_value, (const fmpz[]){100});
    return outcome;
}

static enum math_outcome range_value(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    struct math_range range;
    MATH_LOCAL_FMPQ(index);
    MATH_LOCAL_FMPQ(term);
    struct math_binding binding = {.outer = decider->bindings};
    enum math_outcome outcome = math_range_of(decider, node, &range);

    if (outcome)
        return outcome;
    fmpq_set_si(ret_value, range.product, 1);
    binding.name = range.index;
    binding.value = index;
    decider->bindings = &binding;
    for (slong i = range.from; i <= range.to && !outcome; i++) {
        fmpq_set_si(index, i, 1);
        outcome = math_rational(decider, range.body, term);
        if (!outcome)
            outcome = operate(decider, range.product ? fmpq_mul : fmpq_add, ret_value, term);
    }
    decider->bindings = binding.outer;
    return outcome;
}

static enum math_outcome number(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    if (!math_spend(decider, words_of(node->value)))
        return MATH_TOO_LARGE_VALUE;
    fmpq_set(ret_value, node->value);
    return MATH_VALUE;
}

static enum math_outcome name(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    const fmpq *value = math_bound_value(decider, node->text);

    if (!value)
        return MATH_OTHERWISE;
    fmpq_set(ret_value, value);
    return MATH_VALUE;
}

static enum math_outcome (*const by_kind[MATH_KINDS])(struct math_decider *, const struct math_node *, fmpq_t) = {
    [MATH_NUMBER] = number,
    [MATH_BASED] = number,
    [MATH_MIXED] = sum,
    [MATH_NAME] = name,
    [MATH_SUM] = sum,
    [MATH_PRODUCT] = product,
    [MATH_QUOTIENT] = quotient,
    [MATH_NEGATE] = negate,
    [MATH_POWER] = power,
    [MATH_ROOT] = rooted,
    [MATH_FACTORIAL] = factorial,
    [MATH_BINOMIAL] = binomial,
    [MATH_ABSOLUTE] = rounded,
    [MATH_FLOOR] = rounded,
    [MATH_CEILING] = rounded,
    [MATH_DEGREES] = scaled,
    [MATH_PERCENT] = scaled,
    [MATH_FUNCTION] = function_value,
    [MATH_OPERATOR] = range_value,
};

enum math_outcome math_rational(struct math_decider *decider, const struct math_node *node, fmpq_t ret_value)
{
    if (!math_spend(decider, 10))
        return MATH_TOO_LARGE_VALUE;
    return by_kind[node->kind] ? by_kind[node->kind](decider, node, ret_value) : MATH_OTHERWISE;
}
