-- What a namespace takes is counted whole: keys and metadata too, of which a tenant could otherwise keep any amount.

DROP TRIGGER entry_added;
DROP TRIGGER entry_changed;
DROP TRIGGER entry_removed;

UPDATE namespaces SET bytes = (
    SELECT coalesce(sum(size + length(key) + coalesce(length(CAST(metadata AS BLOB)), 0)), 0)
    FROM entries WHERE namespace = namespaces.id
);

CREATE TRIGGER entry_added AFTER INSERT ON entries BEGIN
    UPDATE namespaces SET
        keys = keys + 1,
        bytes = bytes + new.size + length(new.key) + coalesce(length(CAST(new.metadata AS BLOB)), 0)
    WHERE id = new.namespace;
END;

CREATE TRIGGER entry_changed AFTER UPDATE OF size, metadata ON entries
WHEN new.size <> old.size OR new.metadata IS NOT old.metadata BEGIN
    UPDATE namespaces SET
        bytes = bytes + new.size - old.size
            + coalesce(length(CAST(new.metadata AS BLOB)), 0) - coalesce(length(CAST(old.metadata AS BLOB)), 0)
    WHERE id = new.namespace;
END;

CREATE TRIGGER entry_removed AFTER DELETE ON entries BEGIN
    UPDATE namespaces SET
        keys = keys - 1,
        bytes = bytes - old.size - length(old.key) - coalesce(length(CAST(old.metadata AS BLOB)), 0)
    WHERE id = old.namespace;
END;
