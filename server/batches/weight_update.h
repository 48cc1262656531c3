/* weight_update: the updates that stop the dispatch of their runs, and their waiters. weight_hold.h decides, this
 * carries out. Loop thread only.
 *
 * The record decides which steps are taken (store.h, STORE_UPDATE_POLICY); here is what follows of each. */
#ifndef SERVER_BATCHES_WEIGHT_UPDATE_H
#define SERVER_BATCHES_WEIGHT_UPDATE_H

#include "server/base/text.h"
#include "server/batches/batch.h"
#include "server/batches/weight_hold.h"
#include "server/store/store.h"

struct batches;
struct live_batch;
struct run_state;
struct weight_update;

/* Outcome of a begin. */
enum begin_end {
    BEGIN_HOLDS,     /* what its mode promises is true */
    BEGIN_CUT_SHORT, /* the update ended before that; record->state says how */
    BEGIN_OVER,      /* it had ended before, cancelled or by its deadline */
};

/* Waits for a begin. Lives inside its owner's struct. */
struct begin_waiter {
    /* Once, perhaps from inside update_begun(). The record lives during the call; the waiter is not touched afterwards. */
    void (*done)(void *arg, enum begin_end end, const struct store_policy_update *record);
    void *arg;
    struct weight_update *update; /* NULL: it waits for none */
    struct begin_waiter *next;
};

/* More open ones than that are refused. */
#define UPDATES_MAX 256

/* The open update of a run, or NULL. */
struct weight_update *update_find(struct batches *batches, struct text run);
bool updates_are_full(const struct batches *batches);
void updates_finish(struct batches *batches); /* after the last waiter, and after the store is closed */

/* After a start, what the record has as open, before the batches of the run are back. */
void update_restore(struct batches *batches, struct text run, const struct store_policy_update *record);
/* A begin is on record (OK), or was before (EXISTS). The waiter is told once the update is quiet, or when it ends before;
 * NULL: none waits. */
void update_begun(struct batches *batches, const struct store_op *op, struct begin_waiter *waiter);
/* The waiter gets no call any more. */
void update_leave(struct begin_waiter *waiter);
/* A commit or a cancellation that the store has decided. */
void update_ended(struct batches *batches, const struct store_op *op);
/* A declaration has cancelled the run's open update; that is on record. */
void update_cancelled(struct batches *batches, struct text run, const struct store_policy_update *record);
/* The run has another revision: the warning that its last update was not committed is obsolete. */
void update_forget_warning(struct batches *batches, struct text run);

/* False: a commit would come too early; *ret_in_flight samples are still to end. */
bool update_may_be_committed(struct batches *batches, struct text run, size_t *ret_in_flight);
/* Something has happened in a batch of the run. */
void update_look(const struct run_state *run);

/* The next rollout of the batch that its run may dispatch, or -1. *ret_held: only the update is in the way. */
int64_t update_next_rollout(struct live_batch *live, bool *ret_held);
/* A sample that ends now may have been made in part by the revision of an open update in mode straddle: which; -1: none
 * is open. */
int64_t update_mixed_revision(const struct run_state *run);
bool update_holds(const struct live_batch *live);

/* An update as people see it. */
struct update_view {
    const char *run;
    const struct store_policy_update *record;
    enum hold_phase phase;
    size_t in_flight; /* samples; 0 when it has ended */
};
/* The first update (previous NULL), or the one that began after `previous`; NULL: there is none. Those that a deadline
 * ended are among them. */
const struct weight_update *updates_next(const struct batches *batches, const struct weight_update *previous,
                                         struct update_view *ret_view);

#endif
