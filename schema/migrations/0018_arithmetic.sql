-- By which rules of the arithmetic a batch's advantages were computed. NULL: by those from before there were numbers.
ALTER TABLE batches ADD COLUMN arithmetic_version INTEGER;
