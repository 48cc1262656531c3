-- Second judgements of stored rollouts (POST /v1/reverify), beside the first verdicts and never over them.
--
-- reverifications: what was asked, and how far it is. The sums are those of its rows of later_verdicts, each with what its rounding lost, and
-- only of rollouts that have a reward before and after; NULL: it is beyond what a double holds.
CREATE TABLE reverifications (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0), -- of the run then: the scope of the key
    idempotency_key TEXT,
    request_sha256 BLOB NOT NULL CHECK (length(request_sha256) = 32), -- of the body as posted
    request TEXT NOT NULL, -- JSON
    state TEXT NOT NULL CHECK (state = 'running' OR state = 'complete' OR state = 'cancelled' OR state = 'failed'),
    created_at_us INTEGER NOT NULL,
    ended_at_us INTEGER,
    last_rollout INTEGER NOT NULL CHECK (last_rollout >= 0), -- rollouts stored behind it are not judged
    rollouts INTEGER NOT NULL CHECK (rollouts >= 0),
    judged INTEGER NOT NULL DEFAULT 0 CHECK (judged >= 0), -- rows of later_verdicts
    unscored INTEGER NOT NULL DEFAULT 0 CHECK (unscored >= 0), -- verdicts without a score
    flipped INTEGER NOT NULL DEFAULT 0 CHECK (flipped >= 0), -- rows of verdict_flips
    rewarded INTEGER NOT NULL DEFAULT 0 CHECK (rewarded >= 0), -- rollouts in the sums
    reward_from REAL DEFAULT 0,
    reward_from_lost REAL DEFAULT 0,
    reward_to REAL DEFAULT 0,
    reward_to_lost REAL DEFAULT 0,
    place TEXT, -- the next page of rollouts; NULL: the first
    failure_code TEXT,
    failure_message TEXT,
    CHECK ((state = 'running') = (ended_at_us IS NULL)),
    CHECK ((state = 'failed') = (failure_code IS NOT NULL)),
    CHECK (state <> 'complete' OR judged = rollouts)
) STRICT;
CREATE INDEX reverifications_by_run ON reverifications (run_seq);
CREATE UNIQUE INDEX reverifications_by_key ON reverifications (run_seq, incarnation, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX reverifications_running ON reverifications (state) WHERE state = 'running';

CREATE TABLE later_verdicts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    rollout_seq INTEGER NOT NULL REFERENCES rollouts (seq) ON DELETE CASCADE,
    reverification_seq INTEGER NOT NULL REFERENCES reverifications (seq) ON DELETE CASCADE,
    judged_at_us INTEGER NOT NULL,
    verdicts TEXT NOT NULL, -- JSON, as rollout_verdicts.verdicts
    reward_from REAL CHECK (reward_from BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308), -- on record before
    reward REAL CHECK (reward BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    UNIQUE (rollout_seq, reverification_seq)
) STRICT;
CREATE INDEX later_verdicts_by_reverification ON later_verdicts (reverification_seq);

-- Verifiers that gave another score than before.
CREATE TABLE verdict_flips (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    rollout_seq INTEGER NOT NULL REFERENCES rollouts (seq) ON DELETE CASCADE,
    reverification_seq INTEGER NOT NULL REFERENCES reverifications (seq) ON DELETE CASCADE,
    verifier TEXT NOT NULL, -- its id
    from_version TEXT,
    from_score REAL NOT NULL,
    to_version TEXT,
    to_score REAL NOT NULL,
    CHECK (from_score <> to_score)
) STRICT;
CREATE INDEX verdict_flips_by_rollout ON verdict_flips (rollout_seq);
CREATE INDEX verdict_flips_by_reverification ON verdict_flips (reverification_seq);
