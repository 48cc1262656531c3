/* disagreements: two verifiers over the same rollouts, and the advantages with one in place of the other.
 *
 * From the record: verdicts as they were given, first or later. Nothing is stored. A verdict without a score is no number: it agrees only
 * with another one without. */
#ifndef SERVER_REPORTS_DISAGREEMENTS_H
#define SERVER_REPORTS_DISAGREEMENTS_H

#include "server/http/call.h"
#include "server/store/rollout_filter.h"

#define DISAGREEMENTS_ROLLOUTS_MAX 200000
#define DISAGREEMENTS_LISTED_MAX 200 /* pairs of reasons and scores */
#define DISAGREEMENTS_EXAMPLES_MAX 10

struct disagreements_query {
    struct store_rollout_filter filter; /* has a run */
    struct text a, b;                   /* ids of verifiers */
    /* "first", or the reverification whose verdicts are compared; TEXT_NONE: the first verdict where there is one of this id, else
     * the newest later one */
    struct text a_from, b_from;
};

/* GET /v1/disagreements. Worker thread, with its reader in the call; answers or refuses. */
void disagreements_answer(struct call *call, const struct disagreements_query *query);

#endif
