/* delivery: groups of batches with "deliver": "lease" on their way to the trainer. Part of store.h.
 *
 * A group is waiting until it is closed, then ready, or failed if no member has a reward. A lease takes ready groups; an
 * acknowledgement with the optimiser's step ends their way. A lease that is released, that expires, or that is open when
 * the trainer attaches or goes back to a checkpoint gives its groups back: they are ready again. A group that is too old
 * when a lease asks for it is stale for good. Every decision is made inside the operation's transaction.
 *
 * Age: the staleness of a group is the run's revision minus the oldest revision of any token in the group. If the run
 * went back below that revision since, it is the number of updates between the two weights over the checkpoint:
 * (group - rewound to) + (run - rewound to). It is never negative.
 *
 * Units: `lease_us` is a duration, other `_us` are UTC microseconds. Operations take their time from the clock of UTC.
 * Threads: operations as all others (store.h); what an operation gives in allocated memory is the caller's, who ends it
 * with the struct's finish function, whatever the status. Reads: the reader's thread. */
#ifndef STORE_DELIVERY_H
#define STORE_DELIVERY_H

#include "server/store/lease.h"
#include "server/store/policy_update.h"
#include "server/store/read.h"

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* How a run paces its dispatch: groups ready and in flight stay within groups_per_step * (max_staleness + 1). */
struct store_pacing {
    int64_t groups_per_step; /* >= 1 */
    int64_t max_staleness;   /* >= 0 */
    int64_t max_in_flight;   /* groups; -1: no bound of its own */
    enum store_on_stale on_stale;
};

#define STORE_LEASE_GROUPS_MAX 65536

/* TAKE_LEASE: up to `wanted` ready groups in order of their oldest revision, then of creation. Those older than the
 * smaller of max_staleness and their batch's become stale. OK with `taken` false: nothing, or (not `partly`) fewer than
 * `wanted` are eligible; then nothing is on record under the key. One transaction looks at a bounded number of groups:
 * `again` says that it ended before the queue did, and the same operation is to be submitted once more.
 * EXISTS: the key has taken this lease in the run's incarnation; results are those of then, except the state.
 * NOT_FOUND: no such run. */
struct store_take_lease {
    struct text run;
    int64_t wanted;            /* 1 to STORE_LEASE_GROUPS_MAX */
    int64_t max_staleness;     /* -1: none */
    int64_t lease_us;          /* >= 0: it expires so long after now */
    bool partly;               /* takes whatever is eligible, one at least */
    struct store_step_key key; /* route STORE_ROUTE_LEASES; counts within run and incarnation */
    /* out */
    char id[ID_BYTES]; /* the lease's; the first one's if it EXISTS */
    bool taken;
    bool again;
    int64_t returned;         /* groups of leases that had expired: others may have them */
    int64_t eligible;         /* !taken: groups that this lease could have; at most `wanted` */
    int64_t marked_stale;     /* by this operation */
    struct store_lease lease; /* if taken, or EXISTS */
    int64_t next_expiry_us;   /* of all open leases, of all runs; -1: none is open */
};

/* For the next three: NOT_FOUND: the run has no such lease. `groups` are ids; count 0: all that the lease has. */
struct store_lease_choice {
    struct text run;
    struct text lease;
    const struct text *groups;
    size_t count;
};

/* EXTEND_LEASE: it expires lease_us after now. STATE_CONFLICT: it has ended, or has expired. */
struct store_extend_lease {
    struct store_lease_choice of; /* without groups */
    int64_t lease_us;
    /* out */
    struct store_lease lease; /* also if STATE_CONFLICT */
    int64_t next_expiry_us;
};

/* RELEASE_LEASE: gives back what it holds of them; the rest is left as it is. */
struct store_release_lease {
    struct store_lease_choice of;
    /* out */
    struct store_lease lease;
    int64_t released; /* groups that are ready now; also those of a lease that had expired */
};

/* ACK_LEASE: all or nothing. STATE_CONFLICT: the lease does not hold one of the groups, because it expired, was released,
 * or another lease has it; or, with count 0, it holds nothing and has acknowledged nothing. Groups that this lease has
 * acknowledged before are left as they are: the first step stays. With count 0: all groups but those it released. */
struct store_ack_lease {
    struct store_lease_choice of;
    int64_t optimizer_step; /* >= 0 */
    /* out */
    struct store_lease lease;
    int64_t acked;                      /* by this operation; 0: a repetition */
    struct store_lease_groups conflict; /* STATE_CONFLICT: those that are not held */
};

/* EXPIRE_LEASES: open leases whose time has passed end, and their groups are ready. Also done by store_open(). */
struct store_expire_leases {
    char unused;
    /* out */
    int64_t leases;
    int64_t returned;       /* groups */
    int64_t next_expiry_us; /* of those still open; -1: none */
};

/* PUT_PACING: the run's from now on. The run is made if it is new. */
struct store_put_pacing {
    struct text run;
    struct store_pacing pacing;
};

/* ---- reads ------------------------------------------------------------------------------------------------------ */

/* NOT_FOUND: no such group, or one that is never leased. */
enum store_status store_read_delivery(struct store_reader *reader, struct text group_id,
                                      struct store_delivery *ret_delivery);
/* Groups of a run by state; of all runs if `run` is TEXT_NONE. From counters: the number of groups does not matter. */
struct store_delivery_counts {
    int64_t groups[STORE_DELIVERY_STATES];
};
enum store_status store_count_deliveries(struct store_reader *reader, struct text run,
                                         struct store_delivery_counts *ret_counts);
/* A lease with its groups, also one that has ended. NOT_FOUND: the run has none of this id. */
enum store_status store_read_lease(struct store_reader *reader, struct text run, struct text lease_id,
                                   struct store_lease *ret_lease, struct store_lease_groups *ret_groups);
/* The run's open leases, at most `limit`. NOT_FOUND: no such run. */
enum store_status store_list_open_leases(struct store_reader *reader, struct text run, size_t limit,
                                         struct store_leases *ret_leases);
/* NOT_FOUND: no such run, or it has no pacing. */
enum store_status store_read_pacing(struct store_reader *reader, struct text run, struct store_pacing *ret_pacing);

#endif
