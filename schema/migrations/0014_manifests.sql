-- The frozen settings of a run, and the costs of its training.
-- manifests: goes with its run (run_seq).

CREATE TABLE manifests (
    run_seq INTEGER PRIMARY KEY REFERENCES runs (seq),
    version INTEGER NOT NULL CHECK (version >= 1), -- counts its changes
    created_at_us INTEGER NOT NULL,
    changed_at_us INTEGER NOT NULL,
    given TEXT NOT NULL, -- JSON, as it was given
    frozen TEXT NOT NULL, -- JSON, as it is compared
    completion_tokens INTEGER CHECK (completion_tokens >= 0), -- budget; NULL: none
    revisions INTEGER CHECK (revisions >= 0) -- likewise
) STRICT;

-- Completion tokens of training rollouts. Of a run from before they are counted, in slices, when it gets a budget: up to the row of
-- spent_counted_to, NULL: all are.
ALTER TABLE runs ADD COLUMN spent_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN spent_counted_to INTEGER;
UPDATE runs SET spent_counted_to = 0 WHERE scored + failed + cancelled > 0;
