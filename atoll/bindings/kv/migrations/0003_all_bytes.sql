-- Key and metadata of an entry count too; otherwise a tenant could store any amount in them. The trigger of
-- 0002_sizes.sql does the same for the namespace.

UPDATE entries SET size = size + length(key) + coalesce(length(CAST(metadata AS BLOB)), 0);
