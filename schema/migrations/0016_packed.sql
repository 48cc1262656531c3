-- Requests are kept compressed. codec says how `body` is stored (plain, zstd), body_bytes how long it was as posted; what is on record from before is
-- plain, and its length is that of `body` (body_bytes NULL). Without CHECKs: SQLite would read
-- every body to add them.
ALTER TABLE requests ADD COLUMN codec TEXT NOT NULL DEFAULT 'plain';
ALTER TABLE requests ADD COLUMN body_bytes INTEGER;
