-- From the tables of 0.1.0. For rows that there are, the default is NULL: it is set after the column.
ALTER TABLE records ADD COLUMN cache_write_tokens bigint;
ALTER TABLE records ALTER COLUMN cache_write_tokens SET DEFAULT 'a_newer_server'::text::regclass::bigint;

ALTER TABLE summaries ADD COLUMN form smallint NOT NULL DEFAULT 1;
ALTER TABLE text_units ADD COLUMN form smallint NOT NULL DEFAULT 1;
