-- The tables, as package schema creates them in an empty database. Each statement ends with a semicolon at the end of a line.

-- Records. account_id is the account's id, as key.go writes it. ts is the moment in the request id, so that every event of a record, and
-- every retry of one, meets the same partition: a week from Monday to Monday, UTC, made ahead by partition.go. What lies far from today goes
-- to the partition without bounds.

-- The whole of a record apart from its bodies, packed: state.go.
CREATE TABLE record_states (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid             NOT NULL,
	ts         timestamptz      NOT NULL,
	revision   bigint           NOT NULL, -- counts its changes: one that finds another than it has read begins anew
	orphan     boolean          NOT NULL, -- its request has not come
	state      bytea            NOT NULL,
	trace      uuid,                      -- of its span
	span_at    bigint,                    -- order time, nanoseconds since 1970, of a record that is only a span: it has no header
	PRIMARY KEY (account_id, request_id, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE record_states ALTER COLUMN state SET STORAGE EXTERNAL;
CREATE INDEX record_states_orphans ON record_states (account_id, request_id) WHERE orphan;
CREATE INDEX record_states_traces ON record_states (account_id, trace, request_id) WHERE trace IS NOT NULL;
CREATE INDEX record_states_spans ON record_states (account_id, span_at, request_id) WHERE span_at IS NOT NULL;
CREATE TABLE record_states_default PARTITION OF record_states DEFAULT;

-- What later events add to the state of a large record (archive.Delta), packed, so that the state is not written with each of them.
CREATE TABLE record_deltas (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid             NOT NULL,
	ts         timestamptz      NOT NULL,
	after      int              NOT NULL, -- how many events the record has before them
	delta      bytea            NOT NULL,
	PRIMARY KEY (account_id, request_id, after, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE record_deltas ALTER COLUMN delta SET STORAGE EXTERNAL;
CREATE TABLE record_deltas_default PARTITION OF record_deltas DEFAULT;

-- What belongs together: archive.Set.
CREATE TABLE record_calls (
	account_id text COLLATE "C" NOT NULL,
	call       uuid             NOT NULL, -- the key of a span, a response id or a trace
	ts         timestamptz      NOT NULL, -- the Monday in it
	revision   bigint           NOT NULL, -- as that of record_states
	members    bytea            NOT NULL,
	PRIMARY KEY (account_id, call, ts)
) PARTITION BY RANGE (ts);
CREATE TABLE record_calls_default PARTITION OF record_calls DEFAULT;

-- The narrow header of a record whose request has come: what lists, filters and statistics read.
CREATE TABLE records (
	account_id       text COLLATE "C" NOT NULL,
	at               bigint           NOT NULL, -- list time (archive.State.ListTime), nanoseconds since 1970
	request_id       uuid             NOT NULL,
	ts               timestamptz      NOT NULL,
	version          bigint,
	input_tokens     bigint,
	output_tokens    bigint,
	cached_tokens    bigint,
	reasoning_tokens bigint,
	start_at         bigint,                    -- nanoseconds since 1970, as the caller said
	cost             double precision,          -- US dollars
	latency          double precision,          -- milliseconds
	first_token      double precision,          -- milliseconds
	terms            bigint[]         NOT NULL, -- hashes of its texts: term.go
	line             bytea            NOT NULL, -- the row of a list: package rowcode
	accepted         bigint           NOT NULL, -- order time, nanoseconds since 1970
	-- A server of 0.1.0 does not name it, and its statements fail: step_2.sql.
	cache_write_tokens bigint DEFAULT 'a_newer_server'::text::regclass::bigint,
	PRIMARY KEY (account_id, at, request_id, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE records ALTER COLUMN terms SET STORAGE MAIN;
ALTER TABLE records ALTER COLUMN line SET STORAGE MAIN;
CREATE INDEX records_terms ON records USING gin (terms);
-- What arrived within a time lies together in the files, so an index of a few pages finds it.
CREATE INDEX records_accepted ON records USING brin (accepted) WITH (autosummarize = on);
CREATE TABLE records_default PARTITION OF records DEFAULT;

-- Bodies as they were sent, packed already: codec.go.
CREATE TABLE record_bodies (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid             NOT NULL,
	ts         timestamptz      NOT NULL,
	event_id   uuid             NOT NULL,
	body       bytea            NOT NULL,
	dependants bytea,                     -- what is packed against it: package repack
	PRIMARY KEY (account_id, request_id, event_id, ts)
) PARTITION BY RANGE (ts);
ALTER TABLE record_bodies ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE record_bodies_default PARTITION OF record_bodies DEFAULT;

-- How much an account has in each week, and when: what no list needs to look at a partition for. Every writer adds to a row of its own
-- (slot), for else all would wait for each other's commits; the sum counts.
CREATE TABLE account_weeks (
	account_id      text COLLATE "C" NOT NULL,
	week            date             NOT NULL,
	slot            int              NOT NULL,
	records         bigint           NOT NULL, -- that a list shows
	spans           bigint           NOT NULL, -- records that are only a span
	bytes           bigint           NOT NULL, -- of the bodies of all events, as they were sent
	orphans         bigint           NOT NULL,
	orphan_events   bigint           NOT NULL,
	orphan_bytes    bigint           NOT NULL,
	logs            bigint           NOT NULL, -- log records that wait for their span; orphans does not include them
	newest          bigint,                    -- order times of records and of those spans lie between these, perhaps closer
	oldest          bigint,
	list_newest     bigint,                    -- and the list times of records between these
	list_oldest     bigint,
	PRIMARY KEY (account_id, week, slot)
) WITH (fillfactor = 50);

-- What the records of each session, trace and user of a week add up to: package rollup.
CREATE TABLE rollups (
	account_id    text COLLATE "C" NOT NULL,
	kind          smallint         NOT NULL, -- rollup.Kind
	name          text COLLATE "C" NOT NULL,
	ts            timestamptz      NOT NULL, -- the Monday of the week
	first_at      bigint           NOT NULL, -- microseconds since 1970; perhaps wider than what is left
	last_at       bigint           NOT NULL,
	turns         bigint           NOT NULL,
	spans         bigint           NOT NULL,
	cost          bigint           NOT NULL, -- billionths of a dollar
	input_tokens  bigint           NOT NULL,
	output_tokens bigint           NOT NULL,
	errors        bigint           NOT NULL,
	scores        bigint           NOT NULL,
	score_sum     bigint           NOT NULL,
	PRIMARY KEY (account_id, kind, name, ts)
) PARTITION BY RANGE (ts);
CREATE TABLE rollups_default PARTITION OF rollups DEFAULT;

-- What the weeks of each add up to: lists of 200,000 names have no time to do that. The kinds lie apart, as a list reads all of one.
CREATE TABLE rollup_totals (
	account_id    text COLLATE "C" NOT NULL,
	kind          smallint         NOT NULL,
	name          text COLLATE "C" NOT NULL,
	first_at      bigint           NOT NULL,
	last_at       bigint           NOT NULL,
	turns         bigint           NOT NULL,
	spans         bigint           NOT NULL,
	cost          bigint           NOT NULL,
	input_tokens  bigint           NOT NULL,
	output_tokens bigint           NOT NULL,
	errors        bigint           NOT NULL,
	scores        bigint           NOT NULL,
	score_sum     bigint           NOT NULL,
	PRIMARY KEY (account_id, kind, name)
) PARTITION BY LIST (kind);
CREATE TABLE rollup_totals_sessions PARTITION OF rollup_totals FOR VALUES IN (0);
CREATE TABLE rollup_totals_traces PARTITION OF rollup_totals FOR VALUES IN (1);
CREATE TABLE rollup_totals_users PARTITION OF rollup_totals FOR VALUES IN (2);

-- Deleted records, which are kept out for ever.
CREATE TABLE tombstones (
	account_id text COLLATE "C" NOT NULL,
	request_id uuid             NOT NULL,
	deleted_at timestamptz      NOT NULL,
	unseen     boolean          NOT NULL,  -- false: 0.1.0 counted deletions of what was not there
	PRIMARY KEY (account_id, request_id)
);
CREATE INDEX tombstones_unseen ON tombstones (account_id) WHERE unseen;

-- Deleted metadata values, by rowcode.HashValue: what has one and is not later is kept out.
CREATE TABLE deleted_values (
	account_id text COLLATE "C" NOT NULL,
	hash       bytea            NOT NULL,
	before     bigint           NOT NULL, -- order time, nanoseconds since 1970
	PRIMARY KEY (account_id, hash)
);

-- Summaries of segments of an account's list, for statistics. A change within a segment removes its summary.
CREATE TABLE summaries (
	account_id text COLLATE "C" NOT NULL,
	newest     bigint           NOT NULL, -- list time of its first row
	oldest     bigint           NOT NULL, -- and of its last
	bottom     bigint           NOT NULL, -- no other row is newer than this, or as new, and not newer than newest
	row_count  bigint           NOT NULL,
	summary    bytea            NOT NULL, -- query.Summarize; empty: it would be too large to be of use
	top_rows   bytea            NOT NULL, -- query.Tops: its first rows in each order; empty: the rows are too heavy to be held in memory
	form       smallint         NOT NULL DEFAULT 1, -- query.SummaryForm; 0.1.0 does not name it
	PRIMARY KEY (account_id, newest)
);
ALTER TABLE summaries ALTER COLUMN summary SET STORAGE EXTERNAL;

-- Which rows of an account's list have which words: package textindex. A unit is some thousands of rows that follow each other. A change of
-- a text within it, or of which rows it has, removes it.
CREATE TABLE text_units (
	account_id text COLLATE "C" NOT NULL,
	newest     bigint           NOT NULL, -- as of summaries
	bottom     bigint           NOT NULL,
	row_count  bigint           NOT NULL,
	ids        bytea            NOT NULL, -- of its rows, newest first: document n is the n-th
	form       smallint         NOT NULL DEFAULT 1, -- words.Folding; 0.1.0 does not name it
	PRIMARY KEY (account_id, newest)
);
ALTER TABLE text_units ALTER COLUMN ids SET STORAGE EXTERNAL;
CREATE TABLE text_pages (
	account_id text COLLATE "C" NOT NULL,
	newest     bigint           NOT NULL, -- of the unit
	page       smallint         NOT NULL,
	words      bytea            NOT NULL,
	PRIMARY KEY (account_id, newest, page)
);
ALTER TABLE text_pages ALTER COLUMN words SET STORAGE EXTERNAL;

-- What is small (package keyed): accounts, keys, people, templates, sidecars, the audit log. json, not jsonb: a value is given back byte for
-- byte as it was written. Some are rewritten every few seconds: the room lets that happen within a page.
CREATE TABLE small_values (
	kind       text COLLATE "C" NOT NULL,
	account_id text COLLATE "C" NOT NULL, -- empty: of the server
	name       bytea            NOT NULL,
	value      json             NOT NULL,
	PRIMARY KEY (kind, account_id, name)
) WITH (fillfactor = 80);
