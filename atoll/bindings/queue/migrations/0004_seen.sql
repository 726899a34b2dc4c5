-- When messages were last swept, to about ten minutes. A clock that is days ahead of it at the next start may be wrong, and
-- a sweep would delete young messages.

CREATE TABLE seen (
    at INTEGER NOT NULL
) STRICT;
