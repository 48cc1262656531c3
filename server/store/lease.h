/* lease: groups on loan to a trainer, as they are on record (delivery.h has what is done with them). Part of store.h. */
#ifndef STORE_LEASE_H
#define STORE_LEASE_H

#include "server/base/ids.h"
#include "server/base/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_DELIVERY_STATE(name, word) STORE_DELIVERY_##name,
#define STORE_LEASE_STATE(name, word) STORE_LEASE_##name,
#define STORE_ON_STALE(name, word) STORE_ON_STALE_##name,

enum store_delivery_state { DELIVERY_STATE_WORDS(STORE_DELIVERY_STATE) STORE_DELIVERY_STATES };
enum store_lease_state { LEASE_STATE_WORDS(STORE_LEASE_STATE) };
enum store_on_stale { ON_STALE_WORDS(STORE_ON_STALE) };
extern const char *const store_delivery_state_names[];
extern const char *const store_lease_state_names[];
extern const char *const store_on_stale_names[];

/* One group's way. */
struct store_delivery {
    enum store_delivery_state state;
    char lease[ID_BYTES];   /* LEASED: which holds it. ACKED: by which. "": neither */
    int64_t deliveries;     /* how often a lease has taken it */
    int64_t optimizer_step; /* ACKED: of the acknowledgement. -1: not acked */
    int64_t staleness;      /* at its last delivery, or when it was found stale; -1: neither */
};

/* A group of a lease. */
struct store_lease_group {
    char id[ID_BYTES];
    bool is_of_lease;                /* this lease had it; false only for an id that a request names */
    bool is_held;                    /* by this lease, now */
    int64_t delivery;                /* which of the group's deliveries this was: 1 at first */
    int64_t staleness;               /* at this delivery */
    bool is_known;                   /* there is such a group, and it is leased */
    struct store_delivery on_record; /* then: as it stands now, whoever has it */
};
struct store_lease_groups {
    struct store_lease_group *groups; /* in order of delivery */
    size_t count;
};
void store_lease_groups_finish(struct store_lease_groups *groups); /* zeroed is fine */

struct store_lease {
    char id[ID_BYTES];
    enum store_lease_state state; /* OPEN also past expires_at_us, until the next EXPIRE_LEASES or use */
    int64_t taken_at_us;
    int64_t expires_at_us;
    int64_t ended_at_us;     /* -1: open */
    int64_t incarnation;     /* the run's, at the delivery */
    int64_t policy_revision; /* likewise; -1: none declared */
    int64_t max_staleness;   /* as asked for; -1: none */
    int64_t group_count;     /* delivered */
    int64_t held;            /* of those, not yet acked, released or lost */
};
struct store_leases {
    struct store_lease *leases; /* in order of creation */
    size_t count;
};
void store_leases_finish(struct store_leases *leases); /* zeroed is fine */

#endif
