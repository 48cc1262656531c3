-- Filters and orders of lists of rollouts. No new table: a column of rollouts, which goes with its run.

-- Whether a member repeats an earlier member of its group: the same ids, or the same text where there are no ids. Set when the group
-- is closed; NULL: it is not closed, or was before there was this column.
-- No CHECK: adding one reads every row.
ALTER TABLE rollouts ADD COLUMN duplicate INTEGER;
CREATE INDEX rollouts_duplicate ON rollouts (run_seq) WHERE duplicate = 1;

-- Orders of a list, within a run and a revision.
CREATE INDEX rollouts_by_reward ON rollouts (run_seq, policy_revision, reward);
CREATE INDEX rollouts_by_advantage ON rollouts (run_seq, policy_revision, advantage);
CREATE INDEX rollouts_by_tokens ON rollouts (run_seq, policy_revision, completion_tokens);
