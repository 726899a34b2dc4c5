-- Nodes, and the changes that all of them follow. Times are of the database's clock.

-- One row. Numbers come from here, in the transaction of the change, so they are committed in order and without gaps.
-- A sequence would hand out 7 and 6 to transactions that commit in the other order, and a reader at 7 would miss 6.
CREATE TABLE feed (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    head  bigint NOT NULL,
    proof bytea  -- a value sealed with the root key: every node must be able to open it
);
INSERT INTO feed (head) VALUES (0);

-- A shared database of the nodes: a SQLite file on each, and its changes here. `last` is the number of its newest one.
CREATE TABLE stores (
    name     text PRIMARY KEY,
    last     bigint NOT NULL,
    schema   int NOT NULL,             -- migrations of the file that the newest writer had
    snapshot bigint NOT NULL DEFAULT 0 -- number of the change that the snapshot ends with; 0: there is none
);

CREATE TABLE changes (
    seq    bigint PRIMARY KEY,
    store  text NOT NULL REFERENCES stores (name),
    prev   bigint NOT NULL,  -- the change of the same store before it: a reader sees what it missed
    id     uuid NOT NULL UNIQUE,  -- chosen by the writer, who looks for it when it does not know whether it committed
    schema int NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    body   bytea NOT NULL  -- a changeset of SQLite
);
CREATE INDEX changes_of_store ON changes (store, seq);

CREATE TABLE snapshots (
    store text NOT NULL REFERENCES stores (name),
    seq   bigint NOT NULL,
    id    uuid NOT NULL,  -- of the change with this number
    part  int NOT NULL,
    body  bytea NOT NULL,
    PRIMARY KEY (store, seq, part)
);

CREATE TABLE nodes (
    session text PRIMARY KEY,  -- random, new at each start
    name    text NOT NULL,
    address text NOT NULL,     -- where an edge reaches it
    release text NOT NULL,
    schema  int NOT NULL,      -- migrations of the main shared database that it knows
    alone   boolean NOT NULL,
    state   text NOT NULL,     -- starting, serving, draining
    seen    bigint NOT NULL,   -- the newest change that it has applied
    started timestamptz NOT NULL DEFAULT now(),
    expires timestamptz NOT NULL,
    wanted  text NOT NULL DEFAULT ''  -- "drain": an operator wants that
);
