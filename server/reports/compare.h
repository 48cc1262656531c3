/* compare: two runs at equal cost, task by task: GET /v1/compare.
 *
 * Runs whose sampling, verifiers, masks, data (task sets) or evaluation differ are not comparable. Of each run whole groups count, in
 * order of creation, until the next one would exceed the smaller run's total. Revisions that a rewind left behind count
 * as spent and in no other number: each revision counts in the latest incarnation that the budget reached. */
#ifndef SERVER_REPORTS_COMPARE_H
#define SERVER_REPORTS_COMPARE_H

#include "server/http/call.h"
#include "server/store/tags.h"

enum compare_budget { COMPARE_TOKENS, COMPARE_ROLLOUTS, COMPARE_REVISIONS };
extern const char *const compare_budget_names[]; /* "completion_tokens" …, NULL */

struct compare_query {
    struct text runs[2]; /* a, b */
    enum compare_budget budget;
    struct text ignore;                    /* keys, separated by commas, each with all below it; TEXT_NONE: none */
    struct store_tag tags[STORE_TAGS_MAX]; /* of the groups whose numbers count: all of them; costs are the run's */
    size_t tag_count;
    struct text split; /* name of the tag that the numbers are split by; TEXT_NONE: none */
};

/* Worker. Answers or refuses the call. Reads are no longer than a batch. */
void compare_answer(struct call *call, const struct compare_query *query);

#endif
