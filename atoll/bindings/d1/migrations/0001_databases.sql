-- D1 databases. What they store is in Durable Objects: each database is the only object of a namespace.

CREATE TABLE databases (
    id         TEXT PRIMARY KEY,  -- also the namespace of its object; never reused
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (tenant, name)
) STRICT;
