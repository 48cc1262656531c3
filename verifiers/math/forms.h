/* forms: shared by the files that grade an answer's form. Private to forms*.c.
 *
 * Each looks at one node and not below it; forms.c walks the tree. */
#ifndef VERIFIERS_MATH_FORMS_H
#define VERIFIERS_MATH_FORMS_H

#include "verifiers/math/comparison.h"

static inline const struct math_node *math_without_sign(const struct math_node *node)
{
    return node->kind == MATH_NEGATE ? node->children[0] : node;
}

/* 5, -5 */
static inline bool math_is_integer(const struct math_node *node)
{
    node = math_without_sign(node);
    return node->kind == MATH_NUMBER && fmpz_is_one(fmpq_denref(node->value));
}

/* Its absolute value. */
static inline const fmpz *math_integer_of(const struct math_node *node)
{
    return fmpq_numref(math_without_sign(node)->value);
}

/* forms_lowest.c */

/* A quotient, or a product with one, whose upper and lower side have no factor in common that can be seen: a whole
 * number in every term (2 + 2\sqrt5 over 4), the same factor as it is written (x^2 over x). True of all other nodes. */
bool math_is_in_lowest_terms(struct comparison *comparison, const struct math_node *node);

/* forms_worked.c */

/* Two signs that cancel: -(-x), \frac{-1}{-2}, -\frac{-1}{2}. */
bool math_has_spare_signs(const struct math_node *node);
/* Work that is no arithmetic on rational numbers: terms that can be collected (\pi + \pi), powers and products of
 * complex numbers and of sums of roots ((2+i)^2), functions whose value is known (\arctan 1, \sin 60^\circ). */
bool math_has_work_left(struct comparison *comparison, const struct math_node *node);

#endif
