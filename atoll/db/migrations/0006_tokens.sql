-- Tenants, and the tokens that let people and programs act for them.
CREATE TABLE tenants (
    name       TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,  -- ms since 1970
    quotas     TEXT NOT NULL,  -- JSON object; a name that is missing has no bound
    hosts      TEXT NOT NULL  -- JSON array of host patterns it may route, null for any that is free
) STRICT, WITHOUT ROWID;

INSERT INTO tenants (name, created_at, quotas, hosts) VALUES ('default', 0, '{}', 'null');

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL,  -- SHA-256 of the whole token: it has 256 random bits, so it needs no salt
    name       TEXT NOT NULL,
    tenant     TEXT,  -- null: all of them
    scopes     TEXT NOT NULL,  -- JSON array
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at    INTEGER  -- to about a minute
) STRICT, WITHOUT ROWID;
