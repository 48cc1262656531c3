-- By which a batch is found that a key or a request has made. No new table.
CREATE INDEX idempotency_keys_by_key ON idempotency_keys (key);
CREATE INDEX batches_by_request_id ON batches (request_id) WHERE request_id IS NOT NULL;
