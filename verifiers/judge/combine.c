#include "verifiers/judge/combine_private.h"

#include <stdio.h>

/* One vote. label: of no meaning where numbers are read, or where it is none. */
struct vote {
    double score;
    size_t label;
    bool has_label;
};

static bool fail(struct judge_problem *problem, const char *code, const char *message)
{
    problem->code = code;
    snprintf(problem->message, sizeof problem->message, "%s", message);
    return false;
}

/* Both orders of one vote, the second in the words of the first. */
static bool join(const struct judge_rule *rule, const struct judge_reading *first, const struct judge_reading *second,
                 struct vote *ret_vote, struct judge_problem *ret_problem)
{
    bool has_labels = rule->label_count > 0;
    size_t label = has_labels ? rule->labels[second->label].swapped : 0;
    double score = has_labels ? rule->labels[label].score : second->score;
    bool agrees = has_labels ? first->label == label : first->number == second->number;

    *ret_vote = (struct vote){first->score, first->label, has_labels};
    if (agrees)
        return true;
    if (rule->disagree == JUDGE_UNSCORED)
        return fail(ret_problem, JUDGE_DISAGREED_CODE, "the judge's verdict depends on the order of the two answers");
    if (rule->disagree == JUDGE_MEAN)
        *ret_vote = (struct vote){first->score / 2 + score / 2, 0, false};
    else if (score < first->score)
        *ret_vote = (struct vote){score, label, has_labels};
    return true;
}

static bool count_votes(const struct judge_rule *rule, const struct vote *votes, struct judge_outcome *ret_outcome,
                        struct judge_problem *ret_problem)
{
    size_t counts[JUDGE_LABELS_MAX] = {0};
    size_t best = 0;
    size_t firsts = 0;

    for (size_t i = 0; i < rule->votes; i++)
        counts[votes[i].label]++;
    for (size_t label = 0; label < rule->label_count; label++)
        if (counts[label] > counts[best])
            best = label;
    for (size_t label = 0; label < rule->label_count; label++)
        firsts += counts[label] == counts[best];
    if (firsts > 1)
        return fail(ret_problem, JUDGE_TIED_CODE, "two labels have equally many votes");
    *ret_outcome = (struct judge_outcome){rule->labels[best].score, &rule->labels[best]};
    return true;
}

static void take_mean(const struct judge_rule *rule, const struct vote *votes, struct judge_outcome *ret_outcome)
{
    double mean = 0;

    for (size_t i = 0; i < rule->votes; i++)
        mean += votes[i].score / (double)rule->votes;
    *ret_outcome = (struct judge_outcome){mean, NULL};
}

bool judge_combine(const struct judge_rule *rule, const struct judge_reading *readings,
                   struct judge_outcome *ret_outcome, struct judge_problem *ret_problem)
{
    struct vote votes[JUDGE_VOTES_MAX];

    for (size_t i = 0; i < rule->votes; i++) {
        const struct judge_reading *reading = &readings[rule->swap ? 2 * i : i];
        votes[i] = (struct vote){reading->score, reading->label, rule->label_count > 0};
        if (rule->swap && !join(rule, reading, reading + 1, &votes[i], ret_problem))
            return false;
    }
    if (rule->votes > 1 && !rule->mean)
        return count_votes(rule, votes, ret_outcome, ret_problem);
    take_mean(rule, votes, ret_outcome);
    if (rule->votes == 1 && votes[0].has_label)
        ret_outcome->label = &rule->labels[votes[0].label];
    return true;
}
