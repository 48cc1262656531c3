/* Invariants of deliveries and leases. */
#include "server/store/sqlite/verify_private.h"

#define SHOWN " LIMIT 20"
#define GROUP_NAME "b.id || ' group ' || g.group_index"
/* d: a delivery, with its group and batch. */
#define DELIVERIES " FROM deliveries d JOIN groups g ON g.seq = d.group_seq JOIN batches b ON b.seq = g.batch_seq"
/* x: a delivery of a lease l. */
#define LEASE_GROUPS                                                                                                   \
    " FROM lease_groups x JOIN leases l ON l.seq = x.lease_seq JOIN groups g ON g.seq = x.group_seq JOIN batches b ON" \
    " b.seq = g.batch_seq"

const struct verify_invariant verify_deliveries[] = {
    {"a group for leases has no delivery, or another group has one",
     "SELECT " GROUP_NAME
     " FROM groups g JOIN batches b ON b.seq = g.batch_seq LEFT JOIN deliveries d ON d.group_seq = "
     "g.seq WHERE (b.deliver = 'lease' AND b.purpose = 'train') <> (d.group_seq IS NOT NULL) OR d.run_seq <> "
     "b.run_seq" SHOWN},
    {"a run's counts of deliveries are not those of its groups",
     "SELECT u.name || ' ' || s.state FROM runs u CROSS JOIN (SELECT DISTINCT state FROM deliveries UNION SELECT state"
     " FROM delivery_counts) s WHERE coalesce((SELECT c.group_count FROM delivery_counts c WHERE c.run_seq = u.seq AND"
     " c.state = s.state), 0) <> (SELECT count(*) FROM deliveries d WHERE d.run_seq = u.seq AND d.state = "
     "s.state)" SHOWN},
    {"a group waits that is closed, or whose batch has ended",
     "SELECT " GROUP_NAME DELIVERIES " WHERE d.state = 'waiting' AND (g.state <> 'running' OR b.state <> "
     "'running')" SHOWN},
    {"a group can be leased that is not closed, or has no reward",
     "SELECT " GROUP_NAME DELIVERIES " WHERE d.state <> 'waiting' AND d.state <> 'failed' AND d.state <> 'dropped' AND"
     " (g.state <> 'complete' OR g.rewarded = 0)" SHOWN},
    {"a leased group is not held by one open lease of its run",
     "SELECT " GROUP_NAME DELIVERIES
     " WHERE d.state = 'leased' AND NOT EXISTS (SELECT 1 FROM leases l JOIN lease_groups"
     " x ON x.lease_seq = l.seq WHERE l.seq = d.lease_seq AND l.run_seq = d.run_seq AND l.state = 'open' AND"
     " x.group_seq = d.group_seq AND x.outcome = 'held')" SHOWN},
    {"a lease holds a group that is not leased by it",
     "SELECT l.id || ' ' || " GROUP_NAME LEASE_GROUPS " WHERE x.outcome = 'held' AND NOT EXISTS (SELECT 1 FROM"
     " deliveries d WHERE d.group_seq = x.group_seq AND d.state = 'leased' AND d.lease_seq = l.seq)" SHOWN},
    {"a lease has another number of groups, or holds another number, than it says",
     "SELECT l.id FROM leases l WHERE (l.group_count, l.held) <> (SELECT count(*), count(CASE WHEN x.outcome = 'held'"
     " THEN 1 END) FROM lease_groups x WHERE x.lease_seq = l.seq)" SHOWN},
    {"a group was acknowledged twice in one incarnation",
     "SELECT " GROUP_NAME " || ' incarnation ' || l.incarnation" LEASE_GROUPS " WHERE x.outcome = 'acked' GROUP BY"
     " x.group_seq, l.incarnation HAVING count(*) > 1" SHOWN},
    {"an acknowledged group is not one that its lease acknowledged",
     "SELECT " GROUP_NAME DELIVERIES " WHERE d.state = 'acked' AND NOT EXISTS (SELECT 1 FROM lease_groups x WHERE"
     " x.lease_seq = d.lease_seq AND x.group_seq = d.group_seq AND x.outcome = 'acked')" SHOWN},
    {"a group has another number of deliveries than leases that had it",
     "SELECT " GROUP_NAME DELIVERIES " WHERE d.deliveries <> (SELECT count(*) FROM lease_groups x WHERE x.group_seq ="
     " d.group_seq)" SHOWN},
};
const size_t verify_deliveries_count = sizeof verify_deliveries / sizeof verify_deliveries[0];
