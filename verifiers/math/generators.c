#include "verifiers/math/generators.h"

void math_form_init(struct math_form *form, struct math_decider *decider)
{
    form->decider = decider;
    form->ring.decider = decider;
    form->ring.variables = MATH_GENERATORS;
    form->count = 0;
    form->parts = 1;
    form->angle_parts = 1;
    form->divisions = false;
    fmpz_mpoly_ctx_init(form->ring.context, MATH_GENERATORS, ORD_LEX);
}

void math_form_clear(struct math_form *form)
{
    for (slong i = 0; i < form->count; i++) {
        if (!form->generators[i].has_fractions)
            continue;
        math_fraction_clear(&form->generators[i].argument);
        math_fraction_clear(&form->generators[i].exponent);
        math_fraction_clear(&form->generators[i].relation);
    }
    fmpz_mpoly_ctx_clear(form->ring.context);
}

/* --- the table --- */

static enum math_outcome same_fractions(struct math_form *form, const struct generator *one,
                                        const struct generator *other, bool *ret_same)
{
    *ret_same = !one->has_fractions;
    if (*ret_same)
        return MATH_VALUE;
    enum math_outcome outcome = math_form_equal(form, &one->argument, &other->argument, ret_same);
    if (!outcome && *ret_same)
        outcome = math_form_equal(form, &one->exponent, &other->exponent, ret_same);
    return outcome;
}

static bool same_words(const struct generator *one, const struct generator *other)
{
    return one->kind == other->kind && one->has_fractions == other->has_fractions && one->degree == other->degree &&
           one->function == other->function && text_same(one->name, other->name) &&
           (one->node == other->node || (one->node && other->node && math_same_tree(one->node, other->node)));
}

static void add_relation(struct math_form *form, struct generator *generator, const struct generator *wanted)
{
    if (!generator->has_fractions)
        return;
    math_fraction_init(&generator->argument, &form->ring);
    math_fraction_init(&generator->exponent, &form->ring);
    math_fraction_init(&generator->relation, &form->ring);
    math_fraction_set(&generator->argument, &wanted->argument);
    math_fraction_set(&generator->exponent, &wanted->exponent);
    if (generator->relation_degree)
        math_fraction_set(&generator->relation, &wanted->relation);
}

static enum math_outcome find_or_make(struct math_form *form, const struct generator *wanted, slong *ret_variable)
{
    bool same;

    for (slong i = 0; i < form->count; i++) {
        if (!same_words(&form->generators[i], wanted))
            continue;
        enum math_outcome outcome = same_fractions(form, &form->generators[i], wanted, &same);
        *ret_variable = i;
        if (outcome || same)
            return outcome;
    }
    if (form->count == MATH_GENERATORS)
        return MATH_TOO_LARGE_VALUE;
    *ret_variable = form->count;
    form->generators[form->count] = *wanted;
    add_relation(form, &form->generators[form->count], wanted);
    form->count++;
    return MATH_VALUE;
}

enum math_outcome math_form_generator(struct math_form *form, const struct generator *wanted,
                                      struct math_fraction *ret_value)
{
    slong variable;
    enum math_outcome outcome = find_or_make(form, wanted, &variable);

    if (!outcome)
        math_fraction_set_variable(ret_value, variable);
    return outcome;
}

bool math_form_is_free(const struct math_form *form, const fmpz_mpoly_t value)
{
    int used[MATH_GENERATORS];

    fmpz_mpoly_used_vars(used, value, form->ring.context);
    for (slong i = 0; i < form->count; i++)
        if (used[i] && form->generators[i].kind != GENERATOR_NAME)
            return false;
    return true;
}

/* --- relations --- */

/* The part of value in which the variable stands quotient times the degree and something more: that part, with the
 * something more. */
static void take_part(struct math_form *form, const fmpz_mpoly_t value, slong variable, ulong degree, ulong quotient,
                      fmpz_mpoly_t ret_part)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong exponents[MATH_GENERATORS];
    MATH_LOCAL_FMPZ(coefficient);

    fmpz_mpoly_zero(ret_part, context);
    for (slong i = 0; i < value->length; i++) {
        fmpz_mpoly_get_term_exp_ui(exponents, value, i, context);
        if (exponents[variable] / degree != quotient)
            continue;
        exponents[variable] %= degree;
        fmpz_mpoly_get_term_coeff_fmpz(coefficient, value, i, context);
        fmpz_mpoly_push_term_fmpz_ui(ret_part, coefficient, exponents, context);
    }
    fmpz_mpoly_sort_terms(ret_part, context);
    fmpz_mpoly_combine_like_terms(ret_part, context);
}

/* value · (relation's denominator)^highest, by Horner's rule. */
static enum math_outcome replace(struct math_form *form, fmpz_mpoly_t value, slong variable, ulong highest)
{
    const struct generator *generator = &form->generators[variable];
    MATH_LOCAL_FRACTION(work, &form->ring); /* above: the result; below: one part */
    MATH_LOCAL_FRACTION(scale, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    if (!math_spend(form->decider, 200 + 100 * value->length * (slong)(highest + 1)))
        return MATH_TOO_LARGE_VALUE;
    fmpz_mpoly_one(scale.above, form->ring.context);
    for (slong quotient = (slong)highest; quotient >= 0 && !outcome; quotient--) {
        outcome = math_polynomial_multiply(&form->ring, work.above, work.above, generator->relation.above);
        take_part(form, value, variable, generator->relation_degree, (ulong)quotient, work.below);
        if (!outcome)
            outcome = math_polynomial_multiply(&form->ring, work.below, work.below, scale.above);
        if (!outcome && quotient > 0)
            outcome = math_polynomial_multiply(&form->ring, scale.above, scale.above, generator->relation.below);
        fmpz_mpoly_add(work.above, work.above, work.below, form->ring.context);
    }
    fmpz_mpoly_swap(value, work.above, form->ring.context);
    fmpz_mpoly_one(work.below, form->ring.context);
    return outcome;
}

/* Both parts of the fraction, each multiplied by what the other needs. */
static enum math_outcome reduce_by(struct math_form *form, struct math_fraction *value, slong variable)
{
    const struct generator *generator = &form->generators[variable];
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong above = (ulong)FLINT_MAX(fmpz_mpoly_degree_si(value->above, variable, context), 0);
    ulong below = (ulong)FLINT_MAX(fmpz_mpoly_degree_si(value->below, variable, context), 0);
    enum math_outcome outcome = MATH_VALUE;

    above /= generator->relation_degree;
    below /= generator->relation_degree;
    if (above)
        outcome = replace(form, value->above, variable, above);
    if (below && !outcome)
        outcome = replace(form, value->below, variable, below);
    if (outcome || fmpz_mpoly_is_one(generator->relation.below, context))
        return outcome;
    for (; above < below && !outcome; above++)
        outcome = math_polynomial_multiply(&form->ring, value->above, value->above, generator->relation.below);
    for (; below < above && !outcome; below++)
        outcome = math_polynomial_multiply(&form->ring, value->below, value->below, generator->relation.below);
    return outcome;
}

enum math_outcome math_form_reduce(struct math_form *form, struct math_fraction *value)
{
    enum math_outcome outcome = MATH_VALUE;

    for (slong i = form->count - 1; i >= 0 && !outcome; i--)
        if (form->generators[i].relation_degree)
            outcome = reduce_by(form, value, i);
    if (!outcome && fmpz_mpoly_is_zero(value->below, form->ring.context))
        return MATH_NO_VALUE;
    return outcome;
}

enum math_outcome math_form_equal(struct math_form *form, const struct math_fraction *left,
                                  const struct math_fraction *right, bool *ret_equal)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    MATH_LOCAL_FRACTION(difference, &form->ring);

    *ret_equal =
        fmpz_mpoly_equal(left->above, right->above, context) && fmpz_mpoly_equal(left->below, right->below, context);
    if (*ret_equal)
        return MATH_VALUE;
    math_fraction_set(&difference, right);
    math_fraction_negate(&difference);
    enum math_outcome outcome = math_fraction_add(&difference, left);
    if (!outcome)
        outcome = math_form_reduce(form, &difference);
    *ret_equal = !outcome && fmpz_mpoly_is_zero(difference.above, context);
    return outcome;
}
