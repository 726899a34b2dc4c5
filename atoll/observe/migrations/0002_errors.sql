-- Errors of workers in groups of one kind each: error_groups.py makes the fingerprints.
CREATE TABLE errors (
    id          INTEGER PRIMARY KEY,
    worker      TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    message     TEXT NOT NULL,     -- of the last one, with its type
    frame       TEXT NOT NULL,     -- "" if there is no stack
    count       INTEGER NOT NULL,
    first_seen  INTEGER NOT NULL,  -- ms since 1970
    last_seen   INTEGER NOT NULL,
    example     INTEGER NOT NULL,  -- the record of the last one
    UNIQUE (worker, fingerprint)
) STRICT;

CREATE INDEX errors_of_tenant ON errors (tenant, last_seen, id);
