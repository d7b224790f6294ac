-- works with 1
-- Failed sign-ins, by the SHA-256 of what they have in common, until they are forgotten.
CREATE TABLE sign_in_failures (
    source bytea       PRIMARY KEY,
    count  integer     NOT NULL,
    until  timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_by_end ON sign_in_failures (until);
