/* weight_update: the updates that stop the dispatch of their runs, and who waits for them. The effects to
 * weight_hold.h's decisions. Loop thread only.
 *
 * The record decides which steps are taken (store.h, STORE_UPDATE_POLICY); here is what follows of each. */
#ifndef SERVER_BATCHES_WEIGHT_UPDATE_H
#define SERVER_BATCHES_WEIGHT_UPDATE_H

#include "server/base/json_write.h"
#include "server/base/text.h"
#include "server/batches/batch.h"
#include "server/batches/weight_hold.h"
#include "server/http/http.h"
#include "server/store/store.h"

struct batches;
struct flight;
struct live_batch;
struct run_state;
struct weight_update;

/* More open ones than that are refused. */
#define UPDATES_MAX 256

/* The open update of a run, or NULL. */
struct weight_update *update_find(struct batches *batches, struct text run);
bool updates_are_full(const struct batches *batches);
void updates_finish(struct batches *batches);

/* After a start, what the record has as open, before the batches of the run are back. */
void update_restore(struct batches *batches, struct text run, const struct store_policy_update *record);
/* A begin is on record (OK), or was before (EXISTS). The request, if there is one still, is answered by
 * policy_answer_begun() once the update is quiet, or refused when it ends before. */
void update_begun(struct batches *batches, const struct store_op *op, struct request *request);
/* A commit or a cancellation that the store has decided. */
void update_ended(struct batches *batches, const struct store_op *op);
/* A declaration has cancelled the run's open update; that is on record. */
void update_cancelled(struct batches *batches, struct text run, const struct store_policy_update *record);
/* The run has another revision: a warning that its last update was not committed is of no more use. */
void update_forget_warning(struct batches *batches, struct text run);

/* False: a commit would come too early; *ret_in_flight samples are still to end. */
bool update_may_be_committed(struct batches *batches, struct text run, size_t *ret_in_flight);
/* Something has happened in a batch of the run. */
void update_look(const struct run_state *run);

/* The next rollout of the batch that its run may dispatch, or -1. *ret_held: only the update is in the way. */
int64_t update_next_rollout(struct live_batch *live, bool *ret_held);
/* The sample of a flight is complete: which revision the run has now, and that of an update in mode straddle, by which
 * it may have been made in part. */
void update_stamp_end(struct flight *flight);
bool update_holds(const struct live_batch *live);

/* The member "updates" of GET /v1/pending: open ones, and those that a deadline ended. run TEXT_NONE: of all runs. */
void updates_write(struct json_write *json, const struct batches *batches, struct text run);
/* api/policy_steps.c */
void policy_answer_begun(struct request *request, struct text run, const struct store_policy_update *record);

#endif
