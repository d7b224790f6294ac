-- works with 12
-- records.at is the list time from here on (archive.State.ListTime), and the order time has a column of its own. That is NULL
-- where an earlier version wrote the row: then at is the order time. newest and oldest of account_weeks stay order times.
ALTER TABLE records ADD COLUMN accepted bigint;
ALTER TABLE account_weeks ADD COLUMN list_newest bigint;
ALTER TABLE account_weeks ADD COLUMN list_oldest bigint;

-- What arrived within a time lies together in the files, so an index of a few pages finds it.
CREATE INDEX records_accepted ON records USING brin ((coalesce(accepted, at))) WITH (autosummarize = on);
