-- Arrays of completions that came with a request (POST /v1/score) are on record once: here, from the batch's creation on. The request is
-- kept without them (requests.codec 'lean'), and their rollouts have no row in rollout_arrays. Batches from before have both.
--
-- given_arrays: goes with its batch.
CREATE TABLE given_arrays (
    seq INTEGER PRIMARY KEY,
    batch_seq INTEGER NOT NULL REFERENCES batches (seq) ON DELETE CASCADE,
    group_seq INTEGER NOT NULL REFERENCES groups (seq) ON DELETE CASCADE,
    sample_index INTEGER NOT NULL CHECK (sample_index >= 0),
    completion_ids BLOB NOT NULL CHECK (length(completion_ids) % 4 = 0),
    logprobs BLOB CHECK (length(logprobs) = length(completion_ids)),
    completion_mask BLOB CHECK (length(completion_mask) * 4 = length(completion_ids)),
    UNIQUE (group_seq, sample_index)
) STRICT;
CREATE INDEX given_arrays_by_batch ON given_arrays (batch_seq);

ALTER TABLE groups ADD COLUMN arrays_given INTEGER; -- 1: its members' arrays are in given_arrays
