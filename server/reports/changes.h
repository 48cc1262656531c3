/* changes: the changes of settings, models and programs within a run, batch by batch: GET /v1/runs/{run}/changes.
 *
 * A batch is compared with the one before it of the same purpose: the settings of all its groups, and the models and
 * programs that made its rollouts. A batch without rollouts has the models and programs of the one before. */
#ifndef SERVER_REPORTS_CHANGES_H
#define SERVER_REPORTS_CHANGES_H

#include "server/http/call.h"
#include "server/store/words.h"

struct changes_query {
    struct text run;
    int purpose;        /* enum store_purpose */
    struct text cursor; /* TEXT_NONE: from the first batch */
    size_t limit;       /* items */
};

/* Worker. Answers or refuses the call. A page is made of short reads, and ends early when it has looked at many batches.
 */
void changes_answer(struct call *call, const struct changes_query *query);

#endif
