/* Absolute values, real and imaginary parts, rounding, choices. */
#include "verifiers/math/ball.h"
#include "verifiers/math/form_value.h"

#define BITS 128
#define ROUNDING_BITS 512

bool math_form_is_real(const struct math_form *form, const struct math_fraction *value)
{
    int above[MATH_GENERATORS];
    int below[MATH_GENERATORS];

    fmpz_mpoly_used_vars(above, value->above, form->ring.context);
    fmpz_mpoly_used_vars(below, value->below, form->ring.context);
    for (slong i = 0; i < form->count; i++)
        if ((above[i] || below[i]) && !form->generators[i].real)
            return false;
    return true;
}

/* --- a + b i --- */

static slong index_of_i(const struct math_form *form)
{
    for (slong i = 0; i < form->count; i++)
        if (form->generators[i].kind == GENERATOR_I)
            return i;
    return -1;
}

/* a + b i to a and b, where everything but i is real. */
static bool split(struct math_form *form, const fmpz_mpoly_t value, fmpz_mpoly_t ret_real, fmpz_mpoly_t ret_imaginary)
{
    const fmpz_mpoly_ctx_struct *context = form->ring.context;
    slong variable = index_of_i(form);
    ulong exponents[MATH_GENERATORS];
    MATH_LOCAL_FMPZ(coefficient);

    fmpz_mpoly_zero(ret_real, context);
    fmpz_mpoly_zero(ret_imaginary, context);
    for (slong n = 0; n < value->length; n++) {
        fmpz_mpoly_get_term_exp_ui(exponents, value, n, context);
        for (slong i = 0; i < form->count; i++)
            if (exponents[i] && i != variable && !form->generators[i].real)
                return false;
        bool imaginary = variable >= 0 && exponents[variable] == 1;
        if (imaginary)
            exponents[variable] = 0;
        fmpz_mpoly_get_term_coeff_fmpz(coefficient, value, n, context);
        fmpz_mpoly_push_term_fmpz_ui(imaginary ? ret_imaginary : ret_real, coefficient, exponents, context);
    }
    fmpz_mpoly_sort_terms(ret_real, context);
    fmpz_mpoly_sort_terms(ret_imaginary, context);
    return true;
}

/* The conjugate of the denominator into both parts, so that it becomes real. */
static enum math_outcome make_denominator_real(struct math_form *form, struct math_fraction *value)
{
    MATH_LOCAL_FRACTION(parts, &form->ring);
    MATH_LOCAL_FRACTION(i, &form->ring);
    MATH_LOCAL_FRACTION(conjugate, &form->ring);

    if (!split(form, value->below, parts.above, parts.below))
        return MATH_OTHERWISE;
    if (fmpz_mpoly_is_zero(parts.below, form->ring.context)) {
        fmpz_mpoly_one(parts.below, form->ring.context);
        return MATH_VALUE;
    }
    enum math_outcome outcome = math_form_i(form, &i);
    if (!outcome)
        outcome = math_polynomial_multiply(&form->ring, conjugate.above, i.above, parts.below);
    if (!outcome)
        fmpz_mpoly_sub(conjugate.above, parts.above, conjugate.above, form->ring.context);
    fmpz_mpoly_set(conjugate.below, conjugate.above, form->ring.context);
    fmpz_mpoly_one(parts.below, form->ring.context);
    return outcome ? outcome : math_form_multiply(form, value, &conjugate);
}

/* value = real + i · imaginary */
static enum math_outcome to_parts(struct math_form *form, struct math_fraction *value, struct math_fraction *ret_real,
                                  struct math_fraction *ret_imaginary)
{
    enum math_outcome outcome = make_denominator_real(form, value);

    if (outcome)
        return outcome;
    if (!split(form, value->above, ret_real->above, ret_imaginary->above))
        return MATH_OTHERWISE;
    fmpz_mpoly_set(ret_real->below, value->below, form->ring.context);
    fmpz_mpoly_set(ret_imaginary->below, value->below, form->ring.context);
    return MATH_VALUE;
}

/* --- absolute values --- */

static enum math_outcome absolute_generator(struct math_form *form, struct math_fraction *value)
{
    struct generator wanted = {.kind = GENERATOR_ABSOLUTE, .real = true, .has_fractions = true, .relation_degree = 2};
    MATH_LOCAL_FRACTION(outside, &form->ring);
    MATH_LOCAL_FRACTION(square, &form->ring);
    MATH_LOCAL_FRACTION(zero, &form->ring);
    MATH_LOCAL_FMPQ(content);

    math_form_take_content(value, content);
    if (fmpz_sgn(value->above->coeffs) < 0)
        math_fraction_negate(value);
    math_fraction_set(&square, value);
    enum math_outcome outcome = math_form_integer_power(form, &square, 2);
    wanted.argument = *value;
    wanted.exponent = zero;
    wanted.relation = square;
    if (!outcome)
        outcome = math_form_generator(form, &wanted, value);
    if (outcome)
        return outcome;
    math_fraction_set_rational(&outside, content);
    return math_form_multiply(form, value, &outside);
}

static enum math_outcome complex_absolute(struct math_form *form, struct math_fraction *value)
{
    MATH_LOCAL_FRACTION(real, &form->ring);
    MATH_LOCAL_FRACTION(imaginary, &form->ring);
    enum math_outcome outcome = to_parts(form, value, &real, &imaginary);

    if (!outcome)
        outcome = math_form_integer_power(form, &real, 2);
    if (!outcome)
        outcome = math_form_integer_power(form, &imaginary, 2);
    if (!outcome)
        outcome = math_fraction_add(&real, &imaginary);
    if (!outcome)
        outcome = math_form_reduce(form, &real);
    if (outcome)
        return outcome;
    math_fraction_set(value, &real);
    return math_form_square_root(form, value);
}

/* The sign of a real constant by its ball; 0 if that cannot say, or if it has names without values. */
static int sign_of(struct math_decider *decider, const struct math_node *node)
{
    MATH_LOCAL_ACB(ball);

    if (math_ball(decider, node, BITS, ball) || !acb_is_real(ball))
        return 0;
    return arb_is_positive(acb_realref(ball)) ? 1 : arb_is_negative(acb_realref(ball)) ? -1 : 0;
}

enum math_outcome math_form_absolute_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value)
{
    enum math_outcome outcome = math_form_value(form, node->children[0], ret_value);

    if (outcome || fmpz_mpoly_is_zero(ret_value->above, form->ring.context))
        return outcome;
    int sign = sign_of(form->decider, node->children[0]);
    if (sign < 0)
        math_fraction_negate(ret_value);
    if (sign)
        return MATH_VALUE;
    if (math_form_is_real(form, ret_value))
        return absolute_generator(form, ret_value);
    return complex_absolute(form, ret_value);
}

/* --- parts of complex numbers --- */

static enum math_outcome conjugate(struct math_form *form, struct math_fraction *real, struct math_fraction *imaginary,
                                   struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(i, &form->ring);
    enum math_outcome outcome = math_form_i(form, &i);

    math_fraction_negate(imaginary);
    if (!outcome)
        outcome = math_form_multiply(form, imaginary, &i);
    if (!outcome)
        outcome = math_fraction_add(imaginary, real);
    math_fraction_set(ret_value, imaginary);
    return outcome;
}

enum math_outcome math_form_part_node(struct math_form *form, const struct math_node *node,
                                      struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(real, &form->ring);
    MATH_LOCAL_FRACTION(imaginary, &form->ring);
    enum math_outcome outcome = MATH_OTHERWISE;

    if (!math_has_names(node)) /* names in it are perhaps complex */
        outcome = math_form_value(form, node->children[0], ret_value);
    if (!outcome)
        outcome = to_parts(form, ret_value, &real, &imaginary);
    if (outcome == MATH_OTHERWISE)
        return math_form_opaque_node(form, node, ret_value);
    if (outcome)
        return outcome;
    if (node->function == MATH_CONJUGATE)
        return conjugate(form, &real, &imaginary, ret_value);
    math_fraction_set(ret_value, node->function == MATH_RE ? &real : &imaginary);
    return MATH_VALUE;
}

/* --- rounding --- */

enum math_outcome math_form_rounded_node(struct math_form *form, const struct math_node *node,
                                         struct math_fraction *ret_value)
{
    MATH_LOCAL_ACB(ball);
    MATH_LOCAL_FMPQ(value);

    enum math_outcome outcome = math_ball(form->decider, node, ROUNDING_BITS, ball);
    if (outcome == MATH_OTHERWISE && math_has_names(node))
        return math_form_opaque_node(form, node, ret_value);
    if (outcome || !acb_is_real(ball) || !arb_get_unique_fmpz(fmpq_numref(value), acb_realref(ball)))
        return outcome ? outcome : MATH_OTHERWISE;
    math_fraction_set_rational(ret_value, value);
    return MATH_VALUE;
}

/* --- anything else --- */

enum math_outcome math_form_opaque_node(struct math_form *form, const struct math_node *node,
                                        struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_FUNCTION,
                               .degree = node->kind,
                               .function = node->kind == MATH_FUNCTION ? node->function : 0,
                               .has_fractions = true};
    MATH_LOCAL_FRACTION(one, &form->ring);
    MATH_LOCAL_FRACTION(other, &form->ring);

    if (node->count > 2)
        return MATH_OTHERWISE;
    enum math_outcome outcome = math_form_value(form, node->children[0], &one);
    if (!outcome && node->count == 2)
        outcome = math_form_value(form, node->children[1], &other);
    wanted.argument = one;
    wanted.exponent = other;
    wanted.real = node->kind != MATH_FUNCTION && math_form_is_real(form, &one);
    if (!outcome)
        outcome = math_form_generator(form, &wanted, ret_value);
    return outcome;
}
