/* Factorials, binomials, sums and products. Names in them stand for numbers for which all of it is defined. */
#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

#define SHIFT_MAX 60

/* --- factorials --- */

/* value! relative to the first factorial whose argument differs by a whole number: (n+2)! = n! (n+1) (n+2). */
static enum math_outcome shifted(struct math_form *form, const struct generator *known, slong variable, slong distance,
                                 struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    math_fraction_set_variable(ret_value, variable);
    for (slong i = distance > 0 ? 1 : distance + 1; i <= FLINT_MAX(distance, 0) && !outcome; i++) {
        math_fraction_set(&factor, &known->argument);
        outcome = math_form_add_si(form, &factor, i);
        if (!outcome)
            outcome = (distance > 0 ? math_form_multiply : math_form_divide)(form, ret_value, &factor);
    }
    return outcome;
}

/* MATH_VALUE: argument = known's + *ret_distance. */
static enum math_outcome distance_to(struct math_form *form, const struct generator *known,
                                     const struct math_fraction *argument, slong *ret_distance)
{
    MATH_LOCAL_FRACTION(difference, &form->ring);
    MATH_LOCAL_FMPQ(rational);

    math_fraction_set(&difference, &known->argument);
    math_fraction_negate(&difference);
    enum math_outcome outcome = math_fraction_add(&difference, argument);
    if (!outcome)
        outcome = math_form_reduce(form, &difference);
    if (outcome)
        return outcome;
    if (!math_fraction_is_rational(&difference, rational) || !fmpz_is_one(fmpq_denref(rational)) ||
        fmpz_cmpabs(fmpq_numref(rational), (const fmpz[]){SHIFT_MAX}) > 0)
        return MATH_OTHERWISE;
    *ret_distance = fmpz_get_si(fmpq_numref(rational));
    return MATH_VALUE;
}

static enum math_outcome factorial_of(struct math_form *form, const struct math_fraction *argument,
                                      struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_FACTORIAL, .has_fractions = true, .real = true};
    MATH_LOCAL_FRACTION(zero, &form->ring);
    slong distance = 0;

    for (slong i = 0; i < form->count; i++) {
        if (form->generators[i].kind != GENERATOR_FACTORIAL)
            continue;
        enum math_outcome outcome = distance_to(form, &form->generators[i], argument, &distance);
        if (!outcome)
            return shifted(form, &form->generators[i], i, distance, ret_value);
        if (outcome != MATH_OTHERWISE)
            return outcome;
    }
    wanted.argument = *argument;
    wanted.exponent = zero;
    return math_form_generator(form, &wanted, ret_value);
}

/* A number's factorial, or a name's. */
static enum math_outcome factorial_value(struct math_form *form, const struct math_fraction *argument,
                                         struct math_fraction *ret_value)
{
    MATH_LOCAL_FMPQ(rational);

    if (!math_fraction_is_rational(argument, rational))
        return factorial_of(form, argument, ret_value);
    enum math_outcome outcome = math_rational_factorial(form->decider, rational, false, rational);
    if (!outcome)
        math_fraction_set_rational(ret_value, rational);
    return outcome;
}

enum math_outcome math_form_factorial_node(struct math_form *form, const struct math_node *node,
                                           struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(argument, &form->ring);

    if (node->flags & MATH_DOUBLED)
        return math_form_opaque_node(form, node, ret_value);
    enum math_outcome outcome = math_form_value(form, node->children[0], &argument);
    return outcome ? outcome : factorial_value(form, &argument, ret_value);
}

/* --- binomials --- */

/* upper (upper - 1) … / lower! */
static enum math_outcome falling(struct math_form *form, const struct math_fraction *upper, slong lower,
                                 struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = MATH_VALUE;

    fmpz_mpoly_one(ret_value->above, form->ring.context);
    fmpz_mpoly_one(ret_value->below, form->ring.context);
    for (slong i = 0; i < lower && !outcome; i++) {
        math_fraction_set(&factor, upper);
        outcome = math_form_add_si(form, &factor, -i);
        if (!outcome)
            outcome = math_form_scale_si(form, &factor, 1, (ulong)i + 1);
        if (!outcome)
            outcome = math_form_multiply(form, ret_value, &factor);
    }
    return outcome;
}

static bool is_small(const struct math_fraction *value, slong *ret_integer)
{
    MATH_LOCAL_FMPQ(rational);

    if (!math_fraction_is_rational(value, rational) || !fmpz_is_one(fmpq_denref(rational)) || fmpq_sgn(rational) < 0 ||
        fmpz_cmp_ui(fmpq_numref(rational), SHIFT_MAX) > 0)
        return false;
    *ret_integer = fmpz_get_si(fmpq_numref(rational));
    return true;
}

/* upper! / (lower! rest!) */
static enum math_outcome by_factorials(struct math_form *form, const struct math_fraction *upper,
                                       const struct math_fraction *lower, const struct math_fraction *rest,
                                       struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(factor, &form->ring);
    enum math_outcome outcome = factorial_value(form, upper, ret_value);

    if (!outcome)
        outcome = factorial_value(form, lower, &factor);
    if (!outcome)
        outcome = math_form_divide(form, ret_value, &factor);
    if (!outcome)
        outcome = factorial_value(form, rest, &factor);
    return outcome ? outcome : math_form_divide(form, ret_value, &factor);
}

enum math_outcome math_form_binomial_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(upper, &form->ring);
    MATH_LOCAL_FRACTION(lower, &form->ring);
    MATH_LOCAL_FRACTION(rest, &form->ring);
    slong integer;
    enum math_outcome outcome = math_form_value(form, node->children[0], &upper);

    if (!outcome)
        outcome = math_form_value(form, node->children[1], &lower);
    if (outcome)
        return outcome;
    math_fraction_set(&rest, &lower);
    math_fraction_negate(&rest);
    outcome = math_fraction_add(&rest, &upper);
    if (outcome)
        return outcome;
    if (is_small(&lower, &integer) || is_small(&rest, &integer))
        return falling(form, &upper, integer, ret_value);
    return by_factorials(form, &upper, &lower, &rest, ret_value);
}

/* --- sums and products --- */

static enum math_outcome expand(struct math_form *form, const struct math_range *range, struct math_fraction *ret_value)
{
    MATH_LOCAL_FRACTION(term, &form->ring);
    MATH_LOCAL_FMPQ(index);
    struct math_binding binding = {range->index, index, form->decider->bindings};
    enum math_outcome outcome = MATH_VALUE;

    fmpz_mpoly_set_si(ret_value->above, range->product, form->ring.context);
    fmpz_mpoly_one(ret_value->below, form->ring.context);
    form->decider->bindings = &binding;
    for (slong i = range->from; i <= range->to && !outcome; i++) {
        fmpq_set_si(index, i, 1);
        outcome = math_form_value(form, range->body, &term);
        if (!outcome)
            outcome = range->product ? math_form_multiply(form, ret_value, &term) : math_fraction_add(ret_value, &term);
    }
    form->decider->bindings = binding.outer;
    return outcome;
}

enum math_outcome math_form_notation_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value)
{
    struct generator wanted = {.kind = GENERATOR_NOTATION, .node = node};
    return math_form_generator(form, &wanted, ret_value);
}

enum math_outcome math_form_operator_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value)
{
    struct math_range range;
    enum math_outcome outcome = math_range_of(form->decider, node, &range);

    if (!outcome)
        return expand(form, &range, ret_value);
    return outcome == MATH_OTHERWISE ? math_form_notation_node(form, node, ret_value) : outcome;
}
