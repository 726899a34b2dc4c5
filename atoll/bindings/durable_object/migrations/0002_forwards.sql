-- Where the objects of a class went that was renamed or moved to another worker: bindings to the old name lead there.

CREATE TABLE forwards (
    tenant    TEXT NOT NULL,
    worker    TEXT NOT NULL,  -- the old one
    class     TEXT NOT NULL,
    namespace TEXT NOT NULL,
    PRIMARY KEY (tenant, worker, class)
) STRICT;

-- Workers whose classes are declared by `exports`, and the declaration that was applied last.

CREATE TABLE declared (
    tenant  TEXT NOT NULL,
    worker  TEXT NOT NULL,
    made_at INTEGER NOT NULL,  -- when the version with it was made, in ms since 1970
    exports TEXT NOT NULL,  -- JSON
    PRIMARY KEY (tenant, worker)
) STRICT;
