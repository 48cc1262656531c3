/* audit: rewards and advantages under another weight of one verifier.
 *
 * Scores and weights come from the request, or from the record of a run. For each weight of the sweep the rewards, and by
 * the same objective the advantages, are computed anew; they are held against a truth, a score that the reward did not
 * need to know. Nothing is stored. A member without a score has no reward: it is in no mean, no pair and no list. */
#ifndef SERVER_REPORTS_AUDIT_H
#define SERVER_REPORTS_AUDIT_H

#include "server/input/input.h"

#define AUDIT_WEIGHTS_MAX 32
#define AUDIT_WEIGHT_LARGEST 1e9
#define AUDIT_MEMBERS_MAX 65536              /* completions of a request, rollouts of a revision or a batch */
#define AUDIT_NAMES_MAX 256                  /* of scores */
#define AUDIT_NAME_BYTES 64                  /* as an id of a verifier */
#define AUDIT_SCORES_MAX 4194304             /* of all completions together, missing ones included */
#define AUDIT_TASK_BYTES 1024                /* as a task of a batch */
#define AUDIT_LISTED_MAX 100                 /* members in one list `promoted` */
#define AUDIT_LISTED_BYTES ((size_t)1 << 20) /* after which a list ends */
#define AUDIT_HISTORY_MAX 200000             /* rollouts of a run in which a divergence is looked for */

/* POST /v1/audits, all but the adversarial probes. Worker thread, with its reader in the call; answers or refuses. */
void audit_answer(struct json_input *input);

#endif
