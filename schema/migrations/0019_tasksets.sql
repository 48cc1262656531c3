-- Task sets: named, immutable sets of tasks. A set without a digest is a draft: it is being written, and readers do not see it;
-- the next start drops a draft that a crash left behind.
-- tasksets, taskset_splits, taskset_tasks: belong to no run, and stay; groups refer to the tasks they were made of.
CREATE TABLE tasksets (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
    sha256 BLOB CHECK (length(sha256) = 32), -- of the body; NULL: a draft
    tasks INTEGER NOT NULL DEFAULT 0 CHECK (tasks >= 0),
    created_at_us INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tasksets_frozen ON tasksets (name) WHERE sha256 IS NOT NULL;

CREATE TABLE taskset_splits (
    set_seq INTEGER NOT NULL REFERENCES tasksets (seq),
    split TEXT NOT NULL,
    tasks INTEGER NOT NULL CHECK (tasks >= 1),
    PRIMARY KEY (set_seq, split)
) STRICT, WITHOUT ROWID;

CREATE TABLE taskset_tasks (
    seq INTEGER PRIMARY KEY,
    set_seq INTEGER NOT NULL REFERENCES tasksets (seq),
    line INTEGER NOT NULL CHECK (line >= 1), -- of the body
    task TEXT NOT NULL CHECK (length(task) >= 1),
    split TEXT NOT NULL,
    chat INTEGER NOT NULL CHECK (chat IN (0, 1)), -- 1: the prompt is a JSON array of messages
    prompt_seq INTEGER NOT NULL REFERENCES contents (seq),
    reference_seq INTEGER REFERENCES contents (seq), -- JSON; NULL: none
    metadata TEXT,
    tags_seq INTEGER REFERENCES tags (seq),
    UNIQUE (set_seq, task)
) STRICT;
CREATE INDEX taskset_tasks_by_line ON taskset_tasks (set_seq, line);
CREATE INDEX taskset_tasks_by_prompt ON taskset_tasks (prompt_seq);
CREATE INDEX taskset_tasks_by_reference ON taskset_tasks (reference_seq) WHERE reference_seq IS NOT NULL;
CREATE INDEX taskset_tasks_by_tags ON taskset_tasks (tags_seq) WHERE tags_seq IS NOT NULL;

-- The task of a set that a group was made of. NULL: the request brought all of it.
ALTER TABLE groups ADD COLUMN set_task_seq INTEGER REFERENCES taskset_tasks (seq);
CREATE INDEX groups_by_set_task ON groups (set_task_seq) WHERE set_task_seq IS NOT NULL;
