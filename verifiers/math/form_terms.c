/* A fraction as a sum of monomials with rational coefficients, for what turns sums into products. */
#include "verifiers/math/form_value.h"

#include <flint/fmpz_vec.h>

#define DIVIDED_TERMS 64

enum math_outcome math_form_split_whole(struct math_form *form, const struct math_fraction *value,
                                        struct math_fraction *ret_whole, struct math_fraction *ret_rest)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;

    math_fraction_set(ret_rest, value);
    fmpz_mpoly_zero(ret_whole->above, context);
    if (value->below->length == 1 || value->above->length > DIVIDED_TERMS || value->below->length > DIVIDED_TERMS)
        return MATH_VALUE;
    if (!math_spend(form->decider, 100 * value->above->length * value->below->length))
        return MATH_TOO_LARGE_VALUE;
    fmpz_mpoly_divrem(ret_whole->above, ret_rest->above, value->above, value->below, context);
    return math_polynomial_check(ret_whole->above);
}

void math_form_split_term(struct math_form *form, const struct math_fraction *value, slong i,
                          struct math_fraction *ret_monomial, fmpq_t ret_coefficient)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    MATH_LOCAL_FMPZ(content);

    _fmpz_vec_content(content, value->below->coeffs, value->below->length);
    fmpz_mpoly_get_term_coeff_fmpz(fmpq_numref(ret_coefficient), value->above, i, context);
    fmpz_set(fmpq_denref(ret_coefficient), content);
    fmpq_canonicalise(ret_coefficient);
    fmpz_mpoly_get_term_monomial(ret_monomial->above, value->above, i, context);
    fmpz_mpoly_scalar_divexact_fmpz(ret_monomial->below, value->below, content, context);
    math_form_cancel_monomial(form, ret_monomial);
}
