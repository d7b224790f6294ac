-- works with 9
-- What later events add to the state of a large record (archive.Delta), packed, so that the state is not written with each
-- of them. A server of a version before does not see it: such states are packed so that it does not read them (codec.go).
CREATE TABLE record_deltas (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid             NOT NULL,
	ts         timestamptz      NOT NULL,
	after      int              NOT NULL, -- how many events the record has before them
	delta      bytea            NOT NULL,
	PRIMARY KEY (account_id, request_id, after, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE record_deltas ALTER COLUMN delta SET STORAGE EXTERNAL;

-- The same partitions as record_states, the one without bounds among them.
DO $$
DECLARE
	part record;
BEGIN
	FOR part IN
		SELECT replace(c.relname, 'record_states', 'record_deltas') AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'record_states'::regclass
	LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF record_deltas %s', part.name, part.bounds);
	END LOOP;
END $$;
