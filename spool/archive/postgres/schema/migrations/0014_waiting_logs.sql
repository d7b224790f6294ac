-- works with 14
-- Log records that wait for their span; orphans no longer includes them. No released version kept any.
ALTER TABLE account_weeks ADD COLUMN logs bigint NOT NULL DEFAULT 0;
