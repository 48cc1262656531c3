-- Groups that were replaced from the reserve of their request, and those that replaced them. No new table: columns of groups, which go
-- with their batch.
-- No CHECK: adding one reads every row.
ALTER TABLE groups ADD COLUMN dropped INTEGER; -- 1: its rewards taught nothing, so it has no advantages; NULL: it was not
ALTER TABLE groups ADD COLUMN drawn INTEGER; -- 1: from the reserve; NULL: it was asked for
