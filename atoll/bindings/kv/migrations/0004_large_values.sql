-- Values that do not fit into the row's page are in their own table. To compare keys of a WITHOUT ROWID table SQLite reads whole rows,
-- with all their pages, also rows of other tenants: a few large values made every lookup read megabytes.

CREATE TABLE large_values (
    id    INTEGER PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

ALTER TABLE entries ADD COLUMN large INTEGER;  -- the id of the value in that table; the value in the row is then empty

CREATE TABLE moving (
    id        INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    key       BLOB NOT NULL,
    UNIQUE (namespace, key)
) STRICT;

INSERT INTO moving (namespace, key) SELECT namespace, key FROM entries WHERE length(value) > 4096;

INSERT INTO large_values (id, value) SELECT moving.id, entries.value FROM moving JOIN entries USING (namespace, key);

UPDATE entries SET value = x'', large = (
    SELECT id FROM moving WHERE moving.namespace = entries.namespace AND moving.key = entries.key
) WHERE length(value) > 4096;

DROP TABLE moving;

CREATE TRIGGER large_value_changed AFTER UPDATE OF large ON entries WHEN old.large IS NOT NULL AND old.large IS NOT new.large BEGIN
    DELETE FROM large_values WHERE id = old.large;
END;

CREATE TRIGGER large_value_removed AFTER DELETE ON entries WHEN old.large IS NOT NULL BEGIN
    DELETE FROM large_values WHERE id = old.large;
END;
