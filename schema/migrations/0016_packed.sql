-- Requests are kept compressed. codec says how `body` is stored, body_bytes how long it was as posted; what is on record from before is
-- plain, and its length is that of `body` (body_bytes NULL).
ALTER TABLE requests ADD COLUMN codec TEXT NOT NULL DEFAULT 'plain' CHECK (codec = 'plain' OR codec = 'zstd');
ALTER TABLE requests ADD COLUMN body_bytes INTEGER CHECK (body_bytes >= 0);
