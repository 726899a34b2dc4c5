-- Queues and their messages. Times are milliseconds since 1970.

CREATE TABLE queues (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- never reused
    tenant     text NOT NULL,
    name       text NOT NULL,
    paused     boolean NOT NULL DEFAULT false,
    retention  bigint NOT NULL,  -- seconds a message may wait
    dropped    bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    leaving    boolean NOT NULL DEFAULT false,  -- it is being deleted
    bytes      bigint NOT NULL DEFAULT 0,  -- of messages; each counts for 128 more than its body
    UNIQUE (tenant, name)
) WITH (fillfactor = 50);

CREATE TABLE queue_messages (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- the order of arrival
    queue_id   bigint NOT NULL REFERENCES queues (id) ON DELETE CASCADE,
    id         text NOT NULL,
    type       text NOT NULL,
    body       bytea NOT NULL,
    sent_at    bigint NOT NULL,
    visible_at bigint NOT NULL,  -- not delivered before
    attempts   int NOT NULL DEFAULT 0,
    lease      text  -- the session of the node whose consumer has it; null: nobody has it
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- A burst makes the statistics wrong for minutes. These orders and conditions leave the planner no other choice.
CREATE INDEX queue_messages_waiting ON queue_messages (queue_id, visible_at, seq) WHERE lease IS NULL;
CREATE INDEX queue_messages_leased ON queue_messages (lease) WHERE lease IS NOT NULL;
CREATE INDEX queue_messages_by_age ON queue_messages (queue_id, sent_at);
CREATE INDEX queue_messages_in_order ON queue_messages (queue_id, seq);

-- When messages were last swept, to about ten minutes: a clock that is days ahead of it may be wrong.
CREATE TABLE queue_seen (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at  bigint NOT NULL
);
