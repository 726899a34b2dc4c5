CREATE INDEX entries_by_name ON entries (name);
