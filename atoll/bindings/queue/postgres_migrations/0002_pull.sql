-- A queue may have a consumer that pulls over HTTP instead of a worker: its settings as JSON. And the delay, in seconds, of
-- messages that are sent without one.

ALTER TABLE queues ADD COLUMN pull text NOT NULL DEFAULT '';
ALTER TABLE queues ADD COLUMN delay bigint NOT NULL DEFAULT 0;
