-- How much is in each queue, counted with every write: quotas and measures need no look at the messages. A message counts
-- for 128 bytes more than its body: about what else its row and its places in the indexes take. No triggers: what a
-- batch takes away is counted at once, where a trigger would read every body again.

ALTER TABLE queues ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE queues SET bytes = (SELECT coalesce(sum(length(body) + 128), 0) FROM messages WHERE queue_id = queues.id);
