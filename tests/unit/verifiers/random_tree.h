/* Trees of all kinds that a text could say, the same in every run. */
#ifndef TESTS_VERIFIERS_RANDOM_TREE_H
#define TESTS_VERIFIERS_RANDOM_TREE_H

#include "verifiers/math/tree.h"

struct math_node *random_answer(struct math_arena *arena, int depth);
struct math_node *random_scalar(struct math_arena *arena, int depth);

#endif
