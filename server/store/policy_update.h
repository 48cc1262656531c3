/* policy_update: weight updates in steps, as the record has them. Part of store.h. */
#ifndef STORE_POLICY_UPDATE_H
#define STORE_POLICY_UPDATE_H

#include "server/base/text.h"

#include <stdint.h>

enum store_update_mode { STORE_UPDATE_WAIT, STORE_UPDATE_ABORT, STORE_UPDATE_STRADDLE };
enum store_update_state { STORE_UPDATE_OPEN, STORE_UPDATE_COMMITTED, STORE_UPDATE_CANCELLED, STORE_UPDATE_EXPIRED };

/* The words on record and on the wire, by enum value, each list ended by NULL. */
extern const char *const store_update_mode_names[];
extern const char *const store_update_state_names[];

/* A weight update in steps, as it is on record. */
struct store_policy_update {
    int64_t revision;
    int64_t rewind_to_step; /* -1: none */
    enum store_update_mode mode;
    enum store_update_state state;
    int64_t begun_at_us;
    int64_t deadline_us;
    int64_t ended_at_us;       /* -1: open */
    int64_t incarnation;       /* of the run when it was begun; committed: the one it led to */
    int64_t previous_revision; /* the run's before it, -1: none declared */
};

enum store_update_step { STORE_STEP_BEGIN, STORE_STEP_COMMIT, STORE_STEP_CANCEL, STORE_STEP_EXPIRE };

/* BEGIN opens an update; the others end the open one. COMMIT declares its revision, opens the next incarnation if it is
 * a rewind, and in mode abort moves unfinished batches to it: all for training, and evaluations of the revision that
 * was current. A step that was taken before (the same begin while it is open; the end of the newest update) is EXISTS,
 * and `update` is what it was then. STATE_CONFLICT: another update is open, none is open, or it ended otherwise.
 * REVISION_CONFLICT: BEGIN with a revision smaller than the run's, without a rewind. The run is made if it is new. */
struct store_update_policy {
    enum store_update_step step;
    struct text run;
    /* in; BEGIN: all of them. COMMIT, CANCEL: the open update must be to this revision, -1: whichever it is.
     * out: the update; if there is a conflict the one that is in the way, state COMMITTED and revision -1 for none */
    struct store_policy_update update;
    /* out */
    int64_t now_us;
    int64_t incarnation;      /* the run's, after the operation */
    int64_t current_revision; /* the run's, after the operation; -1: none */
};

#endif
