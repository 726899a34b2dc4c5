-- Stores of secrets, and the secrets. Values are sealed.

CREATE TABLE stores (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,  -- ms since 1970
    PRIMARY KEY (tenant, name)
) STRICT;

CREATE TABLE secrets (
    tenant     TEXT NOT NULL,
    store      TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    comment    TEXT NOT NULL,
    created_at INTEGER NOT NULL,  -- ms since 1970
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, store, name)
) STRICT;
