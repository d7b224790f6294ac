-- From the tables of 0.1.0 to those of schema.sql; see steps.go.

ALTER TABLE summaries ADD COLUMN form smallint NOT NULL DEFAULT 1;
ALTER TABLE text_units ADD COLUMN form smallint NOT NULL DEFAULT 1;
