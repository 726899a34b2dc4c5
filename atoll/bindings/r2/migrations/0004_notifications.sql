-- Notifications that no queue has yet, written in the transaction of the change that they are about.
CREATE TABLE events (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    queue  TEXT NOT NULL,
    body   BLOB NOT NULL  -- JSON
) STRICT;

CREATE INDEX events_by_queue ON events (tenant, queue, id);

-- How many wait for each queue: bounded for each tenant.
CREATE TABLE waiting_events (
    tenant TEXT NOT NULL,
    queue  TEXT NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (tenant, queue)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER event_added AFTER INSERT ON events BEGIN
    INSERT INTO waiting_events (tenant, queue, events) VALUES (new.tenant, new.queue, 1)
    ON CONFLICT DO UPDATE SET events = events + 1;
END;

CREATE TRIGGER event_removed AFTER DELETE ON events BEGIN
    UPDATE waiting_events SET events = events - 1 WHERE tenant = old.tenant AND queue = old.queue;
    DELETE FROM waiting_events WHERE tenant = old.tenant AND queue = old.queue AND events = 0;
END;
