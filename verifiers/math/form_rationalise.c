/* Denominators without roots. */
#include "verifiers/math/generators.h"

#define DENOMINATOR_TERMS 8

static bool is_root_of_integer(const struct math_form *form, slong variable)
{
    const struct generator *generator = &form->generators[variable];

    return variable < form->count && (generator->kind == GENERATOR_POWER || generator->kind == GENERATOR_I);
}

/* factor into both parts, then the relations. */
static enum math_outcome extend(struct math_form *form, struct math_fraction *value, struct math_fraction *factor)
{
    fmpz_mpoly_set(factor->below, factor->above, form->ring.context);
    enum math_outcome outcome = math_fraction_multiply(value, factor);
    return outcome ? outcome : math_form_reduce(form, value);
}

/* Multiplies by the power of the generator that a denominator of one term lacks to its relation. */
static enum math_outcome fill_up(struct math_form *form, struct math_fraction *value, slong variable, ulong exponent)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);

    math_fraction_set_variable(&factor, variable);
    enum math_outcome outcome =
        math_fraction_power(&factor, (slong)(form->generators[variable].relation_degree - exponent));
    return outcome ? outcome : extend(form, value, &factor);
}

/* a + b r to a - b r, r being a square root; false if the generator is not in it as such. */
static bool conjugate(struct math_form *form, const fmpz_mpoly_t value, slong variable, fmpz_mpoly_t ret_conjugate)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong exponents[MATH_GENERATORS], degree = form->generators[variable].relation_degree;
    bool found = false;
    MATH_LOCAL_FMPZ(coefficient);

    fmpz_mpoly_set(ret_conjugate, value, context);
    for (slong i = 0; i < value->length; i++) {
        fmpz_mpoly_get_term_exp_ui(exponents, value, i, context);
        if (!exponents[variable])
            continue;
        if (2 * exponents[variable] != degree)
            return false;
        found = true;
        fmpz_mpoly_get_term_coeff_fmpz(coefficient, value, i, context);
        fmpz_neg(coefficient, coefficient);
        fmpz_mpoly_set_term_coeff_fmpz(ret_conjugate, i, coefficient, context);
    }
    return found;
}

void math_form_cancel_monomial(struct math_form *form, struct math_fraction *value)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong common[MATH_GENERATORS], exponents[MATH_GENERATORS];
    bool any = false;
    MATH_LOCAL_FRACTION(monomial, &form->ring);

    fmpz_mpoly_get_term_exp_ui(common, value->below, 0, context);
    for (slong part = 0; part < 2; part++) {
        const fmpz_mpoly_struct *polynomial = part ? value->above : value->below;
        for (slong i = 0; i < polynomial->length; i++) {
            fmpz_mpoly_get_term_exp_ui(exponents, polynomial, i, context);
            for (slong n = 0; n < form->ring.variables; n++)
                common[n] = FLINT_MIN(common[n], exponents[n]);
        }
    }
    for (slong n = 0; n < form->ring.variables; n++)
        any = any || common[n];
    if (!any || value->above->length == 0)
        return;
    fmpz_mpoly_set_coeff_ui_ui(monomial.above, 1, common, context);
    fmpz_mpoly_div(value->above, value->above, monomial.above, context);
    fmpz_mpoly_div(value->below, value->below, monomial.above, context);
}

enum math_outcome math_form_rationalise(struct math_form *form, struct math_fraction *value)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    ulong exponents[MATH_GENERATORS];
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    if (fmpz_mpoly_is_fmpz(value->below, context))
        return MATH_VALUE;
    if (!math_spend(form->decider, 100 * (value->above->length + value->below->length)))
        return MATH_TOO_LARGE_VALUE;
    math_form_cancel_monomial(form, value);
    for (slong i = 0; i < form->count && !outcome && value->below->length <= DENOMINATOR_TERMS; i++) {
        if (!is_root_of_integer(form, i))
            continue;
        fmpz_mpoly_get_term_exp_ui(exponents, value->below, 0, context);
        if (value->below->length == 1 && exponents[i])
            outcome = fill_up(form, value, i, exponents[i]);
        else if (value->below->length > 1 && conjugate(form, value->below, i, factor.above))
            outcome = extend(form, value, &factor);
    }
    return outcome;
}
