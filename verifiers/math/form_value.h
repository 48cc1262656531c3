/* The values of form.h. Private to form*.c. */
#ifndef VERIFIERS_MATH_FORM_VALUE_H
#define VERIFIERS_MATH_FORM_VALUE_H

#include "verifiers/math/form.h"
#include "verifiers/math/generators.h"

enum math_outcome math_form_value(struct math_form *form, const struct math_node *node,
                                  struct math_fraction *ret_value);

/* Arithmetic, and then the relations. */
enum math_outcome math_form_multiply(struct math_form *form, struct math_fraction *value,
                                     const struct math_fraction *other);
enum math_outcome math_form_divide(struct math_form *form, struct math_fraction *value,
                                   const struct math_fraction *other);
enum math_outcome math_form_integer_power(struct math_form *form, struct math_fraction *value, slong exponent);

/* value · factor and value + term for rationals */
enum math_outcome math_form_scale(struct math_form *form, struct math_fraction *value, const fmpq_t factor);
enum math_outcome math_form_scale_si(struct math_form *form, struct math_fraction *value, slong above, ulong below);
enum math_outcome math_form_add_si(struct math_form *form, struct math_fraction *value, slong term);

/* --- form_denominators.c --- */

/* form->parts: a common multiple of the denominators that exponents and degrees of roots have in the trees. */
void math_form_choose_parts(struct math_form *form, const struct math_node *left, const struct math_node *right);

/* --- form_terms.c --- */

/* value = whole + rest: what the denominator divides, and the remainder over it. */
enum math_outcome math_form_split_whole(struct math_form *form, const struct math_fraction *value,
                                        struct math_fraction *ret_whole, struct math_fraction *ret_rest);

/* Term i of value: coefficient · monomial, the latter over the denominator without its content. */
void math_form_split_term(struct math_form *form, const struct math_fraction *value, slong i,
                          struct math_fraction *ret_monomial, fmpq_t ret_coefficient);

/* --- form_power.c --- */

/* With the real root for odd degrees of negative numbers, else the principal value. */
enum math_outcome math_form_rational_power(struct math_form *form, struct math_fraction *value, const fmpq_t exponent);
enum math_outcome math_form_square_root(struct math_form *form, struct math_fraction *value);
enum math_outcome math_form_power_node(struct math_form *form, const struct math_node *node,
                                       struct math_fraction *ret_value);
enum math_outcome math_form_root_node(struct math_form *form, const struct math_node *node,
                                      struct math_fraction *ret_value);

/* The positive rational that can be taken out of a root or logarithm: value becomes what is left. */
void math_form_take_content(struct math_fraction *value, fmpq_t ret_content);

/* --- form_exponential.c --- */

enum math_outcome math_form_exponential(struct math_form *form, struct math_fraction *value); /* value := e^value */
enum math_outcome math_form_logarithm(struct math_form *form, struct math_fraction *value);   /* value := ln value */

/* e^(i · multiple · pi), if it is known in radicals */
enum math_outcome math_form_turn(struct math_form *form, const fmpq_t multiple, struct math_fraction *ret_value);
enum math_outcome math_form_pi(struct math_form *form, struct math_fraction *ret_value);
enum math_outcome math_form_i(struct math_form *form, struct math_fraction *ret_value);

/* --- form_parts.c: |z|, Re, Im, conjugates, rounding, choices --- */

enum math_outcome math_form_absolute_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value);
enum math_outcome math_form_rounded_node(struct math_form *form, const struct math_node *node,
                                         struct math_fraction *ret_value);
enum math_outcome math_form_part_node(struct math_form *form, const struct math_node *node,
                                      struct math_fraction *ret_value);
/* Any function as a generator of its arguments. */
enum math_outcome math_form_opaque_node(struct math_form *form, const struct math_node *node,
                                        struct math_fraction *ret_value);
/* Surely real, names being real. */
bool math_form_is_real(const struct math_form *form, const struct math_fraction *value);

/* --- form_count.c: factorials, binomials, sums --- */

enum math_outcome math_form_factorial_node(struct math_form *form, const struct math_node *node,
                                           struct math_fraction *ret_value);
enum math_outcome math_form_binomial_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value);
/* A generator that is equal in the same notation only. */
enum math_outcome math_form_notation_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value);
enum math_outcome math_form_operator_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value);

/* --- form_waves.c --- */

enum math_outcome math_form_trigonometric_node(struct math_form *form, const struct math_node *node,
                                               struct math_fraction *ret_value);

/* --- form_functions.c --- */

enum math_outcome math_form_function_node(struct math_form *form, const struct math_node *node,
                                          struct math_fraction *ret_value);

#endif
