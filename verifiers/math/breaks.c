#include "verifiers/math/breaks.h"

#include "verifiers/math/form_value.h"
#include "verifiers/math/rational.h"

#include <arb_fmpz_poly.h>
#include <flint/fmpz_mpoly_factor.h>

#define TERMS_MAX 24
#define BITS_MAX 512
#define DEGREE_MAX 12
#define FACTORING_WORK 50000
#define ROOTS_WORK 2000 /* times the degree squared */
#define PRECISION 128
#define CHOICE_MAX 8

struct finder {
    struct math_form *form;
    struct math_breaks *breaks;
    bool squares; /* only factors that occur more than once count */
    bool below;   /* only the denominator counts */
};

void math_breaks_clear(struct math_breaks *breaks)
{
    for (size_t i = 0; i < breaks->count; i++)
        fmpq_clear(&breaks->at[i]);
}

static bool add_break(struct math_breaks *breaks, struct text name, const fmpq_t at)
{
    for (size_t i = 0; i < breaks->count; i++)
        if (text_same(breaks->name[i], name) && fmpq_equal(&breaks->at[i], at))
            return true;
    if (breaks->count == MATH_BREAKS)
        return false;
    breaks->name[breaks->count] = name;
    fmpq_init(&breaks->at[breaks->count]);
    fmpq_set(&breaks->at[breaks->count++], at);
    return true;
}

/* --- zeros of an irreducible polynomial --- */

/* x - y + z: no constant, nothing but 1 and -1. */
static bool is_difference(const fmpz_mpoly_t factor, const fmpz_mpoly_ctx_t context)
{
    MATH_LOCAL_FMPZ(constant);

    fmpz_mpoly_get_coeff_fmpz_ui(constant, factor, (const ulong[MATH_GENERATORS]){0}, context);
    for (slong i = 0; i < factor->length; i++)
        if (!fmpz_is_pm1(factor->coeffs + i))
            return false;
    return fmpz_is_zero(constant) && fmpz_mpoly_total_degree_si(factor, context) == 1;
}

static bool add_real_roots(struct finder *finder, const fmpz_poly_t polynomial, struct text name)
{
    slong degree = fmpz_poly_degree(polynomial);
    bool fits = true;
    MATH_LOCAL_FMPQ(at);

    if (degree > DEGREE_MAX || !math_spend(finder->form->decider, ROOTS_WORK * degree * degree))
        return false;
    acb_ptr roots = _acb_vec_init(degree);
    arb_fmpz_poly_complex_roots(roots, polynomial, 0, 64);
    for (slong i = 0; i < degree && fits; i++) {
        if (!acb_is_real(roots + i))
            continue;
        arf_get_fmpq(at, arb_midref(acb_realref(roots + i)));
        fits = add_break(finder->breaks, name, at);
    }
    _acb_vec_clear(roots, degree);
    return fits;
}

/* pi, and roots of primes */
static bool constant_of(const struct math_form *form, slong variable, arb_t ret_value)
{
    const struct generator *generator = &form->generators[variable];
    MATH_LOCAL_FMPQ(prime);

    if (generator->kind == GENERATOR_PI) {
        arb_const_pi(ret_value, PRECISION);
        return true;
    }
    if (generator->kind != GENERATOR_POWER || !math_fraction_is_rational(&generator->argument, prime))
        return false;
    arb_set_fmpq(ret_value, prime, PRECISION);
    arb_root_ui(ret_value, ret_value, form->parts, PRECISION);
    return true;
}

/* c x + d, where c and d may have pi and roots in them: adds up both. */
static bool gather_line(const struct math_form *form, const fmpz_mpoly_t factor, slong variable, arb_t ret_slope,
                        arb_t ret_constant)
{
    ulong exponents[MATH_GENERATORS];
    MATH_LOCAL_ARB(term);
    MATH_LOCAL_ARB(value);

    for (slong i = 0; i < factor->length; i++) {
        fmpz_mpoly_get_term_exp_ui(exponents, factor, i, form->ring.context);
        arb_set_fmpz(term, factor->coeffs + i);
        for (slong k = 0; k < form->count; k++) {
            if (k == variable || !exponents[k])
                continue;
            if (!constant_of(form, k, value))
                return false;
            arb_pow_ui(value, value, exponents[k], PRECISION);
            arb_mul(term, term, value, PRECISION);
        }
        arb_ptr sum = exponents[variable] ? ret_slope : ret_constant;
        if (exponents[variable] > 1)
            return false;
        arb_add(sum, sum, term, PRECISION);
    }
    return true;
}

static bool add_line(struct finder *finder, const fmpz_mpoly_t factor, slong variable)
{
    MATH_LOCAL_ARB(slope);
    MATH_LOCAL_ARB(constant);
    MATH_LOCAL_FMPQ(at);

    if (!gather_line(finder->form, factor, variable, slope, constant))
        return false;
    arb_div(constant, constant, slope, PRECISION);
    arb_neg(constant, constant);
    if (!arb_is_finite(constant))
        return false;
    arf_get_fmpq(at, arb_midref(constant));
    return add_break(finder->breaks, finder->form->generators[variable].name, at);
}

static bool add_zeros(struct finder *finder, const fmpz_mpoly_t factor)
{
    const struct math_form *form = finder->form;
    int used[MATH_GENERATORS];
    slong names = 0, others = 0, variable = -1;
    fmpz_poly_t polynomial;

    fmpz_mpoly_used_vars(used, factor, form->ring.context);
    for (slong i = 0; i < form->count; i++) {
        bool name = form->generators[i].kind == GENERATOR_NAME;
        names += used[i] && name;
        others += used[i] && !name;
        variable = used[i] && name ? i : variable;
    }
    if (factor->length <= 1 || (names > 1 && !others && is_difference(factor, form->ring.context)))
        return true;
    if (names != 1)
        return false;
    if (others)
        return add_line(finder, factor, variable);
    fmpz_poly_init(polynomial);
    bool found = fmpz_mpoly_get_fmpz_poly(polynomial, factor, variable, form->ring.context) &&
                 add_real_roots(finder, polynomial, form->generators[variable].name);
    fmpz_poly_clear(polynomial);
    return found;
}

static bool add_zeros_of_factors(struct finder *finder, const fmpz_mpoly_t value)
{
    const fmpz_mpoly_ctx_struct *context = finder->form->ring.context;
    fmpz_mpoly_factor_t factors;
    bool found;

    if (value->length <= 1)
        return true;
    if (value->length > TERMS_MAX || fmpz_mpoly_total_degree_si(value, context) > DEGREE_MAX ||
        labs(fmpz_mpoly_max_bits(value)) > BITS_MAX || !math_spend(finder->form->decider, FACTORING_WORK))
        return false;
    fmpz_mpoly_factor_init(factors, context);
    found = fmpz_mpoly_factor(factors, value, context);
    for (slong i = 0; i < factors->num && found; i++)
        if (!finder->squares || fmpz_cmp_ui(factors->exp + i, 1) > 0)
            found = add_zeros(finder, factors->poly + i);
    fmpz_mpoly_factor_clear(factors, context);
    return found;
}

/* --- nodes --- */

static bool add_argument(struct math_decider *decider, const struct math_node *argument, struct finder finder)
{
    if (!math_has_names(argument))
        return true;
    _cleanup_(math_form_clear) struct math_form form;
    math_form_init(&form, decider);
    math_form_choose_parts(&form, argument, argument);
    MATH_LOCAL_FRACTION(value, &form.ring);
    finder.form = &form;
    return math_form_value(&form, argument, &value) == MATH_VALUE &&
           (finder.below || add_zeros_of_factors(&finder, value.above)) && add_zeros_of_factors(&finder, value.below);
}

static bool add_differences(struct math_decider *decider, const struct math_node *choice, struct math_breaks *breaks)
{
    for (size_t i = 0; i < choice->count; i++)
        for (size_t k = i + 1; k < choice->count; k++) {
            struct math_node *minus = math_node_of(decider->arena, MATH_NEGATE, 1, &choice->children[k]);
            struct math_node *difference =
                math_node_of(decider->arena, MATH_SUM, 2, (struct math_node *[]){choice->children[i], minus});
            if (!difference || !add_argument(decider, difference, (struct finder){.breaks = breaks}))
                return false;
        }
    return true;
}

static bool has_trigonometry(const struct math_node *node)
{
    if (node->kind == MATH_FUNCTION && math_is_trigonometric(node->function))
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (has_trigonometry(node->children[i]))
            return true;
    return false;
}

static bool add_function(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    const struct math_node *argument = node->children[0];
    bool arc = node->function >= MATH_ASIN && node->function <= MATH_ACSC;

    if (node->function == MATH_GCD || node->function == MATH_LCM || node->function == MATH_MOD)
        return false;
    if (node->function == MATH_MIN || node->function == MATH_MAX)
        return add_differences(decider, node, breaks);
    if (node->function == MATH_SIGN || node->function == MATH_ARG)
        return add_argument(decider, argument, (struct finder){.breaks = breaks});
    if (!arc)
        return true;
    return !has_trigonometry(argument) &&
           add_argument(decider, argument, (struct finder){.breaks = breaks, .below = true});
}

/* \sqrt{u^2} is |u|. An odd degree, and a whole exponent, hide nothing. */
static bool add_root(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    MATH_LOCAL_FMPQ(exponent);
    enum math_outcome outcome = math_rational(decider, node->children[1], exponent);
    const fmpz *degree = node->kind == MATH_ROOT ? fmpq_numref(exponent) : fmpq_denref(exponent);

    if (outcome == MATH_VALUE && fmpz_is_odd(degree))
        return true;
    return add_argument(decider, node->children[0], (struct finder){.breaks = breaks, .squares = true});
}

/* \binom{n}{1000} is 0 for all small n. */
static bool add_choice(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    MATH_LOCAL_FMPQ(lower);

    (void)breaks;
    return math_rational(decider, node->children[1], lower) || fmpq_cmp_si(lower, CHOICE_MAX) <= 0;
}

/* Steps everywhere. */
static bool add_steps(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    (void)decider, (void)node, (void)breaks;
    return false;
}

static bool add_absolute(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    return add_argument(decider, node->children[0], (struct finder){.breaks = breaks});
}

/* By kind; what is not named has no break of its own. */
static bool (*const adders[MATH_KINDS])(struct math_decider *decider, const struct math_node *node,
                                        struct math_breaks *breaks) = {
    [MATH_FLOOR] = add_steps, [MATH_CEILING] = add_steps,   [MATH_ABSOLUTE] = add_absolute, [MATH_ROOT] = add_root,
    [MATH_POWER] = add_root,  [MATH_BINOMIAL] = add_choice, [MATH_FUNCTION] = add_function,
};

static bool add_own(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    return !adders[node->kind] || adders[node->kind](decider, node, breaks);
}

bool math_find_breaks(struct math_decider *decider, const struct math_node *node, struct math_breaks *breaks)
{
    if (!math_has_names(node))
        return true;
    if (!math_spend(decider, 50) || !add_own(decider, node, breaks))
        return false;
    for (size_t i = 0; i < node->count; i++)
        if (!math_find_breaks(decider, node->children[i], breaks))
            return false;
    return true;
}
