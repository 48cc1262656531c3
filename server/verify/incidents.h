/* incidents: completions that crash or hang a verifier. A policy may learn to make them, so they are counted for each
 * run and verifier, kept for the operator (kept_inputs_private.h), and an alarm is raised if they are
 * more than a share of the completions judged lately.
 *
 * The observer of the verify_pool. Loop thread only; files are written by workers. Counts are of this process and
 * of the 1,000 runs with the latest incidents. */
#ifndef SERVER_VERIFY_INCIDENTS_H
#define SERVER_VERIFY_INCIDENTS_H

#include "server/base/json_write.h"
#include "server/runtime/workers.h"
#include "server/verify/pool.h"

struct incidents;

struct incidents_rules {
    const char *database; /* the folder is beside it: its name and ".crashes" */
    int64_t keep_files;   /* 0: none are kept */
    int64_t keep_bytes;
    double alarm_share; /* of the completions judged lately; 0: no alarm */
    int64_t window;     /* that many are "lately"; it begins with a run's first incident */
};

struct incidents *incidents_create(struct workers *workers, const struct incidents_rules *rules);
void incidents_destroy(struct incidents *incidents); /* behind workers_destroy(); NULL is fine */

void incidents_observe(struct incidents *incidents, struct verify_observer *ret_observer);

/* "verifier_incidents": [{"run","verifier","crashed","timed_out","lately":{"judged","lost"},"alarm","last_at",
 * "last_rollout","last_file"}], of one run or (TEXT_NONE) of all. */
void incidents_write(struct json_write *json, const struct incidents *incidents, struct text run);
size_t incidents_alarms(const struct incidents *incidents); /* runs and verifiers that have one now */

#endif
