-- Sums over the rollouts of a task, by weights and purpose, so that numbers over a whole run need not read its rollouts. A
-- group enters them in the transaction that closes it or that ends its batch.
-- rollups, rollup_groups: go with their run. rollup_start: one row, stays.
CREATE TABLE rollups (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    policy_revision INTEGER NOT NULL CHECK (policy_revision >= 0),
    purpose TEXT NOT NULL CHECK (purpose IN ('train', 'eval')),
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    n INTEGER NOT NULL,
    scored INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    group_count INTEGER NOT NULL, -- without those that have members in another row: they are in rollup_groups
    judged_groups INTEGER NOT NULL,
    zero_variance_groups INTEGER NOT NULL,
    judged INTEGER NOT NULL, -- have a reward
    reward_sum REAL NOT NULL,
    reward_lost REAL NOT NULL, -- what the additions lost of it
    reward_min REAL, -- NULL: nobody is judged
    reward_max REAL,
    judged_tokens INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    tokens_max INTEGER NOT NULL,
    truncated INTEGER NOT NULL, -- of the judged
    straddles INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    decided INTEGER NOT NULL, -- have a score that says whether they are solved
    solved INTEGER NOT NULL, -- it is 1 or above
    engine_us INTEGER NOT NULL,
    ended INTEGER NOT NULL, -- whose run's revision at the end is known
    staleness INTEGER NOT NULL, -- sum of that revision minus their own
    PRIMARY KEY (run_seq, incarnation, policy_revision, purpose, task_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollups_by_task ON rollups (task_seq);

-- Groups with members of several revisions or incarnations: one row for each.
CREATE TABLE rollup_groups (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    group_seq INTEGER NOT NULL REFERENCES groups (seq) ON DELETE CASCADE,
    incarnation INTEGER NOT NULL,
    policy_revision INTEGER NOT NULL,
    PRIMARY KEY (run_seq, group_seq, incarnation, policy_revision)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_groups_by_group ON rollup_groups (group_seq);

-- Batches up to this one are in no roll-up: runs that have one are read rollout by rollout.
CREATE TABLE rollup_start (last_batch INTEGER NOT NULL) STRICT;
INSERT INTO rollup_start (last_batch) SELECT coalesce(max(seq), 0) FROM batches;

-- The verifier whose score decides what is solved. NULL: the first held-out one, else the reward.
ALTER TABLE batches ADD COLUMN pass_verifier TEXT;
