-- Prompts and references, each distinct one once: JSON by its digest, compressed where that pays. A group points to them; one without a
-- prompt or a reference points to `null`. Groups from before have NULL: theirs stand in the request on record.
--
-- contents: shared, kept while a group points to it (groups.prompt_seq, groups.reference_seq).
CREATE TABLE contents (
    seq INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE CHECK (length(sha256) = 32), -- of the plain text
    codec TEXT NOT NULL CHECK (codec = 'plain' OR codec = 'zstd'),
    plain_bytes INTEGER NOT NULL CHECK (plain_bytes >= 0),
    content BLOB NOT NULL
) STRICT;

ALTER TABLE groups ADD COLUMN prompt_seq INTEGER REFERENCES contents (seq);
ALTER TABLE groups ADD COLUMN reference_seq INTEGER REFERENCES contents (seq);
CREATE INDEX groups_by_prompt ON groups (prompt_seq) WHERE prompt_seq IS NOT NULL;
CREATE INDEX groups_by_reference ON groups (reference_seq) WHERE reference_seq IS NOT NULL;
