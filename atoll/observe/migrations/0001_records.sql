-- One row per call that is over. Ids grow with arrival, so the oldest are the lowest. Times are ms since 1970.
CREATE TABLE records (
    id      INTEGER PRIMARY KEY,
    worker  TEXT NOT NULL,
    at      INTEGER NOT NULL,  -- when the call began
    outcome INTEGER NOT NULL,
    level   INTEGER NOT NULL,  -- the worst of what was said, -1 for a call that said nothing
    version TEXT NOT NULL,
    status  INTEGER NOT NULL,
    cpu_us  INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    url     TEXT NOT NULL,     -- redacted
    rest    TEXT NOT NULL,     -- JSON array: records.py knows what is where; without names, so that text can be found
    bytes   INTEGER NOT NULL   -- about what the row takes
) STRICT;

-- What is asked for by outcome or level is found without a look at the rows.
CREATE INDEX records_of_worker ON records (worker, at, id, outcome, level);

-- What each worker takes: who has most pays first when all together is too much.
CREATE TABLE totals (
    worker  TEXT PRIMARY KEY,
    tenant  TEXT NOT NULL,
    records INTEGER NOT NULL,
    bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
