-- The number of a queue is never used twice: a message that waits while its queue is deleted must not find another one.

CREATE TABLE queue_ids (
    id INTEGER PRIMARY KEY AUTOINCREMENT
) STRICT;

INSERT INTO queue_ids (id) SELECT coalesce(max(id), 0) FROM queues;
