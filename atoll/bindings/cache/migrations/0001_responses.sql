-- Cached responses. Times are seconds since 1970. The data may be lost at any time.

CREATE TABLE responses (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    cache      TEXT NOT NULL,     -- the name given to caches.open(), "default" for caches.default
    url        TEXT NOT NULL,
    vary       TEXT NOT NULL,     -- JSON array of [request header, its value or null], by name
    status     INTEGER NOT NULL,
    head       TEXT NOT NULL,     -- lines, name: value CRLF
    is_manual  INTEGER NOT NULL,  -- the body is encoded as the head says
    stored_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    cost       INTEGER NOT NULL,  -- bytes it counts for
    size       INTEGER NOT NULL,  -- bytes of the body
    body       BLOB,              -- if it is small,
    file       TEXT NOT NULL,     -- else the name of its file
    UNIQUE (tenant, cache, url, vary)
) STRICT;

CREATE INDEX responses_by_use ON responses (tenant, used_at);
CREATE INDEX responses_by_expiry ON responses (tenant, expires_at);
