-- Which version of the weights made which tokens, where the engine named more than one: [{"start":0,"end":36,"engine_revision":"step-1"},…].
CREATE TABLE rollout_segments (
    rollout_seq INTEGER PRIMARY KEY REFERENCES rollouts (seq) ON DELETE CASCADE,
    segments TEXT NOT NULL
) STRICT;
