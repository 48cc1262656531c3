/* policy_update: weight updates in steps, as the record has them. Part of store.h. */
#ifndef STORE_POLICY_UPDATE_H
#define STORE_POLICY_UPDATE_H

#include "server/base/hash.h"
#include "server/base/text.h"
#include "server/base/words.h"
#include "server/store/lease.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_UPDATE_MODE(name, word) STORE_UPDATE_##name,

enum store_update_mode { UPDATE_MODE_WORDS(STORE_UPDATE_MODE) };
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

/* The routes whose requests may have an Idempotency-Key, and their words on record. */
enum store_route {
    STORE_ROUTE_BATCHES,
    STORE_ROUTE_SCORE,
    STORE_ROUTE_POLICY,
    STORE_ROUTE_BEGIN,
    STORE_ROUTE_COMMIT,
    STORE_ROUTE_CANCEL,
    STORE_ROUTE_ATTACH,
    STORE_ROUTE_LEASES,
};
extern const char *const store_route_names[];

/* The key of a policy step, or of a lease. That of a step counts within the run, whatever its incarnation. With a key that is on record the step
 * is EXISTS, with what was answered then, or IDEMPOTENCY_CONFLICT if the body was another. */
struct store_step_key {
    struct text key; /* TEXT_NONE: none */
    enum store_route route;
    uint8_t request_sha256[SHA256_BYTES];
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
    struct store_step_key key;
    /* out */
    bool repeated; /* OK, but only the key was new: the step had been taken before */
    int64_t now_us;
    int64_t incarnation;      /* the run's, after the operation */
    int64_t current_revision; /* the run's, after the operation; -1: none */
    int64_t returned;         /* groups that a rewind made ready */
};

/* REVISION_CONFLICT: smaller than the run's revision, without a rewind. STATE_CONFLICT: a weight update of the run is
 * open, and it is not to be cancelled; `update` is that one. The run is made if it is new.
 * A rewind ends the run's open leases, and groups acknowledged after its step are ready again. The same rewind again
 * opens no second incarnation, if nothing was declared, and nothing acknowledged after its step, in between. */
struct store_declare_policy {
    struct text run;
    int64_t revision;
    int64_t rewind_to_step; /* -1: no rewind */
    bool cancel_open;       /* an open update ends as cancelled */
    /* rewind_to_step counts only if the revision is below the run's, or a group was acknowledged after it: attach. */
    bool rewind_if_below;
    bool end_leases; /* open leases end, and their groups are ready */
    struct store_step_key key;
    /* out */
    int64_t incarnation;
    int64_t current_revision;  /* after the operation */
    int64_t previous_revision; /* before it, -1: none */
    int64_t taken_at_us;       /* when it was */
    int64_t returned;          /* groups that it made ready */
    struct store_leases
        ended_leases; /* with end_leases: by this step, in order of creation; for store_leases_finish() */
    struct store_policy_update update; /* the one that this cancelled, revision -1: none; or the one in the way */
};

#endif
