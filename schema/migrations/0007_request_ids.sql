-- The X-Request-Id of the request that began a batch, so that its log lines name it after a restart too. NULL: not known.
ALTER TABLE batches ADD COLUMN request_id TEXT;
