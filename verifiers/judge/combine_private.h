/* combine: several readings of one question, as one score.
 *
 * Each vote is one reading, or two where the judge was asked in both orders: these must be the same label (the same
 * number, where there are no labels), or the rule says what else they are worth. Then votes are counted, or their mean is
 * taken. Pure; any thread. */
#ifndef VERIFIERS_JUDGE_COMBINE_PRIVATE_H
#define VERIFIERS_JUDGE_COMBINE_PRIVATE_H

#include "verifiers/judge/chat.h"
#include "verifiers/judge/read_private.h"

#define JUDGE_DISAGREED_CODE "judge_disagreed"
#define JUDGE_TIED_CODE "judge_tied"

struct judge_outcome {
    double score;
    const struct judge_label *label; /* NULL: the score is no label's */
};

/* readings: votes, or with swap twice as many: the first and the second order of each vote. False with the problem. */
bool judge_combine(const struct judge_rule *rule, const struct judge_reading *readings,
                   struct judge_outcome *ret_outcome, struct judge_problem *ret_problem);

#endif
