-- The record, version 1. Public ids are texts; inside, rows point to each other by `seq`.
-- Times are UTC microseconds. Columns of JSON (sampling, verdicts, notes, ...) hold it as it came and are never read by SQL.

CREATE TABLE owners (
    name TEXT NOT NULL PRIMARY KEY,
    epoch INTEGER NOT NULL CHECK (epoch >= 1)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
    incarnation INTEGER NOT NULL DEFAULT 0 CHECK (incarnation >= 0),
    policy_revision INTEGER CHECK (policy_revision >= 0), -- NULL: none declared
    created_at_us INTEGER NOT NULL,
    batches INTEGER NOT NULL DEFAULT 0,
    scored INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE run_incarnations (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    opened_at_us INTEGER NOT NULL,
    rewind_to_step INTEGER CHECK (rewind_to_step >= 0), -- NULL: the first
    PRIMARY KEY (run_seq, incarnation),
    CHECK ((incarnation = 0) = (rewind_to_step IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE policy_revisions (
    run_seq INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 0),
    declared_at_us INTEGER NOT NULL,
    PRIMARY KEY (run_seq, incarnation, revision),
    FOREIGN KEY (run_seq, incarnation) REFERENCES run_incarnations (run_seq, incarnation)
) STRICT, WITHOUT ROWID;

-- Each distinct objective of a run once; batches point to it.
CREATE TABLE objectives (
    seq INTEGER PRIMARY KEY,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    objective TEXT NOT NULL,
    UNIQUE (run_seq, sha256)
) STRICT;

CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    task TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE batches (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    purpose TEXT NOT NULL CHECK (purpose IN ('train', 'eval')),
    state TEXT NOT NULL CHECK (state IN ('running', 'complete', 'cancelled', 'expired')),
    policy_revision INTEGER NOT NULL CHECK (policy_revision >= 0),
    max_staleness INTEGER CHECK (max_staleness >= 0),
    seed INTEGER NOT NULL CHECK (seed >= 0),
    request_sha256 BLOB NOT NULL CHECK (length(request_sha256) = 32),
    idempotency_key TEXT UNIQUE,
    owner TEXT NOT NULL REFERENCES owners (name),
    owner_epoch INTEGER NOT NULL,
    deliver TEXT NOT NULL CHECK (deliver IN ('reply', 'lease')),
    respond_async INTEGER NOT NULL CHECK (respond_async IN (0, 1)),
    created_at_us INTEGER NOT NULL,
    deadline_us INTEGER NOT NULL,
    completed_at_us INTEGER,
    objective_seq INTEGER NOT NULL REFERENCES objectives (seq),
    group_count INTEGER NOT NULL CHECK (group_count >= 1),
    rollout_count INTEGER NOT NULL CHECK (rollout_count >= group_count),
    scored INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    loss REAL CHECK (loss BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    total_tokens INTEGER CHECK (total_tokens >= 0),
    total_sequences INTEGER CHECK (total_sequences >= 0),
    total_groups INTEGER CHECK (total_groups >= 0),
    CHECK (scored + failed + cancelled <= rollout_count),
    CHECK (state <> 'complete' OR scored + failed + cancelled = rollout_count),
    CHECK ((state = 'running') = (completed_at_us IS NULL)),
    CHECK ((state = 'running') = (total_tokens IS NULL)),
    CHECK ((state = 'running') = (total_sequences IS NULL)),
    CHECK ((state = 'running') = (total_groups IS NULL)),
    CHECK (loss IS NULL OR (state <> 'running' AND scored > 0))
) STRICT;
CREATE INDEX batches_by_run ON batches (run_seq);
CREATE INDEX batches_by_objective ON batches (objective_seq);
CREATE INDEX batches_unfinished ON batches (state) WHERE state <> 'complete';

CREATE TABLE batch_contents (
    batch_seq INTEGER PRIMARY KEY REFERENCES batches (seq) ON DELETE CASCADE,
    sampling TEXT,
    verifiers TEXT,
    metadata TEXT,
    returns TEXT, -- NULL: everything
    notes TEXT,
    summary TEXT
) STRICT;

CREATE TABLE requests (
    batch_seq INTEGER PRIMARY KEY REFERENCES batches (seq) ON DELETE CASCADE,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL -- as posted
) STRICT;

CREATE TABLE groups (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_seq INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
    group_index INTEGER NOT NULL CHECK (group_index >= 0),
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    draw INTEGER NOT NULL,
    first_sample_index INTEGER NOT NULL CHECK (first_sample_index >= 0),
    n INTEGER NOT NULL CHECK (n >= 1),
    state TEXT NOT NULL CHECK (state IN ('running', 'complete')),
    closed_at_us INTEGER,
    rewarded INTEGER CHECK (rewarded BETWEEN 0 AND n), -- members with a reward
    reward_mean REAL CHECK (reward_mean BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    reward_std REAL CHECK (reward_std BETWEEN 0 AND 1.7976931348623157e308),
    zero_variance INTEGER CHECK (zero_variance IN (0, 1)),
    UNIQUE (batch_seq, group_index),
    CHECK ((state = 'running') = (closed_at_us IS NULL)),
    CHECK ((state = 'running') = (rewarded IS NULL)),
    CHECK ((state = 'running') = (zero_variance IS NULL)),
    CHECK (reward_std IS NULL OR reward_mean IS NOT NULL),
    CHECK (CASE WHEN rewarded > 0 THEN reward_mean IS NOT NULL ELSE reward_mean IS NULL END)
) STRICT;
CREATE INDEX groups_by_task ON groups (task_seq);

CREATE TABLE group_contents (
    group_seq INTEGER PRIMARY KEY REFERENCES groups (seq) ON DELETE CASCADE,
    prompt_ids BLOB CHECK (length(prompt_ids) % 4 = 0), -- u32, little endian; NULL: not known
    sampling TEXT, -- overrides; NULL: the batch's
    verifiers TEXT,
    metadata TEXT
) STRICT;

-- A failure is never a number: the CHECKs below are promise 1.
-- ORs and not IN: from three values on SQLite builds an ephemeral table of an IN list, anew for each row.
CREATE TABLE rollouts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    group_seq INTEGER NOT NULL REFERENCES groups (seq) ON DELETE CASCADE,
    sample_index INTEGER NOT NULL CHECK (sample_index >= 0),
    batch_seq INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    task_seq INTEGER NOT NULL REFERENCES tasks (seq),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 0),
    purpose TEXT NOT NULL CHECK (purpose IN ('train', 'eval')),
    created_at_us INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state = 'scored' OR state = 'failed' OR state = 'cancelled'),
    reward REAL CHECK (reward BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    shaped_reward REAL CHECK (shaped_reward BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    advantage REAL CHECK (advantage BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308),
    failure_stage TEXT CHECK (failure_stage = 'sample' OR failure_stage = 'verify' OR failure_stage = 'store'),
    failure_code TEXT CHECK (length(failure_code) >= 1),
    failure_message TEXT,
    failure_retryable INTEGER CHECK (failure_retryable IN (0, 1)),
    failure_attempts INTEGER CHECK (failure_attempts >= 0),
    engine TEXT,
    engine_revision TEXT,
    policy_revision INTEGER NOT NULL CHECK (policy_revision >= 0),
    revision_at_end INTEGER CHECK (revision_at_end >= 0),
    straddles INTEGER NOT NULL CHECK (straddles IN (0, 1)),
    resample INTEGER NOT NULL CHECK (resample >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    seed INTEGER NOT NULL CHECK (seed >= 0),
    seed_sent INTEGER CHECK (seed_sent >= 0),
    seed_honoured INTEGER CHECK (seed_honoured IN (0, 1)),
    finish_reason TEXT,
    trainable INTEGER NOT NULL CHECK (trainable IN (0, 1)),
    eos_in_ids INTEGER CHECK (eos_in_ids IN (0, 1)),
    logprobs_mode TEXT NOT NULL CHECK (logprobs_mode = 'unknown' OR logprobs_mode = 'raw' OR logprobs_mode = 'processed'),
    completion_tokens INTEGER NOT NULL CHECK (completion_tokens >= 0),
    trainable_tokens INTEGER NOT NULL CHECK (trainable_tokens BETWEEN 0 AND completion_tokens),
    queued_us INTEGER NOT NULL CHECK (queued_us >= 0),
    engine_us INTEGER NOT NULL CHECK (engine_us >= 0),
    verify_us INTEGER NOT NULL CHECK (verify_us >= 0),
    UNIQUE (group_seq, sample_index),
    CHECK ((state = 'scored') = (failure_code IS NULL)),
    CHECK ((failure_code IS NULL) = (failure_stage IS NULL)),
    CHECK ((failure_code IS NULL) = (failure_message IS NULL)),
    CHECK ((failure_code IS NULL) = (failure_retryable IS NULL)),
    CHECK ((failure_code IS NULL) = (failure_attempts IS NULL)),
    CHECK (reward IS NULL OR state = 'scored'),
    CHECK (advantage IS NULL OR reward IS NOT NULL),
    CHECK (shaped_reward IS NULL OR reward IS NOT NULL),
    CHECK (trainable = 1 OR trainable_tokens = 0)
) STRICT;
CREATE INDEX rollouts_by_batch ON rollouts (batch_seq);
CREATE INDEX rollouts_by_revision ON rollouts (run_seq, policy_revision);
CREATE INDEX rollouts_by_run ON rollouts (run_seq);
CREATE INDEX rollouts_by_task ON rollouts (task_seq);
CREATE INDEX rollouts_by_failure ON rollouts (failure_code) WHERE failure_code IS NOT NULL;
CREATE INDEX rollouts_by_state ON rollouts (state) WHERE state <> 'scored';

CREATE TABLE rollout_texts (
    rollout_seq INTEGER PRIMARY KEY REFERENCES rollouts (seq) ON DELETE CASCADE,
    text TEXT,
    text_replaced INTEGER NOT NULL CHECK (text_replaced >= 0)
) STRICT;

CREATE TABLE rollout_verdicts (
    rollout_seq INTEGER PRIMARY KEY REFERENCES rollouts (seq) ON DELETE CASCADE,
    verdicts TEXT,
    rewards TEXT,
    heldout TEXT
) STRICT;

-- Packed, little endian: ids u32, log-probabilities f32 (0 where the mask is 0), mask u8 (NULL: all ones).
CREATE TABLE rollout_arrays (
    rollout_seq INTEGER PRIMARY KEY REFERENCES rollouts (seq) ON DELETE CASCADE,
    completion_ids BLOB NOT NULL CHECK (length(completion_ids) % 4 = 0),
    logprobs BLOB CHECK (length(logprobs) = length(completion_ids)),
    completion_mask BLOB CHECK (length(completion_mask) * 4 = length(completion_ids))
) STRICT;

-- An advantage is set when its group is closed, never with the row.
CREATE TRIGGER rollouts_start_without_advantage BEFORE INSERT ON rollouts WHEN new.advantage IS NOT NULL OR new.shaped_reward IS NOT NULL
BEGIN
    SELECT raise(ABORT, 'an advantage is set when its group is closed');
END;

-- Once told, never changed: what is on record about an outcome is final.
CREATE TRIGGER rollouts_are_final BEFORE UPDATE OF group_seq, sample_index, state, reward, failure_code, seed, policy_revision ON rollouts
BEGIN
    SELECT raise(ABORT, 'the outcome of a rollout is final');
END;

CREATE TABLE objective_calls (
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL,
    optimizer_step INTEGER NOT NULL CHECK (optimizer_step >= 0),
    ppo_epoch INTEGER NOT NULL CHECK (ppo_epoch >= 0),
    part INTEGER NOT NULL CHECK (part >= 0),
    recorded_at_us INTEGER NOT NULL,
    objective TEXT NOT NULL,
    sums TEXT NOT NULL,
    PRIMARY KEY (run_seq, incarnation, optimizer_step, ppo_epoch, part)
) STRICT, WITHOUT ROWID;

-- For people with the sqlite3 program: the rollouts with their public names.
CREATE VIEW readable_rollouts AS
SELECT printf('r_%s-%05d-%05d', substr(b.id, 3), g.group_index, r.sample_index) AS id, runs.name AS run, b.id AS batch, g.group_index, t.task, g.draw,
    r.sample_index, r.purpose, r.policy_revision, r.state, r.reward, r.shaped_reward, r.advantage, r.failure_stage, r.failure_code,
    r.failure_message, r.finish_reason, r.completion_tokens, r.seed, r.engine, x.text
FROM rollouts r
JOIN groups g ON g.seq = r.group_seq
JOIN batches b ON b.seq = r.batch_seq
JOIN runs ON runs.seq = r.run_seq
JOIN tasks t ON t.seq = r.task_seq
LEFT JOIN rollout_texts x ON x.rollout_seq = r.seq;
