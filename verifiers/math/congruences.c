/* x \equiv 3 \pmod 7, and 3 \pmod 7 alone. */
#include "verifiers/math/comparison.h"

static bool is_remainder(const struct math_node *node)
{
    return node->kind == MATH_FUNCTION && node->function == MATH_MOD && node->count == 2;
}

static bool is_relation(const struct math_node *node)
{
    return node->kind == MATH_RELATION && node->relations[0] == MATH_CONGRUENT;
}

bool math_are_congruences(const struct math_node *reference, const struct math_node *answer)
{
    return is_relation(reference) || is_relation(answer) || (is_remainder(reference) && is_remainder(answer));
}

/* 10 modulo 7 is 3 modulo 7, and neither is 3 modulo 8. */
static enum math_decision same_remainders(struct comparison *comparison, const struct math_node *reference,
                                          const struct math_node *answer)
{
    if (!is_remainder(reference) || !is_remainder(answer))
        return MATH_DIFFERENT;
    return math_both(math_same_scalars(comparison, reference->children[1], answer->children[1]),
                     math_same_scalars(comparison, reference, answer));
}

enum math_decision math_same_congruences(struct comparison *comparison, const struct math_node *reference,
                                         const struct math_node *answer)
{
    bool both = is_relation(reference) && is_relation(answer);

    if (!both)
        return same_remainders(comparison, is_relation(reference) ? reference->children[1] : reference,
                               is_relation(answer) ? answer->children[1] : answer);
    if (reference->count != 2 || answer->count != 2)
        return math_same_tree(reference, answer) ? MATH_EQUAL : MATH_UNDECIDED;
    if (!is_remainder(reference->children[1]) && !is_remainder(answer->children[1]))
        return math_same_tree(reference, answer) ? MATH_EQUAL : MATH_DIFFERENT;
    return math_both(math_same_bodies(comparison, reference->children[0], answer->children[0]),
                     same_remainders(comparison, reference->children[1], answer->children[1]));
}
