-- works with 1
-- Deletions of records that were not there are counted, so that made-up ids do not fill the disk.
ALTER TABLE tombstones ADD COLUMN unseen boolean NOT NULL DEFAULT false;
CREATE INDEX tombstones_unseen ON tombstones (account_id) WHERE unseen;
