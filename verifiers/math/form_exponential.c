/* Exponentials and logarithms. e^(a + b) = e^a e^b holds for all numbers, so an exponential is a product of one
 * generator for each monomial of its exponent; a general power is the exponential of a multiple of a logarithm. */
#include "verifiers/math/angle.h"
#include "verifiers/math/factors.h"
#include "verifiers/math/form_value.h"

#include <flint/fmpz_vec.h>

#define EXPONENT_MAX 1000

/* --- constants --- */

enum math_outcome math_form_pi(struct math_form *form, struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_PI, .real = true};
    return math_form_generator(form, &wanted, ret_value);
}

enum math_outcome math_form_i(struct math_form *form, struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_I, .has_fractions = true, .relation_degree = 2};
    MATH_LOCAL_FRACTION(zero, &form->ring);
    MATH_LOCAL_FRACTION(minus, &form->ring);

    fmpz_mpoly_set_si(minus.above, -1, form->ring.context);
    wanted.argument = zero;
    wanted.exponent = zero;
    wanted.relation = minus;
    return math_form_generator(form, &wanted, ret_value);
}

enum math_outcome math_form_turn(struct math_form *form, const fmpq_t multiple, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(sine, &form->ring);
    MATH_LOCAL_FRACTION(i, &form->ring);
    MATH_LOCAL_FMPQ(shifted);

    fmpq_set_si(shifted, 1, 2);
    fmpq_add(shifted, shifted, multiple);
    struct math_node *of_sine = math_exact_sine(form->decider, multiple);
    struct math_node *of_cosine = math_exact_sine(form->decider, shifted);
    if (!of_sine || !of_cosine)
        return MATH_OTHERWISE;
    enum math_outcome outcome = math_form_value(form, of_cosine, ret_value);
    if (!outcome)
        outcome = math_form_value(form, of_sine, &sine);
    if (!outcome)
        outcome = math_form_i(form, &i);
    if (!outcome)
        outcome = math_form_multiply(form, &sine, &i);
    return outcome ? outcome : math_fraction_add(ret_value, &sine);
}

/* --- exponentials --- */

static enum math_outcome exponential_generator(struct math_form *form, const struct math_fraction *exponent,
                                               struct math_fraction *ret_value)
{
    struct generator wanted = {
        .kind = GENERATOR_EXPONENTIAL, .real = math_form_is_real(form, exponent), .has_fractions = true};
    MATH_LOCAL_FRACTION(zero, &form->ring);

    wanted.argument = *exponent;
    wanted.exponent = zero;
    return math_form_generator(form, &wanted, ret_value);
}

/* The only generator of a monomial, to the power 1; else -1. */
static slong single(struct math_form *form, const struct math_fraction *monomial)
{
    ulong exponents[MATH_GENERATORS];
    slong found = -1;

    if (!fmpz_mpoly_is_one(monomial->below, form->ring.context))
        return -1;
    fmpz_mpoly_get_term_exp_ui(exponents, monomial->above, 0, form->ring.context);
    for (slong i = 0; i < form->ring.variables; i++) {
        if (!exponents[i])
            continue;
        if (found >= 0 || exponents[i] > 1)
            return -1;
        found = i;
    }
    return found;
}

static bool is_i_pi(struct math_form *form, const struct math_fraction *monomial)
{
    ulong exponents[MATH_GENERATORS];
    int seen = 0;

    if (!fmpz_mpoly_is_one(monomial->below, form->ring.context))
        return false;
    fmpz_mpoly_get_term_exp_ui(exponents, monomial->above, 0, form->ring.context);
    for (slong i = 0; i < form->ring.variables; i++) {
        if (!exponents[i])
            continue;
        enum generator_kind kind = form->generators[i].kind;
        if (exponents[i] > 1 || (kind != GENERATOR_I && kind != GENERATOR_PI))
            return false;
        seen++;
    }
    return seen == 2;
}

/* e^(factor · ln a) = a^factor for a whole factor, or for a positive rational a. */
static enum math_outcome undo_logarithm(struct math_form *form, slong variable, const fmpq_t factor,
                                        struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(rational);
    const struct math_fraction *argument = &form->generators[variable].argument;
    bool positive = math_fraction_is_rational(argument, rational) && fmpq_sgn(rational) > 0;

    if (!positive && !fmpz_is_one(fmpq_denref(factor)) && fmpz_is_odd(fmpq_denref(factor)))
        return MATH_OTHERWISE;
    math_fraction_set(ret_value, argument);
    return math_form_rational_power(form, ret_value, factor);
}

/* e^(factor · monomial) */
static enum math_outcome exponential_term(struct math_form *form, const struct math_fraction *monomial,
                                          const fmpq_t factor, struct math_fraction *ret_value)
{
    slong variable = single(form, monomial);
    MATH_LOCAL_FMPQ(parts);

    if (variable >= 0 && form->generators[variable].kind == GENERATOR_LOG)
        return undo_logarithm(form, variable, factor, ret_value);
    if (is_i_pi(form, monomial)) {
        enum math_outcome outcome = math_form_turn(form, factor, ret_value);
        if (outcome != MATH_OTHERWISE)
            return outcome;
    }
    fmpq_mul_ui(parts, factor, form->parts);
    if (!fmpz_is_one(fmpq_denref(parts)) || fmpz_cmpabs(fmpq_numref(parts), (const fmpz[]){EXPONENT_MAX}) > 0)
        return MATH_OTHERWISE;
    enum math_outcome outcome = exponential_generator(form, monomial, ret_value);
    return outcome ? outcome : math_form_integer_power(form, ret_value, fmpz_get_si(fmpq_numref(parts)));
}

static enum math_outcome times_exponential_term(struct math_form *form, struct math_fraction *value,
                                                const struct math_fraction *exponent, slong i)
{
    MATH_LOCAL_FRACTION(monomial, &form->ring);
    MATH_LOCAL_FRACTION(factor, &form->ring);
    MATH_LOCAL_FMPQ(coefficient);

    math_form_split_term(form, exponent, i, &monomial, coefficient);
    enum math_outcome outcome = exponential_term(form, &monomial, coefficient, &factor);
    return outcome ? outcome : math_form_multiply(form, value, &factor);
}

enum math_outcome math_form_exponential(struct math_form *form, struct math_fraction *value)
{
    MATH_LOCAL_FRACTION(whole, &form->ring);
    MATH_LOCAL_FRACTION(rest, &form->ring);
    enum math_outcome outcome = math_form_split_whole(form, value, &whole, &rest);

    fmpz_mpoly_one(value->above, form->ring.context);
    fmpz_mpoly_one(value->below, form->ring.context);
    for (slong i = 0; i < whole.above->length && !outcome; i++)
        outcome = times_exponential_term(form, value, &whole, i);
    for (slong i = 0; i < rest.above->length && !outcome; i++)
        outcome = times_exponential_term(form, value, &rest, i);
    return outcome;
}

/* --- logarithms --- */

static enum math_outcome add_logarithm_of(struct math_form *form, struct math_fraction *sum,
                                          const struct math_fraction *argument, bool real, const fmpq_t factor)
{
    struct generator wanted = {.kind = GENERATOR_LOG, .real = real, .has_fractions = true};
    MATH_LOCAL_FRACTION(zero, &form->ring);
    MATH_LOCAL_FRACTION(term, &form->ring);

    wanted.argument = *argument;
    wanted.exponent = zero;
    enum math_outcome outcome = math_form_generator(form, &wanted, &term);
    if (!outcome)
        outcome = math_form_scale(form, &term, factor);
    return outcome ? outcome : math_fraction_add(sum, &term);
}

static enum math_outcome add_logarithm_of_rational(struct math_form *form, struct math_fraction *sum,
                                                   const fmpq_t value)
{
    _cleanup_(math_factors_clear) struct math_factors factors = {0};
    MATH_LOCAL_FRACTION(term, &form->ring);
    MATH_LOCAL_FRACTION(i, &form->ring);
    MATH_LOCAL_FMPQ(factor);
    enum math_outcome outcome = math_factors_of(form->decider, value, &factors);

    for (size_t n = 0; n < factors.count && !outcome; n++) {
        fmpz_mpoly_set_fmpz(term.above, &factors.bases[n], form->ring.context);
        fmpq_set_si(factor, factors.exponents[n], 1);
        outcome = add_logarithm_of(form, sum, &term, true, factor);
    }
    if (outcome || fmpq_sgn(value) > 0)
        return outcome;
    outcome = math_form_pi(form, &term);
    if (!outcome)
        outcome = math_form_i(form, &i);
    if (!outcome)
        outcome = math_form_multiply(form, &term, &i);
    return outcome ? outcome : math_fraction_add(sum, &term);
}

/* A monomial of numbers that are above 0: roots of primes, powers of e, pi. */
static bool is_positive_monomial(struct math_form *form, const fmpz_mpoly_t value, ulong *ret_exponents)
{
    if (value->length != 1 || fmpz_sgn(value->coeffs) < 0)
        return false;
    fmpz_mpoly_get_term_exp_ui(ret_exponents, value, 0, form->ring.context);
    for (slong i = 0; i < form->ring.variables; i++) {
        const struct generator *generator = &form->generators[i];
        if (!ret_exponents[i])
            continue;
        if (generator->kind != GENERATOR_POWER && generator->kind != GENERATOR_PI &&
            !(generator->kind == GENERATOR_EXPONENTIAL && generator->real))
            return false;
    }
    return true;
}

/* exponent · ln of the generator */
static enum math_outcome add_logarithm_of_generator(struct math_form *form, struct math_fraction *sum, slong variable,
                                                    slong exponent)
{
    const struct generator *generator = &form->generators[variable];
    MATH_LOCAL_FRACTION(term, &form->ring);
    MATH_LOCAL_FMPQ(factor);

    if (generator->kind == GENERATOR_PI) {
        fmpq_set_si(factor, exponent, 1);
        math_fraction_set_variable(&term, variable);
        return add_logarithm_of(form, sum, &term, true, factor);
    }
    fmpq_set_si(factor, exponent, form->parts);
    math_fraction_set(&term, &generator->argument);
    if (generator->kind == GENERATOR_POWER)
        return add_logarithm_of(form, sum, &term, true, factor);
    enum math_outcome outcome = math_form_scale(form, &term, factor);
    return outcome ? outcome : math_fraction_add(sum, &term);
}

static enum math_outcome logarithm_of_monomial(struct math_form *form, struct math_fraction *value, const ulong *above,
                                               const ulong *below)
{
    MATH_LOCAL_FRACTION(sum, &form->ring);
    MATH_LOCAL_FMPQ(content);

    math_form_take_content(value, content);
    enum math_outcome outcome = add_logarithm_of_rational(form, &sum, content);
    for (slong i = 0; i < form->ring.variables && !outcome; i++)
        if (above[i] != below[i])
            outcome = add_logarithm_of_generator(form, &sum, i, (slong)above[i] - (slong)below[i]);
    math_fraction_set(value, &sum);
    return outcome;
}

enum math_outcome math_form_logarithm(struct math_form *form, struct math_fraction *value)
{
    ulong above[MATH_GENERATORS], below[MATH_GENERATORS];
    MATH_LOCAL_FRACTION(sum, &form->ring);
    MATH_LOCAL_FMPQ(content);
    MATH_LOCAL_FMPQ(one);
    enum math_outcome outcome;

    fmpq_one(one);
    if (fmpz_mpoly_is_zero(value->above, form->ring.context))
        return MATH_NO_VALUE;
    if (is_positive_monomial(form, value->above, above) && is_positive_monomial(form, value->below, below))
        return logarithm_of_monomial(form, value, above, below);
    if (math_fraction_is_rational(value, content)) {
        outcome = add_logarithm_of_rational(form, &sum, content);
    } else {
        math_form_take_content(value, content);
        outcome = add_logarithm_of_rational(form, &sum, content);
        if (!outcome)
            outcome = add_logarithm_of(form, &sum, value, false, one);
    }
    math_fraction_set(value, &sum);
    return outcome;
}
