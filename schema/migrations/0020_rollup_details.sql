-- Sums over the rollouts of closed groups beside rollups: held-out scores by task, and counts by name, so that a report need not
-- read rollouts. In step with rollups (rollup_start), which begin anew here: older ones have no details.
-- rollup_scores, rollup_counts: go with their run.
CREATE TABLE rollup_scores (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    policy_revision INTEGER NOT NULL CHECK (policy_revision >= 0),
    purpose TEXT NOT NULL CHECK (purpose IN ('train', 'eval')),
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    verifier TEXT NOT NULL, -- held out
    scored INTEGER NOT NULL,
    score_sum REAL NOT NULL,
    PRIMARY KEY (run_seq, incarnation, policy_revision, purpose, task_seq, verifier)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_scores_by_task ON rollup_scores (task_seq);

-- kind 'failure': by code; 'seed_not_honoured', 'processed_logprobs': name ''; 'engine': by its name and what it was.
CREATE TABLE rollup_counts (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    policy_revision INTEGER NOT NULL CHECK (policy_revision >= 0),
    purpose TEXT NOT NULL CHECK (purpose IN ('train', 'eval')),
    kind TEXT NOT NULL CHECK (kind = 'failure' OR kind = 'seed_not_honoured' OR kind = 'processed_logprobs' OR kind = 'engine'),
    name TEXT NOT NULL,
    provenance_seq INTEGER REFERENCES provenances (seq), -- NULL: none
    n INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX rollup_counts_distinct ON rollup_counts (run_seq, incarnation, policy_revision, purpose, kind, name,
    coalesce(provenance_seq, 0));

DELETE FROM rollups;
DELETE FROM rollup_groups;
UPDATE rollup_start SET last_batch = (SELECT coalesce(max(seq), 0) FROM batches);
