/* weight_hold: whether a run may dispatch while its weights are updated in steps. Decisions only: the clock is passed
 * in.
 *
 *   STOPPING  mode wait: members of groups that were begun still go, so that each group is of one revision
 *   QUIET     nothing goes; what the mode promises is true (wait, abort: nothing is in flight), and the begin is
 * answered ENDED     committed, cancelled, or past the deadline: everything goes
 *
 * A hold always ends, because a deadline that passes ends it whatever else happens. */
#ifndef SERVER_BATCHES_WEIGHT_HOLD_H
#define SERVER_BATCHES_WEIGHT_HOLD_H

#include "server/base/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of enum store_update_mode: both are made of one list. */
#define HOLD_MODE(name, word) HOLD_##name,
enum hold_mode { UPDATE_MODE_WORDS(HOLD_MODE) };
enum hold_phase { HOLD_STOPPING, HOLD_QUIET, HOLD_ENDED };
enum hold_allows { ALLOWS_NOTHING, ALLOWS_BEGUN_GROUPS, ALLOWS_ALL };

struct weight_hold {
    enum hold_mode mode;
    enum hold_phase phase;
    int64_t deadline_us; /* CLOCK_MONOTONIC */
};

void hold_begin(struct weight_hold *hold, enum hold_mode mode, int64_t deadline_us);
/* One that is on record: whatever was in flight ended with the process that sent it, and the weights may be half
 * changed, so that nothing goes. */
void hold_restore(struct weight_hold *hold, enum hold_mode mode, int64_t deadline_us);

/* Members that may be dispatched now. Past the deadline: all, also before hold_expire() was called. */
enum hold_allows hold_allows(const struct weight_hold *hold, int64_t now_us);

/* in_flight: samples at engines; owed: members of begun groups that are still to be sent. True if it became quiet now.
 */
bool hold_look(struct weight_hold *hold, size_t in_flight, size_t owed);

/* True if it ends by its deadline now. */
bool hold_expire(struct weight_hold *hold, int64_t now_us);
void hold_end(struct weight_hold *hold);

/* Whether a sample that ends now may have been made by the new weights already, in part or as a whole. */
bool hold_mixes(const struct weight_hold *hold);
/* Whether a commit may come: what begin promised is true. */
bool hold_may_commit(const struct weight_hold *hold);

#endif
