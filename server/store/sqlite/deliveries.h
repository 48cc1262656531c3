/* deliveries: the moves of groups between the states of their delivery, inside an operation's transaction. Each keeps
 * the counters of the run. Private to the room. Writer thread. All return an SQLite result code. */
#ifndef SERVER_STORE_SQLITE_DELIVERIES_H
#define SERVER_STORE_SQLITE_DELIVERIES_H

#include "server/store/sqlite/operations.h"

/* `change` groups more in a state (negative: less). */
int deliveries_count(struct store *store, int64_t run_seq, enum store_delivery_state state, int64_t change);
/* From one state to another. */
int deliveries_move(struct store *store, int64_t run_seq, enum store_delivery_state from, enum store_delivery_state to,
                    int64_t groups);

/* A new group for leases is waiting. max_staleness -1: none. Not counted here: deliveries_count() does it for all. */
int deliveries_add(struct store *store, int64_t run_seq, int64_t group_seq, int64_t max_staleness);
/* Groups of the run that are waiting, ready or leased. */
int deliveries_count_undelivered(struct store *store, int64_t run_seq, int64_t *ret_groups);
/* A waiting group was closed with so many rewards; `drop`: it is not to be delivered. */
int deliveries_close(struct store *store, const struct group_row *group, int64_t rewarded, bool drop, bool *ret_ready);
/* The batch has ended before these were closed. */
int deliveries_fail_waiting(struct store *store, int64_t run_seq, int64_t batch_seq);

/* ---- leases ------------------------------------------------------------------------------------------------------ */

struct lease_row {
    int64_t seq;
    int64_t run_seq;
    int64_t held;
};
/* The words of lease_groups.outcome. */
#define LEASE_OUTCOME_HELD "held"
#define LEASE_OUTCOME_ACKED "acked"
#define LEASE_OUTCOME_RELEASED "released"
#define LEASE_OUTCOME_LOST "lost"

/* The lease holds so many groups less; with none left it ends so. */
int deliveries_let_go(struct store *store, const struct lease_row *lease, int64_t groups, enum store_lease_state how,
                      int64_t now_us);
/* The lease gives back all that it holds, and ends so. */
int deliveries_end_lease(struct store *store, const struct lease_row *lease, enum store_lease_state how,
                         int64_t now_us);
/* All leases whose time has passed; run_seq -1: of all runs. *ret_leases and *ret_groups are added to. */
int deliveries_expire(struct store *store, int64_t run_seq, int64_t now_us, int64_t *ret_leases, int64_t *ret_groups);
/* All open leases of a run. *ret_groups is added to. */
int deliveries_end_leases(struct store *store, int64_t run_seq, enum store_lease_state how, int64_t now_us,
                          int64_t *ret_groups);
/* The earliest expiry of an open lease; -1: none is open. */
int deliveries_next_expiry(struct store *store, int64_t *ret_expiry_us);

/* ---- rewinds ----------------------------------------------------------------------------------------------------- */

/* Whether a group of the run was acknowledged with a later step. */
int deliveries_find_acked_after(struct store *store, int64_t run_seq, int64_t optimizer_step, bool *ret_found);
/* The run went back to a step: its leases end, and what was acknowledged later is ready. *ret_groups is added to. */
int deliveries_rewind(struct store *store, int64_t run_seq, int64_t optimizer_step, int64_t now_us,
                      int64_t *ret_groups);

/* ---- age --------------------------------------------------------------------------------------------------------- */

/* How old a ready group is for the run as it stands. incarnation, revision: of the row of its delivery. */
int deliveries_find_staleness(struct store *store, const struct run_row *run, int64_t group_seq, int64_t incarnation,
                              int64_t revision, int64_t *ret_staleness);

#endif
