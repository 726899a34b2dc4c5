-- Queues and their messages. Times are milliseconds since 1970.

CREATE TABLE queues (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    paused     INTEGER NOT NULL DEFAULT 0,
    retention  INTEGER NOT NULL,  -- seconds a message may wait
    dropped    INTEGER NOT NULL DEFAULT 0,  -- messages that failed too often and had no dead-letter queue
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE messages (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: the order of arrival
    queue_id   INTEGER NOT NULL REFERENCES queues (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    type       TEXT NOT NULL,
    body       BLOB NOT NULL,
    sent_at    INTEGER NOT NULL,
    visible_at INTEGER NOT NULL,  -- not delivered before
    attempts   INTEGER NOT NULL DEFAULT 0,
    leased     INTEGER NOT NULL DEFAULT 0  -- a consumer has it now; stale after a crash
) STRICT;

CREATE INDEX messages_waiting ON messages (queue_id, leased, visible_at);
CREATE INDEX messages_by_age ON messages (queue_id, sent_at);
