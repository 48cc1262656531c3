/* Powers with rational exponents, and roots. */
#include "verifiers/math/factors.h"
#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

#include <flint/fmpz_vec.h>

/* --- of rationals --- */

/* base^(1/parts), its power parts being the base. */
static enum math_outcome prime_root(struct math_form *form, const fmpz_t base, struct math_fraction *ret_value)
{
    struct generator wanted = {
        .kind = GENERATOR_POWER, .real = true, .has_fractions = true, .relation_degree = form->parts};
    MATH_LOCAL_FRACTION(argument, &form->ring);
    MATH_LOCAL_FRACTION(one, &form->ring);

    fmpz_mpoly_set_fmpz(argument.above, base, form->ring.context);
    fmpz_mpoly_one(one.above, form->ring.context);
    wanted.argument = argument;
    wanted.relation = argument;
    wanted.exponent = one;
    return math_form_generator(form, &wanted, ret_value);
}

/* value · base^(exponent · numerator / denominator) */
static enum math_outcome times_prime_power(struct math_form *form, struct math_fraction *value, const fmpz_t base,
                                           slong exponent, const fmpq_t power)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    MATH_LOCAL_FMPQ(whole);
    MATH_LOCAL_FMPZ(parts);
    MATH_LOCAL_FMPZ(rest);

    fmpz_mul_si(parts, fmpq_numref(power), exponent);
    fmpz_mul_ui(parts, parts, form->parts / fmpz_get_ui(fmpq_denref(power)));
    ulong left = fmpz_fdiv_ui(parts, form->parts);
    fmpz_fdiv_q_ui(rest, parts, form->parts);
    fmpq_set_fmpz(whole, base);
    MATH_LOCAL_FMPQ(turns);
    fmpq_set_fmpz(turns, rest);
    enum math_outcome outcome = math_rational_power(form->decider, whole, turns, whole);
    if (!outcome)
        outcome = math_form_scale(form, value, whole);
    if (outcome || !left)
        return outcome;
    outcome = prime_root(form, base, &factor);
    if (!outcome)
        outcome = math_form_integer_power(form, &factor, (slong)left);
    return outcome ? outcome : math_form_multiply(form, value, &factor);
}

static enum math_outcome positive_power(struct math_form *form, const fmpq_t base, const fmpq_t exponent,
                                        struct math_fraction *ret_value)
{
    _cleanup_(math_factors_clear) struct math_factors factors = {0};

    if (fmpz_cmp_ui(fmpq_denref(exponent), form->parts) > 0 || form->parts % fmpz_get_ui(fmpq_denref(exponent)) != 0)
        return MATH_OTHERWISE;
    enum math_outcome outcome = math_factors_of(form->decider, base, &factors);
    fmpz_mpoly_one(ret_value->above, form->ring.context);
    fmpz_mpoly_one(ret_value->below, form->ring.context);
    for (size_t i = 0; i < factors.count && !outcome; i++)
        outcome = times_prime_power(form, ret_value, &factors.bases[i], factors.exponents[i], exponent);
    return outcome;
}

static enum math_outcome power_of_rational(struct math_form *form, const fmpq_t base, const fmpq_t exponent,
                                           struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(positive);
    MATH_LOCAL_FRACTION(turn, &form->ring);

    if (fmpq_is_zero(base)) {
        math_fraction_set_rational(ret_value, base);
        return fmpq_sgn(exponent) > 0 ? MATH_VALUE : MATH_NO_VALUE;
    }
    fmpq_abs(positive, base);
    enum math_outcome outcome = positive_power(form, positive, exponent, ret_value);
    if (outcome || fmpq_sgn(base) > 0)
        return outcome;
    if (fmpz_is_odd(fmpq_denref(exponent))) {
        if (fmpz_is_odd(fmpq_numref(exponent)))
            math_fraction_negate(ret_value);
        return MATH_VALUE;
    }
    outcome = math_form_turn(form, exponent, &turn);
    return outcome ? outcome : math_form_multiply(form, ret_value, &turn);
}

/* --- of anything --- */

void math_form_take_content(struct math_fraction *value, fmpq_t ret_content)
{
    const fmpz_mpoly_ctx_struct *context = value->ring->context;

    _fmpz_vec_content(fmpq_numref(ret_content), value->above->coeffs, value->above->length);
    _fmpz_vec_content(fmpq_denref(ret_content), value->below->coeffs, value->below->length);
    fmpz_mpoly_scalar_divexact_fmpz(value->above, value->above, fmpq_numref(ret_content), context);
    fmpz_mpoly_scalar_divexact_fmpz(value->below, value->below, fmpq_denref(ret_content), context);
    fmpq_canonicalise(ret_content);
}

static enum math_outcome root_generator(struct math_form *form, const struct math_fraction *radicand, ulong degree,
                                        struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_ROOT,
                               .degree = degree,
                               .real = degree % 2 == 1 && math_form_is_real(form, radicand),
                               .has_fractions = true,
                               .relation_degree = degree};
    MATH_LOCAL_FRACTION(zero, &form->ring);

    wanted.argument = *radicand;
    wanted.relation = *radicand;
    wanted.exponent = zero;
    return math_form_generator(form, &wanted, ret_value);
}

/* A monomial of roots of primes and powers of e, to a power that they allow: sqrt(sqrt 2) = 2^(1/4). */
static bool is_even_monomial(struct math_form *form, const fmpz_mpoly_t value, ulong degree, ulong *ret_exponents)
{
    if (value->length != 1)
        return false;
    fmpz_mpoly_get_term_exp_ui(ret_exponents, value, 0, form->ring.context);
    for (slong i = 0; i < form->ring.variables; i++) {
        const struct generator *generator = &form->generators[i];
        if (!ret_exponents[i])
            continue;
        bool positive =
            generator->kind == GENERATOR_POWER || (generator->kind == GENERATOR_EXPONENTIAL && generator->real);
        if (!positive || ret_exponents[i] % degree)
            return false;
    }
    return true;
}

static enum math_outcome monomial_root(struct math_form *form, const ulong *exponents, ulong degree,
                                       struct math_fraction *value, bool below)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    for (slong i = 0; i < form->ring.variables && !outcome; i++) {
        if (!exponents[i])
            continue;
        math_fraction_set_variable(&factor, i);
        outcome = math_form_integer_power(form, &factor, (slong)(exponents[i] / degree) * (below ? -1 : 1));
        if (!outcome)
            outcome = math_form_multiply(form, value, &factor);
    }
    return outcome;
}

/* value^(1/degree) */
static enum math_outcome take_root(struct math_form *form, struct math_fraction *value, ulong degree)
{
    MATH_LOCAL_FRACTION(outside, &form->ring);
    MATH_LOCAL_FMPQ(content);
    MATH_LOCAL_FMPQ(exponent);
    ulong above[MATH_GENERATORS], below[MATH_GENERATORS];
    enum math_outcome outcome;

    fmpq_set_si(exponent, 1, degree);
    bool simple =
        is_even_monomial(form, value->above, degree, above) && is_even_monomial(form, value->below, degree, below);
    if (simple) {
        fmpz_set(fmpq_numref(content), value->above->coeffs);
        fmpz_set(fmpq_denref(content), value->below->coeffs);
        fmpq_canonicalise(content);
        outcome = power_of_rational(form, content, exponent, value);
        if (!outcome)
            outcome = monomial_root(form, above, degree, value, false);
        return outcome ? outcome : monomial_root(form, below, degree, value, true);
    }
    math_form_take_content(value, content);
    outcome = power_of_rational(form, content, exponent, &outside);
    if (outcome)
        return outcome;
    MATH_LOCAL_FRACTION(radicand, &form->ring);
    math_fraction_set(&radicand, value);
    outcome = root_generator(form, &radicand, degree, value);
    return outcome ? outcome : math_form_multiply(form, value, &outside);
}

enum math_outcome math_form_rational_power(struct math_form *form, struct math_fraction *value, const fmpq_t exponent)
{
    MATH_LOCAL_FMPQ(rational);

    if (fmpz_bits(fmpq_numref(exponent)) > 30)
        return MATH_TOO_LARGE_VALUE;
    if (fmpz_bits(fmpq_denref(exponent)) > 10)
        return MATH_OTHERWISE;
    if (fmpz_is_one(fmpq_denref(exponent)))
        return math_form_integer_power(form, value, fmpz_get_si(fmpq_numref(exponent)));
    if (math_fraction_is_rational(value, rational))
        return power_of_rational(form, rational, exponent, value);
    enum math_outcome outcome = take_root(form, value, fmpz_get_ui(fmpq_denref(exponent)));
    return outcome ? outcome : math_form_integer_power(form, value, fmpz_get_si(fmpq_numref(exponent)));
}

enum math_outcome math_form_square_root(struct math_form *form, struct math_fraction *value)
{
    MATH_LOCAL_FMPQ(half);

    fmpq_set_si(half, 1, 2);
    return math_form_rational_power(form, value, half);
}

/* --- nodes --- */

/* base^exponent = e^(exponent · ln base), principal. An exponent that comes out rational is left to others: which root
 * is meant depends on how it is written. */
static enum math_outcome general_power(struct math_form *form, const struct math_node *node,
                                       struct math_fraction *ret_value)
{
    const struct math_node *base = node->children[0];
    MATH_LOCAL_FRACTION(exponent, &form->ring);
    MATH_LOCAL_FMPQ(rational);
    enum math_outcome outcome = math_form_value(form, node->children[1], &exponent);

    if (outcome)
        return outcome;
    if (base->kind == MATH_CONSTANT && base->constant == MATH_E) {
        math_fraction_set(ret_value, &exponent);
        return math_form_exponential(form, ret_value);
    }
    outcome = math_form_value(form, base, ret_value);
    if (outcome)
        return outcome;
    if (math_fraction_is_rational(&exponent, rational))
        return fmpz_is_one(fmpq_denref(rational)) ? math_form_rational_power(form, ret_value, rational)
                                                  : MATH_OTHERWISE;
    if (fmpz_mpoly_is_zero(ret_value->above, form->ring.context))
        return MATH_OTHERWISE;
    outcome = math_form_logarithm(form, ret_value);
    if (!outcome)
        outcome = math_form_multiply(form, ret_value, &exponent);
    return outcome ? outcome : math_form_exponential(form, ret_value);
}

enum math_outcome math_form_power_node(struct math_form *form, const struct math_node *node,
                                       struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(exponent);
    enum math_outcome outcome = math_rational(form->decider, node->children[1], exponent);

    bool exponential = node->children[0]->kind == MATH_CONSTANT && node->children[0]->constant == MATH_E;
    if (outcome == MATH_OTHERWISE || (exponential && !outcome))
        return general_power(form, node, ret_value);
    if (!outcome)
        outcome = math_form_value(form, node->children[0], ret_value);
    return outcome ? outcome : math_form_rational_power(form, ret_value, exponent);
}

enum math_outcome math_form_root_node(struct math_form *form, const struct math_node *node,
                                      struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(degree);
    enum math_outcome outcome = math_rational(form->decider, node->children[1], degree);

    if (outcome)
        return outcome;
    if (fmpq_is_zero(degree))
        return MATH_NO_VALUE;
    fmpq_inv(degree, degree);
    outcome = math_form_value(form, node->children[0], ret_value);
    return outcome ? outcome : math_form_rational_power(form, ret_value, degree);
}
