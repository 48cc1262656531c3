-- Requests are kept compressed. codec is the form of `body` (plain, zstd), body_bytes its length as posted; older rows are
-- plain, with the length of `body` (body_bytes NULL). Without CHECKs: SQLite would read
-- every body to add them.
ALTER TABLE requests ADD COLUMN codec TEXT NOT NULL DEFAULT 'plain';
ALTER TABLE requests ADD COLUMN body_bytes INTEGER;
