-- Texts of rollouts are kept compressed where that pays: `packed` is a zstd frame of the text, and `text` is then NULL. Older rows are as they
-- were. Without a CHECK: SQLite would read every text to add it.
ALTER TABLE rollout_texts ADD COLUMN packed BLOB;

-- The sqlite3 program cannot unpack: `packed_text` is a text that GET /v1/rollouts/{id} shows.
DROP VIEW readable_rollouts;
CREATE VIEW readable_rollouts AS
SELECT printf('r_%s-%05d-%05d', substr(b.id, 3), g.group_index, r.sample_index) AS id, runs.name AS run, b.id AS batch, g.group_index, t.task, g.draw,
    r.sample_index, r.purpose, r.policy_revision, r.state, r.reward, r.shaped_reward, r.advantage, r.failure_stage, r.failure_code,
    r.failure_message, r.finish_reason, r.completion_tokens, r.seed, r.engine, x.text, x.packed AS packed_text
FROM rollouts r
JOIN groups g ON g.seq = r.group_seq
JOIN batches b ON b.seq = r.batch_seq
JOIN runs ON runs.seq = r.run_seq
JOIN tasks t ON t.seq = r.task_seq
LEFT JOIN rollout_texts x ON x.rollout_seq = r.seq;
