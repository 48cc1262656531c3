/* Sine and cosine. An angle is a sum of whole multiples of monomials over angle_parts; the addition theorems and powers
 * of cos + i sin bring it to the sine and cosine of each, so that sin 2x is 2 sin x cos x. */
#include "verifiers/math/angle.h"
#include "verifiers/math/form_value.h"

#define MULTIPLE_MAX 12

/* --- generators --- */

static enum math_outcome wave_generator(struct math_form *form, enum generator_kind kind,
                                        const struct math_fraction *argument, const struct math_fraction *relation,
                                        struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = kind,
                               .real = math_form_is_real(form, argument),
                               .has_fractions = true,
                               .relation_degree = relation ? 2 : 0};
    MATH_LOCAL_FRACTION(zero, &form->ring);

    wanted.argument = *argument;
    wanted.exponent = zero;
    if (relation)
        wanted.relation = *relation;
    return math_form_generator(form, &wanted, ret_value);
}

struct waves {
    struct math_fraction sine, cosine;
};

static void waves_init(struct waves *waves, struct math_form *form)
{
    math_fraction_init(&waves->sine, &form->ring);
    math_fraction_init(&waves->cosine, &form->ring);
    fmpz_mpoly_one(waves->cosine.above, form->ring.context);
}

static void waves_clear(struct waves *waves)
{
    math_fraction_clear(&waves->sine);
    math_fraction_clear(&waves->cosine);
}

#define LOCAL_WAVES(name)                                                                                              \
    _cleanup_(waves_clear) struct waves name;                                                                          \
    waves_init(&(name), form)

/* The cosine is always made first: the sine's square is reduced to it. */
static enum math_outcome waves_of(struct math_form *form, struct math_fraction *angle, struct waves *ret_waves)
{
    MATH_LOCAL_FRACTION(relation, &form->ring);
    bool negative = fmpz_sgn(angle->above->coeffs) < 0;

    if (negative)
        math_fraction_negate(angle);
    enum math_outcome outcome = wave_generator(form, GENERATOR_COSINE, angle, NULL, &ret_waves->cosine);
    if (outcome)
        return outcome;
    math_fraction_set(&relation, &ret_waves->cosine);
    outcome = math_form_integer_power(form, &relation, 2);
    math_fraction_negate(&relation);
    if (!outcome)
        outcome = math_form_add_si(form, &relation, 1);
    if (!outcome)
        outcome = wave_generator(form, GENERATOR_SINE, angle, &relation, &ret_waves->sine);
    if (negative)
        math_fraction_negate(&ret_waves->sine);
    return outcome;
}

/* --- multiples of pi --- */

/* multiple · pi between 0 and pi/4 */
static enum math_outcome waves_of_multiple(struct math_form *form, const fmpq_t multiple, struct waves *ret_waves)
{
    MATH_LOCAL_FRACTION(angle, &form->ring);
    enum math_outcome outcome = math_form_pi(form, &angle);

    if (!outcome)
        outcome = math_form_scale(form, &angle, multiple);
    if (!outcome) /* generators are of angles over angle_parts */
        outcome = math_form_scale_si(form, &angle, (slong)form->angle_parts, 1);
    return outcome ? outcome : waves_of(form, &angle, ret_waves);
}

/* sin(multiple · pi), brought to between 0 and pi/4. */
static enum math_outcome sine_of_multiple(struct math_form *form, const fmpq_t multiple,
                                          struct math_fraction *ret_value)
{
    LOCAL_WAVES(waves);
    MATH_LOCAL_FMPQ(rest);
    MATH_LOCAL_FMPZ(turns);
    struct math_node *exact = math_exact_sine(form->decider, multiple);

    if (exact)
        return math_form_value(form, exact, ret_value);
    fmpz_fdiv_q(turns, fmpq_numref(multiple), fmpq_denref(multiple)); /* sin(x + pi) = -sin x */
    fmpq_sub_fmpz(rest, multiple, turns);
    if (fmpq_cmp(rest, (const fmpq[]){{1, 2}}) > 0) {
        fmpq_neg(rest, rest);
        fmpq_add_si(rest, rest, 1);
    }
    bool upper = fmpq_cmp(rest, (const fmpq[]){{1, 4}}) > 0;
    if (upper)
        fmpq_sub(rest, (const fmpq[]){{1, 2}}, rest);
    enum math_outcome outcome = waves_of_multiple(form, rest, &waves);
    math_fraction_set(ret_value, upper ? &waves.cosine : &waves.sine);
    if (fmpz_is_odd(turns))
        math_fraction_negate(ret_value);
    return outcome;
}

static enum math_outcome both_of_multiple(struct math_form *form, const fmpq_t multiple, struct waves *ret_waves)
{
    MATH_LOCAL_FMPQ(shifted);
    enum math_outcome outcome = sine_of_multiple(form, multiple, &ret_waves->sine);

    fmpq_add(shifted, multiple, (const fmpq[]){{1, 2}});
    return outcome ? outcome : sine_of_multiple(form, shifted, &ret_waves->cosine);
}

/* --- sums of angles --- */

/* waves := of the sum of both angles */
static enum math_outcome add_angle(struct math_form *form, struct waves *waves, const struct waves *other)
{
    MATH_LOCAL_FRACTION(sine, &form->ring);
    MATH_LOCAL_FRACTION(cosine, &form->ring);

    math_fraction_set(&sine, &waves->sine);
    math_fraction_set(&cosine, &waves->cosine);
    enum math_outcome outcome = math_form_multiply(form, &waves->sine, &other->cosine);
    if (!outcome)
        outcome = math_form_multiply(form, &waves->cosine, &other->cosine);
    if (!outcome)
        outcome = math_form_multiply(form, &cosine, &other->sine);
    if (!outcome)
        outcome = math_form_multiply(form, &sine, &other->sine);
    math_fraction_negate(&sine);
    if (!outcome)
        outcome = math_fraction_add(&waves->sine, &cosine);
    return outcome ? outcome : math_fraction_add(&waves->cosine, &sine);
}

static bool is_pi(struct math_form *form, const struct math_fraction *monomial)
{
    MATH_LOCAL_FRACTION(pi, &form->ring);

    return fmpz_mpoly_is_one(monomial->below, form->ring.context) && !math_form_pi(form, &pi) &&
           fmpz_mpoly_equal(monomial->above, pi.above, form->ring.context);
}

/* coefficient · monomial */
static enum math_outcome waves_of_term(struct math_form *form, struct math_fraction *monomial, fmpq_t coefficient,
                                       struct waves *ret_waves)
{
    LOCAL_WAVES(once);

    if (is_pi(form, monomial))
        return both_of_multiple(form, coefficient, ret_waves);
    fmpq_mul_ui(coefficient, coefficient, form->angle_parts);
    if (!fmpz_is_one(fmpq_denref(coefficient)) ||
        fmpz_cmpabs(fmpq_numref(coefficient), (const fmpz[]){MULTIPLE_MAX}) > 0) {
        enum math_outcome outcome = math_form_scale(form, monomial, coefficient);
        return outcome ? outcome : waves_of(form, monomial, ret_waves);
    }
    slong times = fmpz_get_si(fmpq_numref(coefficient));
    enum math_outcome outcome = waves_of(form, monomial, &once);
    for (slong i = 0; i < labs(times) && !outcome; i++)
        outcome = add_angle(form, ret_waves, &once);
    if (times < 0)
        math_fraction_negate(&ret_waves->sine);
    return outcome;
}

static enum math_outcome add_terms(struct math_form *form, struct waves *waves, const struct math_fraction *angle)
{
    MATH_LOCAL_FRACTION(monomial, &form->ring);
    MATH_LOCAL_FMPQ(coefficient);
    enum math_outcome outcome = MATH_VALUE;

    for (slong i = 0; i < angle->above->length && !outcome; i++) {
        LOCAL_WAVES(term);
        math_form_split_term(form, angle, i, &monomial, coefficient);
        outcome = waves_of_term(form, &monomial, coefficient, &term);
        if (!outcome)
            outcome = add_angle(form, waves, &term);
    }
    return outcome;
}

static enum math_outcome waves_of_node(struct math_form *form, const struct math_node *node, struct waves *ret_waves)
{
    MATH_LOCAL_FRACTION(angle, &form->ring);
    MATH_LOCAL_FRACTION(whole, &form->ring);
    MATH_LOCAL_FRACTION(rest, &form->ring);
    MATH_LOCAL_FMPQ(multiple);
    enum math_outcome outcome = math_multiple_of_pi(form->decider, node, multiple);

    if (!outcome)
        return both_of_multiple(form, multiple, ret_waves);
    if (outcome == MATH_OTHERWISE)
        outcome = math_form_value(form, node, &angle);
    if (!outcome)
        outcome = math_form_split_whole(form, &angle, &whole, &rest);
    if (!outcome)
        outcome = add_terms(form, ret_waves, &whole);
    return outcome ? outcome : add_terms(form, ret_waves, &rest);
}

enum math_outcome math_form_trigonometric_node(struct math_form *form, const struct math_node *node,
                                               struct math_fraction *ret_value)
{
    LOCAL_WAVES(waves);
    enum math_function function = node->function;
    enum math_outcome outcome = waves_of_node(form, node->children[0], &waves);

    if (outcome)
        return outcome;
    if (function == MATH_SIN || function == MATH_TAN)
        math_fraction_set(ret_value, &waves.sine);
    else if (function == MATH_COS || function == MATH_COT)
        math_fraction_set(ret_value, &waves.cosine);
    else
        fmpz_mpoly_one(ret_value->above, form->ring.context);
    if (function == MATH_TAN || function == MATH_SEC)
        return math_form_divide(form, ret_value, &waves.cosine);
    return function == MATH_COT || function == MATH_CSC ? math_form_divide(form, ret_value, &waves.sine) : MATH_VALUE;
}
