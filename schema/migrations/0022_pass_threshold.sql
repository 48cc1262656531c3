-- From which score on a rollout is correct in a batch's pass@k. NULL: the batch is from before there was this column.
ALTER TABLE batches ADD COLUMN pass_threshold REAL;
