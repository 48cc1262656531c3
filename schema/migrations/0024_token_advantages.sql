-- The advantages of a rollout whose estimator gives each token its own (process): runs of tokens with one advantage, packed, little
-- endian: u32 end (index after the run's last token), f64 advantage. rollouts.advantage has that of the first trainable token. Rollouts from
-- before have none.
CREATE TABLE rollout_advantages (
    rollout_seq INTEGER PRIMARY KEY REFERENCES rollouts (seq) ON DELETE CASCADE,
    advantages BLOB NOT NULL CHECK (length(advantages) % 12 = 0)
) STRICT;
