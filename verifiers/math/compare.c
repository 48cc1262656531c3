#include "verifiers/math/comparison.h"

#include "server/base/cleanup.h"

/* So that sets of sets of sets end: each pair of elements costs at least this, whatever they are. */
#define WORK_PER_ELEMENT 2000

struct math_node *math_with_children(struct comparison *comparison, const struct math_node *node,
                                     const struct math_node *const *children)
{
    struct math_node *copy = math_node_create(comparison->rules->arena, node->kind, node->count);
    struct math_node **own;

    if (!copy)
        return NULL;
    own = copy->children;
    *copy = *node;
    copy->children = own;
    for (size_t i = 0; i < node->count; i++) {
        if (!children[i])
            return NULL;
        own[i] = math_mutable(children[i]);
    }
    return copy;
}

bool math_mentions(const struct math_node *node, const struct math_node *name)
{
    if (node->kind == MATH_NAME)
        return text_same(node->text, name->text);
    for (size_t i = 0; i < node->count; i++)
        if (math_mentions(node->children[i], name))
            return true;
    return false;
}

/* --- scalars --- */

static enum math_decision within_tolerance(struct comparison *comparison, const struct math_node *reference,
                                           const struct math_node *answer)
{
    const struct math_rules *rules = comparison->rules;
    enum math_decision decision;
    fmpq_t zero;

    fmpq_init(zero);
    decision = math_decide_within(comparison->decider, reference, answer, rules->relative ? rules->relative : zero,
                                  rules->absolute ? rules->absolute : zero);
    fmpq_clear(zero);
    return decision;
}

enum math_decision math_same_scalars(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer)
{
    const struct math_rules *rules = comparison->rules;
    int sign = math_infinite_sign(reference);
    int given = math_infinite_sign(answer);
    enum math_decision decision;

    if (sign || given)
        return math_say(sign == given);
    if ((rules->relative || rules->absolute) && !math_has_names(reference) && !math_has_names(answer))
        return within_tolerance(comparison, reference, answer);
    decision = math_decide_equal(comparison->decider, reference, answer);
    /* A sum or an integral that nobody works out is at least itself. */
    return decision == MATH_UNDECIDED && math_same_tree(reference, answer) ? MATH_EQUAL : decision;
}

static bool is_plain(const struct math_node *node)
{
    return math_is_scalar(node) && !math_has_kind(node, MATH_PLUS_MINUS);
}

/* --- which reading fits --- */

static bool are_scalars(const struct math_node *reference, const struct math_node *answer)
{
    return is_plain(reference) && is_plain(answer) && !(math_is_word(reference) && math_is_word(answer));
}

static bool is_negative_based(const struct math_node *node)
{
    return node->kind == MATH_NEGATE && node->children[0]->kind == MATH_BASED;
}

static bool has_negative_based(const struct math_node *reference, const struct math_node *answer)
{
    return is_negative_based(reference) || is_negative_based(answer);
}

static bool has_based(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == MATH_BASED || answer->kind == MATH_BASED;
}

static bool has_ratio(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == MATH_RATIO || answer->kind == MATH_RATIO;
}

static bool are_words(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == MATH_TEXT || answer->kind == MATH_TEXT ||
           (math_is_word(reference) && math_is_word(answer));
}

static bool are_tuples(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == MATH_TUPLE && answer->kind == MATH_TUPLE && !math_has_kind(reference, MATH_PLUS_MINUS) &&
           !math_has_kind(answer, MATH_PLUS_MINUS);
}

static bool has_matrix(const struct math_node *reference, const struct math_node *answer)
{
    return math_has_kind(reference, MATH_MATRIX) || math_has_kind(answer, MATH_MATRIX);
}

static bool are_several(const struct math_node *reference, const struct math_node *answer)
{
    return math_has_several(reference) && math_has_several(answer);
}

static bool are_relations(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == MATH_RELATION && answer->kind == MATH_RELATION;
}

/* -37_8 */
static enum math_decision same_negative_based(struct comparison *comparison, const struct math_node *reference,
                                              const struct math_node *answer)
{
    if (reference->kind != MATH_NEGATE || answer->kind != MATH_NEGATE)
        return MATH_DIFFERENT;
    return math_same_based(comparison, reference->children[0], answer->children[0]);
}

static bool are_one_kind(const struct math_node *reference, const struct math_node *answer)
{
    return reference->kind == answer->kind && reference->count == answer->count;
}

/* abc: a product unless it names points. */
static bool are_letters(const struct math_node *node)
{
    return (node->flags & MATH_WORD) && !math_is_capitals(node);
}

static enum math_decision same_words(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer)
{
    const struct math_node *wanted;
    const struct math_node *given;

    if (math_is_word(reference) && math_is_word(answer) && math_same_words(reference, answer))
        return MATH_EQUAL;
    if (are_letters(reference) && are_letters(answer))
        return math_same_scalars(comparison, reference, answer);
    wanted = math_said(comparison, reference);
    given = math_said(comparison, answer);
    if (!wanted || !given)
        return MATH_LIMIT;
    if (wanted->kind == MATH_TEXT || given->kind == MATH_TEXT || (wanted == reference && given == answer))
        return MATH_DIFFERENT;
    return math_same_bodies(comparison, wanted, given);
}

static enum math_decision same_tuples(struct comparison *comparison, const struct math_node *reference,
                                      const struct math_node *answer)
{
    enum math_decision decision = MATH_EQUAL;

    if (reference->count != answer->count || reference->opening != answer->opening ||
        reference->closing != answer->closing)
        return MATH_DIFFERENT;
    for (size_t i = 0; i < reference->count && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, math_same(comparison, reference->children[i], answer->children[i]));
    return decision;
}

/* Structures without a rule of their own: the same sets in the same places, or not. */
static enum math_decision same_structure(struct comparison *comparison, const struct math_node *reference,
                                         const struct math_node *answer)
{
    enum math_decision decision =
        math_say(reference->kind == MATH_NUMBER_SET ? math_same_number_sets(reference, answer)
                                                    : text_same(reference->text, answer->text));

    if (math_is_scalar(reference)) /* of \pm, units in odd places */
        return math_same_tree(reference, answer) ? MATH_EQUAL : MATH_UNDECIDED;
    if (reference->kind == MATH_UNION || reference->kind == MATH_INTERSECTION)
        return math_same_elements(comparison, reference->count, (const struct math_node *const *)reference->children,
                                  answer->count, (const struct math_node *const *)answer->children);
    for (size_t i = 0; i < reference->count && decision != MATH_DIFFERENT; i++)
        decision = math_both(decision, math_same(comparison, reference->children[i], answer->children[i]));
    return decision;
}

/* In turn; the first that fits decides. Sets of real numbers are tried before sets and relations, see below. */
static const struct {
    bool (*fits)(const struct math_node *reference, const struct math_node *answer);
    enum math_decision (*compare)(struct comparison *comparison, const struct math_node *reference,
                                  const struct math_node *answer);
} readings[] = {
    {math_are_congruences, math_same_congruences},
    {are_scalars, math_same_scalars},
    {has_negative_based, same_negative_based},
    {has_based, math_same_based},
    {are_words, same_words},
    {has_ratio, math_same_ratios},
    {are_tuples, same_tuples},
    {has_matrix, math_same_matrices},
    {are_several, math_same_values},
    {are_relations, math_same_relations},
    {are_one_kind, same_structure},
};

/* A true statement about expressions, x^2-4 = (x-2)(x+2), gives its right side; another equation gives nothing. */
static enum math_decision same_as_identity(struct comparison *comparison, const struct math_node *reference,
                                           const struct math_node *answer)
{
    const struct math_node *equation = math_is_equation(answer) ? answer : reference;
    enum math_decision decision;

    if (math_is_equation(reference) == math_is_equation(answer) || !math_is_scalar(equation->children[0]) ||
        !math_is_scalar(equation->children[1]))
        return MATH_DIFFERENT;
    decision = math_decide_equal(comparison->decider, equation->children[0], equation->children[1]);
    if (decision != MATH_EQUAL)
        return decision;
    return equation == answer ? math_same_bodies(comparison, reference, answer->children[1])
                              : math_same_bodies(comparison, reference->children[1], answer);
}

static enum math_decision read_together(struct comparison *comparison, const struct math_node *reference,
                                        const struct math_node *answer)
{
    bool region = math_may_be_region(reference) || math_may_be_region(answer);
    enum math_decision decision;

    if (region && !are_tuples(reference, answer)) {
        decision = math_same_regions(comparison, reference, answer, &region);
        if (region)
            return decision;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(readings); i++)
        if (readings[i].fits(reference, answer))
            return readings[i].compare(comparison, reference, answer);
    return same_as_identity(comparison, reference, answer);
}

/* --- percent signs, units, names --- */

/* 25\% is 25 where the reference has neither percent sign nor unit and the rules say so. */
static const struct math_node *without_percent(struct comparison *comparison, const struct math_node *reference,
                                               const struct math_node *answer)
{
    const struct math_node *child;

    if (!comparison->rules->percent_is_unit || math_has_kind(reference, MATH_PERCENT))
        return answer;
    if (answer->kind == MATH_PERCENT)
        return answer->children[0];
    if (answer->kind != MATH_NEGATE || answer->children[0]->kind != MATH_PERCENT)
        return answer;
    child = answer->children[0]->children[0];
    return math_build(comparison, MATH_NEGATE, 1, &child);
}

/* A percentage or ratio against a quantity with a unit: 25\% is not 0.25 cm. */
static bool is_pure_share(const struct math_node *share, struct text unit, const struct math_node *quantity,
                          struct text other)
{
    const struct math_node *inner = share->kind == MATH_NEGATE ? share->children[0] : share;

    return unit.length_bytes == 0 && other.length_bytes > 0 && quantity->kind != MATH_RATIO &&
           (inner->kind == MATH_PERCENT || inner->kind == MATH_RATIO);
}

enum math_decision math_same_bodies(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer)
{
    struct text wanted_unit;
    struct text given_unit;
    enum math_decision decision = math_take_unit(comparison, reference, &reference, &wanted_unit);

    decision = math_both(decision, math_take_unit(comparison, answer, &answer, &given_unit));
    if (decision != MATH_EQUAL)
        return decision;
    if (wanted_unit.length_bytes && given_unit.length_bytes && !math_same_units(wanted_unit, given_unit))
        return MATH_DIFFERENT;
    if (is_pure_share(reference, wanted_unit, answer, given_unit) ||
        is_pure_share(answer, given_unit, reference, wanted_unit))
        return MATH_DIFFERENT;
    if (reference->kind == MATH_RATIO && answer->kind == MATH_RATIO &&
        (wanted_unit.length_bytes || given_unit.length_bytes))
        return math_same_times_of_day(reference, wanted_unit, answer, given_unit);
    if (!wanted_unit.length_bytes)
        answer = without_percent(comparison, reference, answer);
    if (!answer)
        return MATH_LIMIT;
    decision = read_together(comparison, reference, answer);
    if (decision != MATH_DIFFERENT || !comparison->rules->percent_may_be_missing || reference->kind != MATH_PERCENT ||
        math_has_kind(answer, MATH_PERCENT))
        return decision;
    return read_together(comparison, reference->children[0], answer);
}

/* y = and f(x) = are two ways to say the same; any other two names are not. */
static bool may_be_same_name(const struct math_node *left, const struct math_node *right)
{
    static const struct text y = {"y", 1};

    return math_same_tree(left, right) || (left->kind == MATH_CALL && text_same(right->text, y)) ||
           (right->kind == MATH_CALL && text_same(left->text, y));
}

/* Both are equations of several names, one of them perhaps solved for one: 2x - y + 3 = 0 and y = 2x + 3. One that is
 * solved with a number (x = 2) wants an answer that is, or nearly: otherwise the question itself would do. */
static bool are_open_equations(const struct math_node *reference, const struct math_subject *wanted,
                               const struct math_node *answer, const struct math_subject *given)
{
    bool solved = wanted->name && !math_has_names(wanted->body);
    bool named = (!wanted->name || wanted->name->kind == MATH_NAME) && (!given->name || given->name->kind == MATH_NAME);

    return (!solved || math_is_collected(answer)) && named && math_is_equation(reference) && math_is_equation(answer);
}

/* Of 1010_2 = 10_{10}, which is true, the number in the base that is wanted. */
static const struct math_node *part_in_base(const struct math_node *reference, const struct math_node *answer,
                                            const struct math_node *body)
{
    if (reference->kind != MATH_BASED || body->kind != MATH_BASED || answer->kind != MATH_RELATION)
        return body;
    for (size_t i = 0; i < answer->count; i++)
        if (answer->children[i]->kind == MATH_BASED && answer->children[i]->base == reference->base)
            return answer->children[i];
    return body;
}

enum math_decision math_same(struct comparison *comparison, const struct math_node *reference,
                             const struct math_node *answer)
{
    struct math_subject wanted;
    struct math_subject given;
    const struct math_node *variable;
    enum math_decision decision;

    if (!math_decider_spend(comparison->decider, WORK_PER_ELEMENT))
        return MATH_LIMIT;
    if (math_is_hedge(comparison, reference) || math_is_hedge(comparison, answer))
        return MATH_DIFFERENT;
    reference = math_solutions_of(comparison, reference);
    answer = math_name_asked(comparison, reference, answer);
    answer = answer ? math_solutions_of(comparison, answer) : NULL;
    if (!reference || !answer)
        return MATH_LIMIT;
    if (math_is_assignments(reference) || math_is_assignments(answer))
        return math_same_assignments(comparison, reference, answer);
    decision = math_both(math_subject_of(comparison, reference, &wanted), math_subject_of(comparison, answer, &given));
    if (decision != MATH_EQUAL)
        return decision;
    if (!(wanted.name && given.name && may_be_same_name(wanted.name, given.name)) &&
        are_open_equations(reference, &wanted, answer, &given))
        return math_same_relations(comparison, reference, answer);
    if (wanted.name && given.name && !may_be_same_name(wanted.name, given.name))
        return MATH_DIFFERENT;
    given.body = part_in_base(wanted.body, answer, given.body);
    variable = wanted.name ? math_region_variable(given.body) : given.name ? math_region_variable(wanted.body) : NULL;
    if (variable && !math_same_tree(variable, wanted.name ? wanted.name : given.name))
        return math_say(math_same_tree(reference, answer)); /* w = (y < 1) */
    return math_same_bodies(comparison, wanted.body, given.body);
}

enum math_decision math_compare(struct math_decider *decider, const struct math_node *reference,
                                const struct math_node *answer, const struct math_rules *rules)
{
    struct comparison comparison = {decider, rules};
    enum math_decision decision = MATH_LIMIT;

    if (math_take_conditions(&comparison, &reference, &answer))
        decision = math_same(&comparison, reference, answer);

    /* A node without meaning (x in an equation) is comparable with nothing, but it does not differ from itself. */
    return decision == MATH_DIFFERENT && math_same_tree(reference, answer) ? MATH_UNDECIDED : decision;
}
