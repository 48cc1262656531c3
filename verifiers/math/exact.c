#include "verifiers/math/exact.h"

#include "verifiers/math/ball.h"
#include "verifiers/math/field.h"
#include "verifiers/math/form.h"

enum math_outcome math_compare_balls(struct math_decider *decider, const struct math_node *left,
                                     const struct math_node *right, slong bits, bool *ret_apart)
{
    MATH_LOCAL_ACB(one);
    MATH_LOCAL_ACB(other);
    enum math_outcome outcome = math_ball(decider, left, bits, one);

    *ret_apart = false;
    if (outcome == MATH_NO_VALUE)
        return outcome;
    outcome = math_worse(outcome, math_ball(decider, right, bits, other));
    if (outcome)
        return outcome;
    *ret_apart = !acb_overlaps(one, other);
    return MATH_VALUE;
}

/* State of the comparison of two constants. */
struct search {
    struct math_decider *decider;
    const struct math_node *left, *right;
    bool have_values; /* a ball showed that both are defined */
    bool too_large;   /* something was beyond a bound */
};

/* True: *ret_decision. */
static bool by_balls(struct search *search, slong bits, enum math_decision *ret_decision)
{
    bool apart;
    enum math_outcome outcome = math_compare_balls(search->decider, search->left, search->right, bits, &apart);

    search->decider->method = "ball";
    search->have_values = search->have_values || outcome == MATH_VALUE;
    search->too_large = search->too_large || outcome == MATH_TOO_LARGE_VALUE;
    *ret_decision = outcome == MATH_NO_VALUE ? MATH_UNDEFINED : MATH_DIFFERENT;
    return outcome == MATH_NO_VALUE || apart;
}

/* The same tree twice, and it has a value. */
static bool by_notation(struct search *search, enum math_decision *ret_decision)
{
    search->decider->method = "notation";
    *ret_decision = MATH_EQUAL;
    return search->have_values && math_same_tree(search->left, search->right);
}

/* A difference of 0 is equal only if both sides are defined. */
static bool by_form(struct search *search, enum math_decision *ret_decision)
{
    struct math_form_finding finding = {0};
    bool apart;
    enum math_outcome outcome = math_form_difference(search->decider, search->left, search->right, &finding);

    search->decider->method = "field";
    search->too_large = search->too_large || outcome == MATH_TOO_LARGE_VALUE;
    *ret_decision = outcome == MATH_NO_VALUE ? MATH_UNDEFINED : MATH_EQUAL;
    if (outcome == MATH_NO_VALUE)
        return true;
    if (outcome || !finding.zero)
        return false;
    if (!search->have_values)
        search->have_values =
            math_compare_balls(search->decider, search->left, search->right, 1024, &apart) == MATH_VALUE;
    return search->have_values ||
           (finding.notation && (!finding.divisions || math_same_tree(search->left, search->right)));
}

static bool by_field(struct search *search, enum math_decision *ret_decision)
{
    bool equal = false;
    enum math_outcome outcome = math_field_equal(search->decider, search->left, search->right, &equal);

    search->decider->method = "field";
    search->too_large = search->too_large || outcome == MATH_TOO_LARGE_VALUE;
    *ret_decision = outcome == MATH_NO_VALUE ? MATH_UNDEFINED : equal ? MATH_EQUAL : MATH_DIFFERENT;
    return outcome == MATH_NO_VALUE || outcome == MATH_VALUE;
}

static enum math_decision search_on(struct search *search)
{
    enum math_decision decision;

    if (by_notation(search, &decision) || by_form(search, &decision) || by_balls(search, 128, &decision) ||
        by_balls(search, 512, &decision) || by_field(search, &decision) || by_balls(search, 3072, &decision))
        return decision;
    return search->too_large || search->decider->exhausted ? MATH_LIMIT : MATH_UNDECIDED;
}

enum math_decision math_decide_overlapping(struct math_decider *decider, const struct math_node *left,
                                           const struct math_node *right)
{
    struct search search = {.decider = decider, .left = left, .right = right, .have_values = true};

    return search_on(&search);
}

enum math_decision math_decide_constants(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right)
{
    struct search search = {.decider = decider, .left = left, .right = right};
    enum math_decision decision;

    return by_balls(&search, 64, &decision) ? decision : search_on(&search);
}
