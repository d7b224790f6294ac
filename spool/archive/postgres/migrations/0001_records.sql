-- works with 1

-- Narrow headers, which lists, filters and statistics read. ts is the moment in the request id, so that every event of a record, and
-- every retry, meets the same partition. What is only read by the id lies out of line (TOAST) behind the header.
CREATE TABLE records (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid NOT NULL,
	ts timestamptz NOT NULL,
	revision bigint NOT NULL,      -- counts the changes of the record; a change that finds another than it has read begins anew
	at bigint,                     -- order time, nanoseconds since 1970; null while the request has not come
	function_name text COLLATE "C",
	model text COLLATE "C",
	provider text COLLATE "C",
	status text COLLATE "C",
	sidecar text COLLATE "C",
	template text COLLATE "C",
	version int,
	label text COLLATE "C",
	tags text[] COLLATE "C",
	group_ids text[] COLLATE "C",
	metadata jsonb,                -- object of strings
	scores jsonb,                  -- object of numbers; null: none
	input_tokens bigint,
	output_tokens bigint,
	cached_tokens bigint,
	reasoning_tokens bigint,
	cost bigint,                   -- billionths of a dollar
	start_at bigint,               -- nanoseconds since 1970, as the caller said
	end_at bigint,
	latency bigint,                -- nanoseconds
	finish_reason text COLLATE "C",
	error_type text COLLATE "C",
	tools text[] COLLATE "C",
	turns int,
	shape text COLLATE "C",
	readable boolean,
	odd boolean NOT NULL,          -- something of it cannot be told in these columns; the state tells
	state bytea NOT NULL,          -- packed JSON: the whole record apart from its bodies
	PRIMARY KEY (account_id, request_id, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE records ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE TABLE records_default PARTITION OF records DEFAULT;

-- Bodies as they were sent, packed already.
CREATE TABLE record_bodies (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid NOT NULL,
	ts timestamptz NOT NULL,
	event_id uuid NOT NULL,
	body bytea NOT NULL,
	PRIMARY KEY (account_id, request_id, ts, event_id)
) PARTITION BY RANGE (ts);
ALTER TABLE record_bodies ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE record_bodies_default PARTITION OF record_bodies DEFAULT;
