/* graded_steps: the steps of a recorded rollout as the estimator process sees them, and advantages of tokens. Pure; any
 * thread. */
#ifndef SERVER_RECORD_GRADED_STEPS_H
#define SERVER_RECORD_GRADED_STEPS_H

#include "server/base/text.h"
#include "server/objective/objective.h"
#include "server/store/rollout.h"

/* One pool: the steps of all verdicts that count for the reward with a weight other than 0, each grade times the weight. The
 * outcome is the sum over the other ones that count. A gate that is shut makes all of them 0, as it does the reward. */
struct graded_steps {
    struct objective_step *steps; /* in order of their ends; never NULL */
    size_t count;
    bool has_outcome;
    double outcome;
};

/* rewards, verdicts: JSON of the rollout, TEXT_NONE: none. missing: OBJECTIVE_MISSING_…. graded_steps_finish() is needed. */
void graded_steps_read(struct text rewards, struct text verdicts, int missing, struct graded_steps *ret_steps);
void graded_steps_finish(struct graded_steps *steps);

/* Room for the advantages of the tokens of all sequences, which point into it; to be freed. NULL: by this rule each has one
 * number. */
double *graded_steps_room(const struct objective_knobs *knobs, struct objective_sequence *sequences, size_t count);

/* One advantage for each token, [token_count], to be freed. NULL: the rollout has one number. */
double *token_advantages_of(const struct store_rollout *rollout);
/* The same as runs, to be freed (never NULL). */
struct store_advantage *token_advantage_runs(const double *advantages, size_t token_count, size_t *ret_count);

#endif
