-- Namespaces of Durable Objects, one for each class of a worker, and the migrations that made them.

CREATE TABLE namespaces (
    id         TEXT PRIMARY KEY,  -- never reused: the objects' files are kept under it
    tenant     TEXT NOT NULL,
    worker     TEXT NOT NULL,  -- its name
    class      TEXT NOT NULL,
    sql        INTEGER NOT NULL,  -- 1: new_sqlite_classes, 0: new_classes
    secret     BLOB NOT NULL,  -- ids are signed with it
    tag        TEXT NOT NULL,  -- of the migration that created it
    deleted    INTEGER NOT NULL DEFAULT 0  -- 1: its objects are being deleted
) STRICT;

CREATE UNIQUE INDEX namespaces_by_class ON namespaces (tenant, worker, class) WHERE deleted = 0;

CREATE TABLE applied_tags (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    worker TEXT NOT NULL,
    tag    TEXT NOT NULL,
    UNIQUE (tenant, worker, tag)
) STRICT;
