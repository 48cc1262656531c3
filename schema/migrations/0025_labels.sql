-- Labels: a person's or a program's word on whether a completion is right, beside the verdict of one verifier.
-- labels: goes with its run (run_seq) and with its rollout.
CREATE TABLE labels (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    verifier TEXT NOT NULL,
    rollout_seq INTEGER NOT NULL REFERENCES rollouts (seq) ON DELETE CASCADE,
    said_by TEXT NOT NULL,
    truth INTEGER NOT NULL CHECK (truth IN (0, 1)),
    labelled_at_us INTEGER NOT NULL,
    PRIMARY KEY (run_seq, verifier, rollout_seq, said_by)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_by_rollout ON labels (rollout_seq);
