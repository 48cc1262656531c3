/* Reverifications compared with the verdicts that they count. */
#include "server/store/sqlite/verify_private.h"

#include <stddef.h>

#define OF_RUNS " FROM reverifications v JOIN runs u ON u.seq = v.run_seq"
#define ITS_VERDICTS " FROM later_verdicts l WHERE l.reverification_seq = v.seq"
#define REWARDED " AND l.reward_from IS NOT NULL AND l.reward IS NOT NULL"
/* Beyond what the roundings of two sums in different orders come to; a sum beyond a double is NULL, and not compared. */
#define DIFFERS(kept, column)                                                                                          \
    "abs(v." kept " + v." kept "_lost - (SELECT total(l." column ")" ITS_VERDICTS REWARDED                             \
    ")) > 1e-9 * (SELECT total(abs(l." column "))" ITS_VERDICTS REWARDED ")"

const struct verify_invariant verify_reverify[] = {
    {"a reverification's counters are not those of its verdicts",
     "SELECT v.id" OF_RUNS " WHERE v.judged <> (SELECT count(*)" ITS_VERDICTS
     ") OR v.rewarded <> (SELECT count(*)" ITS_VERDICTS REWARDED
     ") OR v.flipped <> (SELECT count(*) FROM verdict_flips f WHERE f.reverification_seq = v.seq)"
     " OR v.unscored <> (SELECT count(*) FROM later_verdicts l, json_each(l.verdicts) e WHERE l.reverification_seq = "
     "v.seq"
     " AND json_extract(e.value, '$.score') IS NULL) LIMIT 20"},
    {"a reverification's rewards are not those of its verdicts",
     "SELECT v.id" OF_RUNS
     " WHERE " DIFFERS("reward_from", "reward_from") " OR " DIFFERS("reward_to", "reward") " LIMIT 20"},
    {"a later verdict is of a rollout that is of another run, not scored, or behind the last one",
     "SELECT v.id || ' rollout ' || r.seq" OF_RUNS " JOIN later_verdicts l ON l.reverification_seq = v.seq"
     " JOIN rollouts r ON r.seq = l.rollout_seq WHERE r.run_seq <> v.run_seq OR r.state <> 'scored'"
     " OR r.seq > v.last_rollout LIMIT 20"},
    {"a flip is of a rollout that was not judged again",
     "SELECT v.id || ' rollout ' || f.rollout_seq" OF_RUNS " JOIN verdict_flips f ON f.reverification_seq = v.seq"
     " LEFT JOIN later_verdicts l ON l.rollout_seq = f.rollout_seq AND l.reverification_seq = v.seq"
     " WHERE l.seq IS NULL LIMIT 20"},
};

const size_t verify_reverify_count = sizeof(verify_reverify) / sizeof(verify_reverify[0]);
