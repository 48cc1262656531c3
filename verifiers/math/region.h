/* region: a set of real numbers as a union of pieces. Not for others than intervals.c, which reads them.
 *
 * Put in order and joined where pieces touch, one set has one form. Ends with names in them cannot be ordered: then the
 * pieces must be the same as they stand. All functions answer MATH_EQUAL for "done"; anything else is why not. */
#ifndef VERIFIERS_MATH_REGION_H
#define VERIFIERS_MATH_REGION_H

#include "verifiers/math/comparison.h"

#define PIECES_MAX MATH_ELEMENTS_MAX

struct piece {
    const struct math_node *low;  /* NULL: -\infty */
    const struct math_node *high; /* NULL: \infty */
    bool low_closed;
    bool high_closed;
};

struct region {
    const struct math_node *variable; /* NULL: none is named */
    bool symbolic;                    /* an end has names */
    size_t count;
    struct piece piece[PIECES_MAX];
};

enum math_decision region_add(struct region *region, struct piece piece);
enum math_decision region_add_all(struct region *region, const struct region *other);
/* The low end lies below the high one, or they are one closed point. MATH_DIFFERENT: nothing lies between them. */
enum math_decision region_check_order(struct comparison *comparison, const struct piece *piece);
/* Sorted, touching pieces joined. */
enum math_decision region_normalise(struct comparison *comparison, struct region *region);
/* Leaves in the region what both have. MATH_DIFFERENT: of two variables, or with names in an end. */
enum math_decision region_intersect(struct comparison *comparison, struct region *region, const struct region *other);
/* Leaves in the region what it had not. */
enum math_decision region_complement(struct comparison *comparison, struct region *region);
/* The same pieces; both normalised. */
enum math_decision region_same(struct comparison *comparison, const struct region *reference,
                               const struct region *answer);

#endif
