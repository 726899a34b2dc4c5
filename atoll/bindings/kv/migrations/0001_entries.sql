-- Namespaces of tenants and their entries. Times are seconds since 1970.

CREATE TABLE namespaces (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: entries of a dropped namespace are deleted later
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

-- Dropped namespaces whose entries are not all gone yet.
CREATE TABLE dropped (
    id INTEGER PRIMARY KEY
) STRICT;

-- Sorted by the bytes of the key, like list(). The value is the last column: list() reads only those before it.
CREATE TABLE entries (
    namespace  INTEGER NOT NULL,
    key        BLOB NOT NULL,  -- UTF-8
    expires_at INTEGER,
    metadata   TEXT,           -- JSON
    size       INTEGER NOT NULL,
    value      BLOB NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
