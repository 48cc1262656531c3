/* Shared by the files of the comparison. Private to them.
 *
 * Each compares a reference with an answer in one reading; compare.c knows which reading fits which trees. Nodes that
 * are built on the way live in the rules' arena; NULL from a maker is MATH_LIMIT. */
#ifndef VERIFIERS_MATH_COMPARISON_H
#define VERIFIERS_MATH_COMPARISON_H

#include "verifiers/math/compare.h"

#define MATH_ELEMENTS_MAX 64 /* of a set, a list, a union */

struct comparison {
    struct math_decider *decider;
    const struct math_rules *rules;
};

/* --- decisions together --- */

/* Both must be equal: one difference decides. */
static inline enum math_decision math_both(enum math_decision left, enum math_decision right)
{
    static const int weight[MATH_DECISIONS] = {
        [MATH_EQUAL] = 0, [MATH_UNDECIDED] = 1, [MATH_LIMIT] = 2, [MATH_UNDEFINED] = 3, [MATH_DIFFERENT] = 4};
    return weight[left] >= weight[right] ? left : right;
}

/* One of them must be equal. */
static inline enum math_decision math_either(enum math_decision left, enum math_decision right)
{
    static const int weight[MATH_DECISIONS] = {
        [MATH_DIFFERENT] = 0, [MATH_UNDEFINED] = 1, [MATH_UNDECIDED] = 2, [MATH_LIMIT] = 3, [MATH_EQUAL] = 4};
    return weight[left] >= weight[right] ? left : right;
}

static inline enum math_decision math_say(bool equal)
{
    return equal ? MATH_EQUAL : MATH_DIFFERENT;
}

/* --- building --- */

static inline struct math_node *math_mutable(const struct math_node *node)
{
    return (struct math_node *)(uintptr_t)node;
}

static inline struct math_node *math_build(struct comparison *comparison, enum math_kind kind, size_t count,
                                           const struct math_node *const *children)
{
    return math_node_of(comparison->rules->arena, kind, count, (struct math_node *const *)(uintptr_t)children);
}

static inline struct math_node *math_minus(struct comparison *comparison, const struct math_node *left,
                                           const struct math_node *right)
{
    const struct math_node *terms[] = {left, math_build(comparison, MATH_NEGATE, 1, &right)};
    return math_build(comparison, MATH_SUM, 2, terms);
}

/* The same node with other children. NULL beyond the arena's limit. */
struct math_node *math_with_children(struct comparison *comparison, const struct math_node *node,
                                     const struct math_node *const *children);

/* --- looking --- */

static inline bool math_is_infinite(const struct math_node *node)
{
    return node->kind == MATH_CONSTANT && node->constant == MATH_INFINITY;
}

/* 1: \infty, -1: -\infty, 0: anything else */
static inline int math_infinite_sign(const struct math_node *node)
{
    if (node->kind == MATH_NEGATE)
        return math_is_infinite(node->children[0]) ? -1 : 0;
    return math_is_infinite(node) ? 1 : 0;
}

static inline bool math_is_equation(const struct math_node *node)
{
    return node->kind == MATH_RELATION && node->count == 2 && node->relations[0] == MATH_EQUALS;
}

/* The variable occurs in the tree. */
bool math_mentions(const struct math_node *node, const struct math_node *name);

/* --- readings --- */

/* Anything against anything: what a whole answer is, and what an element of a set or tuple is. */
enum math_decision math_same(struct comparison *comparison, const struct math_node *reference,
                             const struct math_node *answer);
/* The same without looking for a name before =. */
enum math_decision math_same_bodies(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer);
/* Two scalars without units, within the tolerance if there is one. */
enum math_decision math_same_scalars(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer);

/* equations.c: names before =, chains, equations, inequalities that are not solved */

struct math_subject {
    const struct math_node *name; /* NULL: nothing is named */
    const struct math_node *body;
};

/* AB, ABC: letters of points, side by side. */
bool math_is_capitals(const struct math_node *node);
/* Names only, at least one. */
bool math_are_names(const struct math_node *node);
/* Can the first be the name of the second? x, f(x), P(A), AB, (x, y), a word; not if the value mentions it. */
bool math_is_named_by(const struct math_node *name, const struct math_node *value);
/* MATH_EQUAL; or what is wrong with a chain: MATH_UNDEFINED if its parts differ. */
enum math_decision math_subject_of(struct comparison *comparison, const struct math_node *node,
                                   struct math_subject *ret_subject);
/* Not more than two terms on both sides together: 2x = 10, x - 5 = 0. Not 3x + 5 = 20: there is work left. */
bool math_is_collected(const struct math_node *relation);
enum math_decision math_same_relations(struct comparison *comparison, const struct math_node *reference,
                                       const struct math_node *answer);

/* conditions.c: x = 2k + 1, k \in Z without its condition, where one side has none or both have the same. false: beyond
 * the limit. */
bool math_take_conditions(struct comparison *comparison, const struct math_node **reference,
                          const struct math_node **answer);

/* asked.c: m + n = 5 where 5 was asked for: x = 5, with a name of its own. Else the answer itself; NULL beyond the
 * limit.
 */
const struct math_node *math_name_asked(struct comparison *comparison, const struct math_node *reference,
                                        const struct math_node *answer);

/* assignments.c: x = 3, y = -2 */

/* Two or more different names with a value each: x = 3, y = -2; (x, y) = (3, -2). */
bool math_is_assignments(const struct math_node *node);
enum math_decision math_same_assignments(struct comparison *comparison, const struct math_node *reference,
                                         const struct math_node *answer);
/* x = 1, y = 2 or x = 3, y = 4: the list of both tuples. Else the node itself; NULL beyond the limit. */
const struct math_node *math_solutions_of(struct comparison *comparison, const struct math_node *node);

/* congruences.c: x = 3 modulo 7. A remainder without its modulus, or of another one, is another answer. */
bool math_are_congruences(const struct math_node *reference, const struct math_node *answer);
enum math_decision math_same_congruences(struct comparison *comparison, const struct math_node *reference,
                                         const struct math_node *answer);

/* values.c: sets, lists, both values of \pm */

bool math_has_several(const struct math_node *node);
enum math_decision math_same_values(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer);

/* Two answers joined by "or", {1, 2} or {3}: equal to nothing. */
bool math_is_hedge(struct comparison *comparison, const struct math_node *node);

/* Each element of either side has an equal one on the other. */
enum math_decision math_same_elements(struct comparison *comparison, size_t left_count,
                                      const struct math_node *const *left, size_t right_count,
                                      const struct math_node *const *right);

/* intervals.c: sets of real numbers */

/* Could it be one, and more than a finite set? */
bool math_may_be_region(const struct math_node *node);
/* The variable of an inequality, or NULL. */
const struct math_node *math_region_variable(const struct math_node *node);
/* *ret_read: both are sets of real numbers. */
enum math_decision math_same_regions(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer, bool *ret_read);

/* number_sets.c */

bool math_same_number_sets(const struct math_node *reference, const struct math_node *answer);
/* R^+ and its kin: the real numbers on one side of 0. */
bool math_is_real_half(const struct math_node *set, enum math_relation *ret_relation);

/* matrices.c */

enum math_decision math_same_matrices(struct comparison *comparison, const struct math_node *reference,
                                      const struct math_node *answer);

/* numerals.c: digits in a base, ratios, times of day */

enum math_decision math_same_based(struct comparison *comparison, const struct math_node *reference,
                                   const struct math_node *answer);
enum math_decision math_same_ratios(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer);

/* 4:30 p.m. is 16:30, and may be written 4:30. */
enum math_decision math_same_times_of_day(const struct math_node *reference, struct text wanted_half,
                                          const struct math_node *answer, struct text given_half);

/* phrases.c */

bool math_is_word(const struct math_node *node); /* TEXT, or letters that may be one */
bool math_same_words(const struct math_node *reference, const struct math_node *answer);
/* Words that take back what they stand before: "not", "never", "or". */
bool math_denies(struct text words);
/* The mathematical meaning of a phrase ("no solution": the empty set), or the node itself. */
const struct math_node *math_said(struct comparison *comparison, const struct math_node *node);

/* units.c */

/* The node without its unit, and the unit as it was written (empty: none). MATH_UNDECIDED if there are several. */
enum math_decision math_take_unit(struct comparison *comparison, const struct math_node *node,
                                  const struct math_node **ret_node, struct text *ret_unit);
bool math_same_units(struct text left, struct text right);

#endif
