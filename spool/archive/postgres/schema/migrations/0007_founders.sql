-- works with 1
-- Who founded their account without a code: an operator who makes a key for it is told.
ALTER TABLE users ADD COLUMN founder boolean NOT NULL DEFAULT false;
