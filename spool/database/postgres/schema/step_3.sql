-- From the tables of version 2. The sets are made anew from the records: archive.Settle.
TRUNCATE record_calls;

DROP INDEX record_states_links;
ALTER TABLE record_states DROP COLUMN link;
