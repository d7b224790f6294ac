-- works with 9
-- How far the records of earlier versions have been brought up to date (archive.Renewal); no row before the first step.
CREATE TABLE renewal (
    one     boolean PRIMARY KEY CHECK (one),
    renewal text    NOT NULL
);
