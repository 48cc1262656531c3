-- Weight updates in steps. An open one stops the dispatch of its run, also after a restart, until it is committed, cancelled, or
-- its deadline has passed. Those that ended stay: a step that is repeated, because its answer was lost, is answered from here.
CREATE TABLE policy_updates (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    revision INTEGER NOT NULL CHECK (revision >= 0),
    rewind_to_step INTEGER CHECK (rewind_to_step >= 0), -- NULL: no rewind
    mode TEXT NOT NULL CHECK (mode = 'wait' OR mode = 'abort' OR mode = 'straddle'),
    state TEXT NOT NULL CHECK (state = 'open' OR state = 'committed' OR state = 'cancelled' OR state = 'expired'),
    begun_at_us INTEGER NOT NULL,
    deadline_us INTEGER NOT NULL,
    ended_at_us INTEGER,
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0), -- of the run, when it was begun; after a commit: the one it led to
    previous_revision INTEGER CHECK (previous_revision >= 0), -- the run's, when it was begun or committed
    CHECK ((state = 'open') = (ended_at_us IS NULL))
) STRICT;
CREATE UNIQUE INDEX policy_updates_open ON policy_updates (run_seq) WHERE state = 'open';
CREATE INDEX policy_updates_by_run ON policy_updates (run_seq, seq);

-- Where an update in mode abort moved a batch: the revision of its members without a row. NULL: what the batch says.
ALTER TABLE batches ADD COLUMN moved_to_revision INTEGER CHECK (moved_to_revision >= 0);
