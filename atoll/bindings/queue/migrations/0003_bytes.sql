-- The size of each queue, updated with every write: quotas and metrics need not read the messages. A message counts for
-- 128 bytes more than its body: about what its row and index entries take. No triggers: the messages of a batch are
-- counted in one step, where a trigger would read every body again.

ALTER TABLE queues ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE queues SET bytes = (SELECT coalesce(sum(length(body) + 128), 0) FROM messages WHERE queue_id = queues.id);
