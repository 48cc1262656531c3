-- What is kept of an objective call, by the samples' revision and engine: sums and what they are divided by, so that a mean over any
-- choice of parts, revisions and engines is one division. A sum that is not known is NULL and has 0 tokens.
CREATE TABLE objective_sums (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_seq INTEGER NOT NULL REFERENCES runs (seq),
    incarnation INTEGER NOT NULL,
    optimizer_step INTEGER NOT NULL,
    ppo_epoch INTEGER NOT NULL,
    part INTEGER NOT NULL,
    slice INTEGER NOT NULL CHECK (slice >= 0),
    recorded_at_us INTEGER NOT NULL,
    kl_estimator TEXT, -- of kl_sum
    sample_incarnation INTEGER CHECK (sample_incarnation >= 0), -- NULL, with the revision: kept before they were told apart
    sample_revision INTEGER CHECK (sample_revision >= 0),
    engine TEXT, -- NULL: the samples name none
    sequences INTEGER NOT NULL CHECK (sequences >= 0), -- judged
    tokens INTEGER NOT NULL CHECK (tokens >= 0), -- trainable
    clip_low INTEGER NOT NULL CHECK (clip_low >= 0),
    clip_high INTEGER NOT NULL CHECK (clip_high >= 0),
    loss REAL,
    kl_sum REAL,
    kl_tokens INTEGER NOT NULL CHECK (kl_tokens >= 0),
    kl_policy_sum REAL,
    kl_policy_tokens INTEGER NOT NULL CHECK (kl_policy_tokens >= 0),
    kl_engine_sum REAL,
    kl_engine_tokens INTEGER NOT NULL CHECK (kl_engine_tokens >= 0),
    entropy_sum REAL,
    entropy_tokens INTEGER NOT NULL CHECK (entropy_tokens >= 0),
    logprob_gap_sum REAL,
    logprob_gap_tokens INTEGER NOT NULL CHECK (logprob_gap_tokens >= 0),
    UNIQUE (run_seq, optimizer_step, ppo_epoch, part, incarnation, slice)
) STRICT;
CREATE INDEX objective_sums_by_run ON objective_sums (run_seq);

-- Parts on record from before: the whole call is one slice of no known revision. Their gap compared the engine with itself where no
-- old log-probabilities came, so it is not taken over; nor is a k3 that was not against the old policy, or clamped.
INSERT INTO objective_sums (run_seq, incarnation, optimizer_step, ppo_epoch, part, slice, recorded_at_us, kl_estimator, sequences, tokens,
    clip_low, clip_high, loss, kl_sum, kl_tokens, kl_policy_sum, kl_policy_tokens, kl_engine_tokens, entropy_tokens, logprob_gap_tokens)
SELECT run_seq, incarnation, optimizer_step, ppo_epoch, part, 0, recorded_at_us, json_extract(objective, '$.kl.estimator'),
    coalesce(json_extract(sums, '$.sequences'), 0), coalesce(json_extract(sums, '$.tokens'), 0),
    coalesce(json_extract(sums, '$.clip_low'), 0), coalesce(json_extract(sums, '$.clip_high'), 0),
    CAST(json_extract(sums, '$.loss') AS REAL),
    CASE WHEN json_extract(sums, '$.kl_tokens') > 0 THEN CAST(json_extract(sums, '$.kl_sum') AS REAL) END,
    CASE WHEN json_extract(sums, '$.kl_sum') IS NULL THEN 0 ELSE coalesce(json_extract(sums, '$.kl_tokens'), 0) END,
    CASE WHEN against_old THEN CAST(json_extract(sums, '$.approx_kl_k3_sum') AS REAL) END,
    CASE WHEN against_old AND json_extract(sums, '$.approx_kl_k3_sum') IS NOT NULL THEN coalesce(json_extract(sums, '$.tokens'), 0) ELSE 0 END,
    0, 0, 0
FROM (SELECT *, coalesce(json_extract(objective, '$.loss.anchor'), 'old') <> 'rollout'
        AND coalesce(json_extract(objective, '$.loss.kind'), '') <> 'rollout_is'
        AND json_extract(objective, '$.loss.log_clamp') IS NULL AS against_old
    FROM objective_calls WHERE json_valid(sums) AND json_valid(objective));
