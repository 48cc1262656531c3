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

#endif
