-- works with 1
-- Templates. Whoever changes one of an account first locks the account's row here, so that numbers have no gaps and revisions become
-- visible in their order: who reads the changes after a revision can never be told of one below it later.
CREATE TABLE registries (
    account_id text COLLATE "C" PRIMARY KEY,
    template   bigint NOT NULL, -- ids and the revision that were given out last
    version    bigint NOT NULL,
    revision   bigint NOT NULL
);

-- Heads. json, not jsonb: what was published is given back as it was sent.
CREATE TABLE templates (
    account_id text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    id         bigint           NOT NULL,
    revision   bigint           NOT NULL, -- that changed it last
    head       json             NOT NULL,
    PRIMARY KEY (account_id, name),
    UNIQUE (account_id, id)
);
CREATE UNIQUE INDEX templates_by_revision ON templates (account_id, revision);

CREATE TABLE template_versions (
    account_id  text COLLATE "C" NOT NULL,
    template_id bigint           NOT NULL,
    number      integer          NOT NULL,
    version     json             NOT NULL,
    PRIMARY KEY (account_id, template_id, number)
);
