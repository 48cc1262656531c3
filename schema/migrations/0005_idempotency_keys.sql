-- Idempotency keys: what a request with a key has made. A key of a batch or a score counts within one run and one incarnation, so
-- that a trainer that goes back to a checkpoint gets new batches; a key of a policy step counts within its run (incarnation -1),
-- because a rewind that is sent again must find what it made; a key of a request without a run would have run_seq 0.
-- A row is kept as long as what it points to. Batches that were made before this table have their key in batches.idempotency_key;
-- both are looked at, and only this table is written.
CREATE TABLE idempotency_keys (
    run_seq INTEGER NOT NULL CHECK (run_seq >= 0),
    incarnation INTEGER NOT NULL CHECK (incarnation >= -1),
    route TEXT NOT NULL,
    key TEXT NOT NULL CHECK (length(key) >= 1),
    request_sha256 BLOB NOT NULL CHECK (length(request_sha256) = 32),
    batch_seq INTEGER REFERENCES batches (seq) ON DELETE CASCADE,
    update_seq INTEGER REFERENCES policy_updates (seq) ON DELETE CASCADE, -- the step's; of a declaration: the one it ended
    -- A declaration's answer: the run, after it and before it.
    revision INTEGER CHECK (revision >= 0),
    led_to_incarnation INTEGER CHECK (led_to_incarnation >= 0),
    previous_revision INTEGER CHECK (previous_revision >= 0),
    PRIMARY KEY (run_seq, incarnation, route, key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX idempotency_keys_by_batch ON idempotency_keys (batch_seq) WHERE batch_seq IS NOT NULL;
CREATE INDEX idempotency_keys_by_update ON idempotency_keys (update_seq) WHERE update_seq IS NOT NULL;
