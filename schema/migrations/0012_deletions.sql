-- Deletions of runs: the requester, the time and the size of each. A run with a deletion is deleted in slices, and its row goes last.
-- run_deletions: kept for ever; it names its run by text alone, so that no row refers to a deleted one.
CREATE TABLE run_deletions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason = 'request' OR reason = 'retention'),
    said_by TEXT, -- who asked, as the request says
    client TEXT, -- the address it came from
    request_id TEXT,
    requested_at_us INTEGER NOT NULL,
    ended_at_us INTEGER, -- NULL: it goes on
    batches INTEGER NOT NULL CHECK (batches >= 0),
    group_count INTEGER NOT NULL CHECK (group_count >= 0),
    rollouts INTEGER NOT NULL CHECK (rollouts >= 0)
) STRICT;

ALTER TABLE runs ADD COLUMN deletion_seq INTEGER REFERENCES run_deletions (seq); -- NULL: it is not deleted
CREATE INDEX runs_by_deletion ON runs (deletion_seq) WHERE deletion_seq IS NOT NULL;
