-- Buckets of tenants and their objects. Times are milliseconds since 1970.

CREATE TABLE buckets (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: objects of a dropped bucket are deleted later
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    objects    INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,  -- of contents, keys and metadata, parts of unfinished uploads included
    UNIQUE (tenant, name)
) STRICT;

-- What all buckets of a tenant hold: a quota is checked with one lookup.
CREATE TABLE usage (
    tenant  TEXT PRIMARY KEY,
    objects INTEGER NOT NULL,
    bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Dropped buckets whose objects are not all gone yet.
CREATE TABLE dropped (
    id INTEGER PRIMARY KEY
) STRICT;

-- The metadata is last: a list that does not need it does not read it.
CREATE TABLE objects (
    id            INTEGER PRIMARY KEY,
    bucket        INTEGER NOT NULL,
    key           BLOB NOT NULL,     -- UTF-8
    version       TEXT NOT NULL,
    size          INTEGER NOT NULL,
    etag          TEXT NOT NULL,
    uploaded      INTEGER NOT NULL,
    storage_class TEXT NOT NULL,
    checksums     TEXT NOT NULL,     -- JSON of hex digests
    content       INTEGER NOT NULL,  -- its row in `bodies`, or its rows in `segments`
    part_size     INTEGER NOT NULL,  -- of all its segments but the last; 0: the content is in `bodies`
    cost          INTEGER NOT NULL,  -- bytes that count towards quotas
    http          TEXT NOT NULL,     -- JSON, or ''
    custom        TEXT NOT NULL      -- JSON, or ''
) STRICT;

CREATE UNIQUE INDEX objects_by_key ON objects (bucket, key);

-- The content of small objects.
CREATE TABLE bodies (
    content INTEGER PRIMARY KEY,
    body    BLOB NOT NULL
) STRICT;

-- The files that make up a content, in order from 1.
CREATE TABLE segments (
    content INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    file    INTEGER NOT NULL,
    PRIMARY KEY (content, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX segments_by_file ON segments (file);

-- Contents that no object and no part has any more. Their files are removed when nothing reads them.
CREATE TABLE garbage (
    content INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE uploads (
    id            TEXT PRIMARY KEY,
    bucket        INTEGER NOT NULL,
    key           BLOB NOT NULL,
    state         INTEGER NOT NULL,  -- 0 in progress, 1 completed, 2 aborted
    created_at    INTEGER NOT NULL,
    storage_class TEXT NOT NULL,
    http          TEXT NOT NULL,
    custom        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_by_age ON uploads (created_at);
CREATE INDEX uploads_by_key ON uploads (bucket, key, id) WHERE state = 0;
CREATE INDEX finished_uploads ON uploads (bucket, created_at) WHERE state > 0;

CREATE TABLE parts (
    upload   TEXT NOT NULL,
    number   INTEGER NOT NULL,
    bucket   INTEGER NOT NULL,
    content  INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    etag     TEXT NOT NULL,  -- hex MD5
    uploaded INTEGER NOT NULL,
    PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;

-- Sizes are kept by triggers, because they cost a third of what further statements would.

CREATE TRIGGER bucket_added AFTER INSERT ON buckets BEGIN
    INSERT OR IGNORE INTO usage (tenant, objects, bytes) VALUES (new.tenant, 0, 0);
END;

CREATE TRIGGER bucket_changed AFTER UPDATE OF objects, bytes ON buckets BEGIN
    UPDATE usage SET objects = objects + new.objects - old.objects, bytes = bytes + new.bytes - old.bytes
    WHERE tenant = new.tenant;
END;

CREATE TRIGGER bucket_removed AFTER DELETE ON buckets BEGIN
    UPDATE usage SET objects = objects - old.objects, bytes = bytes - old.bytes WHERE tenant = old.tenant;
END;

CREATE TRIGGER object_added AFTER INSERT ON objects BEGIN
    UPDATE buckets SET objects = objects + 1, bytes = bytes + new.cost WHERE id = new.bucket;
END;

CREATE TRIGGER object_removed AFTER DELETE ON objects BEGIN
    UPDATE buckets SET objects = objects - 1, bytes = bytes - old.cost WHERE id = old.bucket;
END;

CREATE TRIGGER body_removed AFTER DELETE ON objects WHEN old.part_size = 0 BEGIN
    DELETE FROM bodies WHERE content = old.content;
END;

CREATE TRIGGER content_removed AFTER DELETE ON objects WHEN old.part_size > 0 BEGIN
    INSERT INTO garbage (content) VALUES (old.content);
END;

CREATE TRIGGER part_added AFTER INSERT ON parts BEGIN
    UPDATE buckets SET bytes = bytes + new.size WHERE id = new.bucket;
END;

CREATE TRIGGER part_removed AFTER DELETE ON parts BEGIN
    UPDATE buckets SET bytes = bytes - old.size WHERE id = old.bucket;
    INSERT INTO garbage (content) VALUES (old.content);
END;

-- An unfinished upload costs its metadata and a row: otherwise a tenant could begin any number of them.

CREATE TRIGGER upload_added AFTER INSERT ON uploads BEGIN
    UPDATE buckets SET bytes = bytes + 500 + length(new.key) + length(new.http) + length(new.custom) WHERE id = new.bucket;
END;

CREATE TRIGGER upload_finished AFTER UPDATE OF state ON uploads WHEN old.state = 0 AND new.state > 0 BEGIN
    UPDATE buckets SET bytes = bytes - 500 - length(old.key) - length(old.http) - length(old.custom) WHERE id = old.bucket;
END;

CREATE TRIGGER upload_removed AFTER DELETE ON uploads WHEN old.state = 0 BEGIN
    UPDATE buckets SET bytes = bytes - 500 - length(old.key) - length(old.http) - length(old.custom) WHERE id = old.bucket;
END;
