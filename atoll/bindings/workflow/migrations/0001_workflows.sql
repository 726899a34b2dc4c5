-- Workflows, and their instances as they last reported themselves. What an instance stores is in its Durable Object.

CREATE TABLE workflows (
    id         TEXT PRIMARY KEY,  -- also the namespace of its objects; never reused
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    worker     TEXT NOT NULL,
    class      TEXT NOT NULL,
    created_at INTEGER NOT NULL,  -- ms since 1970
    changed_at INTEGER NOT NULL,
    steps      INTEGER,           -- the most steps of an instance; NULL: the usual limit
    complete_ms INTEGER,          -- how long instances that have ended are kept; NULL: as long as can be
    errored_ms INTEGER,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE instances (
    workflow   TEXT NOT NULL,
    name       TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at   INTEGER,
    expires_at INTEGER,
    PRIMARY KEY (workflow, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX instances_by_age ON instances (workflow, created_at, name);
CREATE INDEX instances_by_status ON instances (workflow, status);
CREATE INDEX instances_by_end ON instances (expires_at) WHERE expires_at IS NOT NULL;
