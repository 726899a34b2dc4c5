-- Durable Objects of all nodes. Each has one owner, the only node that runs it; only its owner writes.

-- Epochs, one for each time that an object is opened. No two are the same, of whatever object.
CREATE SEQUENCE object_epochs;

CREATE TABLE objects (
    namespace text NOT NULL COLLATE "C",
    id        text NOT NULL COLLATE "C",
    born      bigint NOT NULL UNIQUE,   -- the epoch that made it: an object that is deleted and made again is another one
    epoch     bigint NOT NULL,
    session   text NOT NULL,            -- the node that has it; '': nobody
    seq       bigint NOT NULL DEFAULT 0,  -- its last commit
    pages     bigint NOT NULL DEFAULT 0,  -- the size of its database after that
    at_ms     bigint NOT NULL DEFAULT 0,  -- when that came
    alarm_at  bigint,
    alarm_seq bigint NOT NULL DEFAULT 0,  -- the commit that set or deleted the alarm
    folded    bigint NOT NULL DEFAULT 0,  -- commits up to this one are in object_chunks
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 80);
CREATE INDEX objects_by_alarm ON objects (alarm_at) WHERE alarm_at IS NOT NULL;
CREATE INDEX objects_by_session ON objects (session);

-- Commits that are not folded yet: the pages they changed.
CREATE TABLE object_log (
    object bigint NOT NULL,  -- objects.born
    seq    bigint NOT NULL,
    pages  bigint NOT NULL,
    body   bytea NOT NULL,   -- objects/shared/bodies.py
    PRIMARY KEY (object, seq)
);

-- The database of each object as it was after the commit `folded`, in pieces of 16 pages.
CREATE TABLE object_chunks (
    object bigint NOT NULL,
    chunk  int NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (object, chunk)
);
ALTER TABLE object_log ALTER COLUMN body SET STORAGE EXTERNAL;     -- compressed already
ALTER TABLE object_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- Nodes that were the only one, and have objects on their own disk.
CREATE TABLE objects_kept_alone (name text PRIMARY KEY);

-- Where each node listens for the others.
CREATE TABLE node_links (session text PRIMARY KEY, address text NOT NULL);
