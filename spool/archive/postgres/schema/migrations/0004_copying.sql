-- works with 1
-- How far an unfinished copy into this database has come in its source; no row when there is none.
CREATE TABLE copying (
    one   boolean PRIMARY KEY CHECK (one),
    place text    NOT NULL
);
