/* height: how large the integers can become that an exact field meets, estimated from the tree.
 *
 * Calcium factors the integers under roots, and a root stands behind every arc, absolute value and argument. */
#ifndef VERIFIERS_MATH_HEIGHT_H
#define VERIFIERS_MATH_HEIGHT_H

#include "verifiers/math/decider.h"

/* False: some root, arc or whole would have integers of more bits than is cheap. */
bool math_height_fits(struct math_decider *decider, const struct math_node *node);

#endif
