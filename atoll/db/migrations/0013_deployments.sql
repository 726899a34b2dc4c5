-- A deployment says which versions of a worker get traffic. The newest of a worker is the current one.
CREATE TABLE deployments (
    id         TEXT PRIMARY KEY,
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,  -- ms since 1970
    author     TEXT NOT NULL,
    message    TEXT NOT NULL,
    source     TEXT NOT NULL,  -- deploy, secret, rollback, versions
    versions   TEXT NOT NULL,  -- JSON array of [version id, version number, hundredths of a percent]
    UNIQUE (worker_id, number)
) STRICT, WITHOUT ROWID;

INSERT INTO deployments (id, worker_id, number, created_at, author, message, source, versions)
SELECT 'deployment_' || lower(hex(randomblob(6))), workers.id, 1, updated_at, author, message, 'deploy',
       json_array(json_array(versions.id, versions.number, 10000))
FROM workers JOIN versions ON versions.id = active_version;

-- The versions of a worker that has traffic in several. Without rows here all traffic goes to its active version.
CREATE TABLE traffic (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    version_id TEXT NOT NULL REFERENCES versions (id),  -- such a version cannot be deleted
    hundredths INTEGER NOT NULL,
    PRIMARY KEY (worker_id, version_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX traffic_of_version ON traffic (version_id);

-- Names that lead to versions in hosts of previews: <alias>-<worker>.<base domain>.
CREATE TABLE preview_aliases (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    alias      TEXT NOT NULL,
    version_id TEXT NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,  -- ms since 1970
    PRIMARY KEY (worker_id, alias)
) STRICT, WITHOUT ROWID;

CREATE INDEX aliases_of_version ON preview_aliases (version_id);

-- Whether it ever had all traffic, so that a rollback may return to it. Older versions were deployed when they were made.
ALTER TABLE versions ADD COLUMN was_active INTEGER NOT NULL DEFAULT 1;
-- Whether it may be reached by a preview URL. Nobody expects that of older versions.
ALTER TABLE versions ADD COLUMN preview_urls INTEGER NOT NULL DEFAULT 0;
