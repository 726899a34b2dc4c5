-- The history of cron triggers. Times are milliseconds since 1970.

-- The last recorded slot of each expression: slots between it and the next start were missed.
CREATE TABLE cron_marks (
    worker_id TEXT NOT NULL,
    cron      TEXT NOT NULL,
    slot      INTEGER NOT NULL,
    PRIMARY KEY (worker_id, cron)
) STRICT, WITHOUT ROWID;

CREATE TABLE cron_runs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    worker_id    TEXT NOT NULL,
    cron         TEXT NOT NULL,
    slot         INTEGER NOT NULL,  -- when it was due
    started_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    outcome      TEXT NOT NULL,  -- "running" until it ends; after a crash "interrupted"
    message      TEXT NOT NULL DEFAULT '',
    by_hand      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX cron_runs_of_worker ON cron_runs (worker_id, id);
