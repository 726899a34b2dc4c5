-- Workers, their versions and what routes to them. Times are milliseconds since 1970.

CREATE TABLE workers (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    active_version TEXT REFERENCES versions (id),  -- null only within the transaction that makes the worker
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX workers_by_version ON workers (active_version);  -- asked whenever a version is deleted

-- Never updated. A worker's versions are numbered from 1; the oldest are deleted.
CREATE TABLE versions (
    id                 TEXT PRIMARY KEY,
    worker_id          TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    number             INTEGER NOT NULL,
    main               TEXT NOT NULL,
    format             TEXT NOT NULL,
    env                TEXT NOT NULL,  -- JSON object
    limits             TEXT NOT NULL,  -- JSON object
    compatibility_date TEXT NOT NULL,
    routes             TEXT NOT NULL,  -- JSON array of patterns: those of the active version are in `routes` too
    handlers           TEXT NOT NULL,  -- JSON array, as the engine found them
    startup_ms         REAL NOT NULL,
    created_at         INTEGER NOT NULL,
    UNIQUE (worker_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE modules (
    version_id TEXT NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    path       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    source     BLOB NOT NULL,
    UNIQUE (version_id, position),
    UNIQUE (version_id, path)
) STRICT;

-- What V8 made of a module: only good for the very V8 that made it.
CREATE TABLE code_caches (
    version_id TEXT NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
    path       TEXT NOT NULL,
    v8         TEXT NOT NULL,
    code       BLOB NOT NULL,
    UNIQUE (version_id, path, v8)
) STRICT;

-- The patterns that are live. The key is what makes two workers unable to claim the same one.
CREATE TABLE routes (
    pattern   TEXT PRIMARY KEY,
    worker_id TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX routes_of_worker ON routes (worker_id);
