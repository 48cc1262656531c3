-- The trainer's own numbers of a run, and notes on it.
-- trainer_metrics: goes with its run (run_seq). run_notes: goes with its run (run_seq).

-- The trainer's own numbers, one row for each optimizer step of an incarnation.
CREATE TABLE trainer_metrics (
    seq INTEGER PRIMARY KEY,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    optimizer_step INTEGER NOT NULL CHECK (optimizer_step >= 0),
    revision INTEGER NOT NULL CHECK (revision >= 0),
    recorded_at_us INTEGER NOT NULL,
    numbers TEXT NOT NULL, -- JSON object
    UNIQUE (run_seq, optimizer_step, incarnation)
) STRICT;
CREATE INDEX trainer_metrics_by_run ON trainer_metrics (run_seq);

CREATE TABLE run_notes (
    seq INTEGER PRIMARY KEY,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    at_us INTEGER NOT NULL,
    prediction TEXT,
    result TEXT,
    explanation TEXT,
    limitation TEXT,
    CHECK (coalesce(prediction, result, explanation, limitation) IS NOT NULL)
) STRICT;
CREATE INDEX run_notes_by_run ON run_notes (run_seq);
