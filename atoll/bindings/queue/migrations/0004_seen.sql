-- When messages were last swept, to about ten minutes: a clock that is days ahead of it at the next start may be wrong, and would
-- have messages deleted that are young.

CREATE TABLE seen (
    at INTEGER NOT NULL
) STRICT;
