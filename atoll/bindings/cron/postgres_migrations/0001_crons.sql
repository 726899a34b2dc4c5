-- The history of cron triggers. Times are milliseconds since 1970.

CREATE TABLE cron_marks (
    worker_id text NOT NULL,
    cron      text NOT NULL,
    slot      bigint NOT NULL,
    PRIMARY KEY (worker_id, cron)
);

CREATE TABLE cron_runs (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    worker_id  text NOT NULL,
    cron       text NOT NULL,
    slot       bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at   bigint,
    outcome    text NOT NULL,
    message    text NOT NULL DEFAULT '',
    by_hand    int NOT NULL,
    session    text NOT NULL  -- of the node that runs it
);
-- The node that inserts the row of a slot runs it.
CREATE UNIQUE INDEX cron_runs_slot ON cron_runs (worker_id, cron, slot) WHERE by_hand = 0;
CREATE INDEX cron_runs_of_worker ON cron_runs (worker_id, id);
