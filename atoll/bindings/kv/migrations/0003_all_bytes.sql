-- What an entry counts for is all of it: its key and metadata too, of which a tenant could otherwise keep any amount.
-- The trigger of sizes.sql does the same for its namespace.

UPDATE entries SET size = size + length(key) + coalesce(length(CAST(metadata AS BLOB)), 0);
