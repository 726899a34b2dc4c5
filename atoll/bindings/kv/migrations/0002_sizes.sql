-- How much is in each namespace, counted with every write: quotas and measures need no look at the entries.

ALTER TABLE namespaces ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
ALTER TABLE namespaces ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;  -- of values

UPDATE namespaces SET
    keys = (SELECT count(*) FROM entries WHERE namespace = namespaces.id),
    bytes = (SELECT coalesce(sum(size), 0) FROM entries WHERE namespace = namespaces.id);
