-- The id of a queue is never reused: a message on its way to a deleted queue must not end up in a new one.

CREATE TABLE queue_ids (
    id INTEGER PRIMARY KEY AUTOINCREMENT
) STRICT;

INSERT INTO queue_ids (id) SELECT coalesce(max(id), 0) FROM queues;
