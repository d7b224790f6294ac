-- works with 1
-- Who calls: accounts, their keys and people, and the sidecars that tell of themselves. Texts that are looked up compare byte by
-- byte, as everywhere in promptspool; times are kept to the microsecond.

CREATE TABLE accounts (
    name       text COLLATE "C" PRIMARY KEY,
    id         text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz      NOT NULL
);

-- By the SHA-256 of the secret, which is not kept.
CREATE TABLE keys (
    hash         bytea            PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE,
    account_id   text COLLATE "C" NOT NULL,
    account_name text COLLATE "C" NOT NULL,
    name         text             NOT NULL,
    scope        text             NOT NULL,
    created_at   timestamptz      NOT NULL,
    revoked_at   timestamptz,
    last_used_at timestamptz
);

CREATE TABLE users (
    id            text COLLATE "C" PRIMARY KEY,
    email         text COLLATE "C" NOT NULL UNIQUE,
    account_id    text COLLATE "C" NOT NULL,
    account_name  text COLLATE "C" NOT NULL,
    role          text             NOT NULL,
    password      text             NOT NULL, -- its hash
    created_at    timestamptz      NOT NULL,
    disabled_at   timestamptz,
    sessions_from timestamptz      NOT NULL
);
CREATE INDEX users_by_account ON users (account_id);

-- By the SHA-256 of the code.
CREATE TABLE invites (
    hash         bytea            PRIMARY KEY,
    id           text COLLATE "C" NOT NULL,
    account_name text COLLATE "C" NOT NULL,
    role         text             NOT NULL,
    created_at   timestamptz      NOT NULL,
    expires_at   timestamptz      NOT NULL,
    setup        boolean          NOT NULL
);
CREATE INDEX invites_by_account ON invites (account_name);

-- By the SHA-256 of the token.
CREATE TABLE sessions (
    hash       bytea            PRIMARY KEY,
    user_id    text COLLATE "C" NOT NULL,
    created_at timestamptz      NOT NULL,
    expires_at timestamptz      NOT NULL
);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE audit (
    account_id text COLLATE "C" NOT NULL,
    id         uuid             NOT NULL,
    entry      json             NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- What a sidecar told of itself last. It is rewritten every few seconds: the room lets that happen within a page.
CREATE TABLE sidecars (
    account_id text COLLATE "C" NOT NULL,
    id         uuid             NOT NULL,
    heartbeat  json             NOT NULL,
    last_seen  timestamptz      NOT NULL,
    PRIMARY KEY (account_id, id)
) WITH (fillfactor = 50);
