/* Roll-ups compared with the rollouts that they count. */
#include "server/store/sqlite/verify_private.h"

#include <stddef.h>

/* The rollouts that are in roll-ups, each with its deciding score (server/store/deciding_score.h). */
#define ROLLED                                                                                                         \
    "WITH rolled AS (SELECT r.*, g.rewarded, g.zero_variance,"                                                         \
    " CASE WHEN b.pass_verifier IS NULL AND EXISTS (SELECT 1 FROM json_each(v.heldout))"                               \
    " THEN (SELECT json_extract(value, '$.score') FROM json_each(v.heldout) LIMIT 1)"                                  \
    " WHEN b.pass_verifier IS NULL THEN r.reward"                                                                      \
    " WHEN EXISTS (SELECT 1 FROM json_each(v.heldout) WHERE key = b.pass_verifier)"                                    \
    " THEN (SELECT json_extract(value, '$.score') FROM json_each(v.heldout) WHERE key = b.pass_verifier)"              \
    " ELSE (SELECT json_extract(value, '$.score') FROM json_each(v.rewards) WHERE key = b.pass_verifier)"              \
    " END AS score FROM rollouts r JOIN groups g ON g.seq = r.group_seq JOIN batches b ON b.seq = g.batch_seq"         \
    " LEFT JOIN rollout_verdicts v ON v.rollout_seq = r.seq"                                                           \
    " WHERE b.seq > (SELECT last_batch FROM rollup_start) AND (g.state = 'complete' OR b.state <> 'running')),"        \
    " whole AS (SELECT group_seq FROM rolled GROUP BY group_seq"                                                       \
    " HAVING min(incarnation) = max(incarnation) AND min(policy_revision) = max(policy_revision))"

#define KEY "run_seq, incarnation, policy_revision, purpose, task_seq"

#define COUNTED                                                                                                        \
    "SELECT " KEY ", count(*) AS n, sum(state = 'scored'), sum(state = 'failed'), sum(state = 'cancelled'),"           \
    " count(reward), min(reward), max(reward), sum(iif(reward IS NULL, 0, completion_tokens)),"                        \
    " sum(completion_tokens), max(completion_tokens), sum(reward IS NOT NULL AND finish_reason IS 'length'),"          \
    " sum(straddles), sum(coalesce(duplicate, 0)), count(score), sum(coalesce(score >= 1, 0)), sum(engine_us),"        \
    " count(revision_at_end) FROM rolled GROUP BY " KEY
#define KEPT                                                                                                           \
    "SELECT " KEY ", n, scored, failed, cancelled, judged, reward_min, reward_max, judged_tokens, tokens,"             \
    " tokens_max, truncated, straddles, duplicates, decided, solved, engine_us, ended FROM rollups"

#define GROUPS_COUNTED                                                                                                 \
    "SELECT " KEY ", count(*), sum(rewarded > 0), sum(rewarded > 0 AND zero_variance) FROM"                            \
    " (SELECT DISTINCT group_seq, " KEY ", coalesce(rewarded, 0) AS rewarded, coalesce(zero_variance, 0) AS"           \
    " zero_variance FROM rolled WHERE group_seq IN whole) GROUP BY " KEY
#define GROUPS_KEPT                                                                                                    \
    "SELECT " KEY ", group_count, judged_groups, zero_variance_groups FROM rollups WHERE group_count <> 0"             \
    " OR judged_groups <> 0 OR zero_variance_groups <> 0"

#define SPLIT                                                                                                          \
    "SELECT DISTINCT run_seq, group_seq, incarnation, policy_revision FROM rolled WHERE group_seq NOT IN whole"
#define SPLIT_KEPT "SELECT run_seq, group_seq, incarnation, policy_revision FROM rollup_groups"

#define NAMED(rows)                                                                                                    \
    ROLLED " SELECT u.name || ' incarnation ' || x.incarnation || ' revision ' || x.policy_revision FROM (" rows       \
           ") x JOIN runs u ON u.seq = x.run_seq LIMIT 20"
/* Rows of only one of the two. */
#define DIFFERENT(left, right)                                                                                         \
    "SELECT * FROM (" left " EXCEPT " right ") UNION ALL SELECT * FROM (" right " EXCEPT " left ")"

/* Held-out scores, one row each. */
#define SCORED                                                                                                         \
    "SELECT r.run_seq, r.incarnation, r.policy_revision, r.purpose, r.task_seq, e.key AS verifier,"                    \
    " json_extract(e.value, '$.score') AS score FROM rolled r JOIN rollout_verdicts v ON v.rollout_seq = r.seq"        \
    " JOIN json_each(v.heldout) e"
#define SCORES_COUNTED "SELECT " KEY ", verifier, count(score) FROM (" SCORED ") GROUP BY " KEY ", verifier"
#define SCORES_KEPT "SELECT " KEY ", verifier, scored FROM rollup_scores"

#define NAMES_KEY "run_seq, incarnation, policy_revision, purpose"
#define NAMES_COUNTED                                                                                                  \
    "SELECT " NAMES_KEY ", kind, name, provenance_seq, count(*) FROM ("                                                \
    "SELECT " NAMES_KEY ", 'failure' AS kind, failure_code AS name, 0 AS provenance_seq FROM rolled"                   \
    " WHERE failure_code IS NOT NULL UNION ALL SELECT " NAMES_KEY ", 'seed_not_honoured', '', 0 FROM rolled"           \
    " WHERE seed_honoured = 0 UNION ALL SELECT " NAMES_KEY ", 'processed_logprobs', '', 0 FROM rolled"                 \
    " WHERE logprobs_mode = 'processed' UNION ALL SELECT " NAMES_KEY ", 'engine', engine, coalesce(provenance_seq, 0)" \
    " FROM rolled WHERE engine IS NOT NULL) GROUP BY " NAMES_KEY ", kind, name, provenance_seq"
#define NAMES_KEPT "SELECT " NAMES_KEY ", kind, name, coalesce(provenance_seq, 0), n FROM rollup_counts"

const struct verify_invariant verify_rollups[] = {
    {"a roll-up differs from the sums of its rollouts", NAMED(DIFFERENT(COUNTED, KEPT))},
    {"a roll-up counts other groups than there are", NAMED(DIFFERENT(GROUPS_COUNTED, GROUPS_KEPT))},
    {"a group of several revisions is not named as one", NAMED(DIFFERENT(SPLIT, SPLIT_KEPT))},
    {"a roll-up counts other held-out scores than there are", NAMED(DIFFERENT(SCORES_COUNTED, SCORES_KEPT))},
    {"a roll-up counts other failures, seeds, log-probabilities or engines than there are",
     NAMED(DIFFERENT(NAMES_COUNTED, NAMES_KEPT))},
    {"a roll-up has another sum of held-out scores than its rollouts",
     NAMED("SELECT k.* FROM (SELECT " KEY ", verifier, total(score) AS score, total(abs(score)) AS size FROM (" SCORED
           ") GROUP BY " KEY ", verifier) c JOIN rollup_scores k USING (" KEY
           ", verifier) WHERE NOT abs(k.score_sum - c.score) <= 1e-9 * c.size")},
    /* Sums are of doubles, and in another order. */
    {"a roll-up has another sum of rewards than its rollouts",
     NAMED("SELECT k.* FROM (SELECT " KEY
           ", total(reward) AS reward, total(abs(reward)) AS size FROM rolled GROUP BY " KEY
           ") c JOIN rollups k USING (" KEY
           ") WHERE NOT abs(k.reward_sum + k.reward_lost - c.reward) <= 1e-9 * c.size")},
    /* sum() would fail where the writer's addition stops at the largest number. */
    {"a roll-up has another staleness than its rollouts",
     NAMED("SELECT k.* FROM (SELECT " KEY ", total(revision_at_end - policy_revision) AS staleness,"
           " total(abs(revision_at_end - policy_revision)) AS size FROM rolled GROUP BY " KEY
           ") c JOIN rollups k USING (" KEY ") WHERE NOT abs(k.staleness - max(min(c.staleness, "
           "9.2233720368547758e18), -9.2233720368547758e18)) <= 0.5 + 1e-9 * c.size")},
};
const size_t verify_rollups_count = sizeof verify_rollups / sizeof verify_rollups[0];
