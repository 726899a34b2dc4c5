-- How much is in each queue, counted with every message: quotas and measures need no look at the messages. A message
-- counts for 128 bytes more than its body: about what else its row and its places in the indexes take.

ALTER TABLE queues ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE queues SET bytes = (SELECT coalesce(sum(length(body) + 128), 0) FROM messages WHERE queue_id = queues.id);

CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
    UPDATE queues SET bytes = bytes + length(new.body) + 128 WHERE id = new.queue_id;
END;

CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
    UPDATE queues SET bytes = bytes - length(old.body) - 128 WHERE id = old.queue_id;
END;
