-- works with 1
-- Links with which a person chooses a new password, by the SHA-256 of the code.
CREATE TABLE resets (
    hash       bytea            PRIMARY KEY,
    user_id    text COLLATE "C" NOT NULL,
    made_by    text             NOT NULL,
    created_at timestamptz      NOT NULL,
    expires_at timestamptz      NOT NULL
);
CREATE INDEX resets_by_user ON resets (user_id);
