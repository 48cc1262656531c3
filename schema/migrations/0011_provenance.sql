-- The model, the programs and the settings that made a rollout, with their values at sampling. Each distinct combination is one
-- row, to which rollouts point; a value that is not known is NULL. Older rollouts and batches have NULL: not known.
--
-- settings_in_force: shared, stays (a few rows).     provenances: shared, stays (a few rows).
-- batch_provenances: goes with its batch (batch_seq).
CREATE TABLE settings_in_force (
    seq INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32), -- of the text
    settings TEXT NOT NULL, -- JSON, without keys
    first_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE provenances (
    seq INTEGER PRIMARY KEY,
    engine_model TEXT,
    engine_version TEXT,
    tokenizer_sha256 TEXT,
    rolloutd_version TEXT,
    settings_seq INTEGER REFERENCES settings_in_force (seq)
) STRICT;
CREATE UNIQUE INDEX provenances_distinct ON provenances (coalesce(engine_model, ''), coalesce(engine_version, ''),
    coalesce(tokenizer_sha256, ''), coalesce(rolloutd_version, ''), coalesce(settings_seq, 0));

-- The distinct values of a batch's rollouts, so that a reader need not read all of them. engine '': none.
CREATE TABLE batch_provenances (
    batch_seq INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
    engine TEXT NOT NULL,
    provenance_seq INTEGER NOT NULL REFERENCES provenances (seq),
    PRIMARY KEY (batch_seq, engine, provenance_seq)
) STRICT, WITHOUT ROWID;

ALTER TABLE rollouts ADD COLUMN provenance_seq INTEGER REFERENCES provenances (seq);
ALTER TABLE batches ADD COLUMN settings_seq INTEGER REFERENCES settings_in_force (seq); -- when it was created
