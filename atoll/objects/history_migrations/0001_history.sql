-- How far the history of each object goes, and what it takes.
CREATE TABLE histories (
    number INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    last INTEGER NOT NULL,     -- commits up to this one can be undone
    last_at INTEGER NOT NULL,  -- when it came
    is_point INTEGER NOT NULL, -- 0: it is in the middle of a restore
    bytes INTEGER NOT NULL,
    UNIQUE (namespace, id)
) STRICT;

-- A step from the state after the commit `last` back to the state after the commit `first`: pages as they were.
CREATE TABLE undo (
    object INTEGER NOT NULL,
    last INTEGER NOT NULL,
    part INTEGER NOT NULL,     -- a large step has several, from 0
    first INTEGER NOT NULL,
    first_at INTEGER NOT NULL, -- when the commit `first` came
    last_at INTEGER NOT NULL,
    pages INTEGER NOT NULL,    -- the size after `first`
    is_point INTEGER NOT NULL, -- whether the object may go back to `first`
    undoes INTEGER,            -- the step is a restore that was asked for after this commit
    data BLOB NOT NULL,
    PRIMARY KEY (object, last, part)
) STRICT;

CREATE INDEX undo_by_age ON undo (last_at);
