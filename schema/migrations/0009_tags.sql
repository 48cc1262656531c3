-- Tags of groups: each distinct set of them once, as canonical JSON (names in order of their bytes). Groups without any have NULL.
-- tags: shared by all runs, kept while a group refers to them (groups_by_tags finds those); groups go with their batch.
CREATE TABLE tags (
    seq INTEGER PRIMARY KEY,
    tags TEXT NOT NULL UNIQUE CHECK (length(tags) > 2)
) STRICT;

ALTER TABLE groups ADD COLUMN tags_seq INTEGER REFERENCES tags (seq);
CREATE INDEX groups_by_tags ON groups (tags_seq) WHERE tags_seq IS NOT NULL;
