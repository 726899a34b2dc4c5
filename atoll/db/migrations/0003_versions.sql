-- What a version says besides its code, who made it and why, and the source maps of its modules.
ALTER TABLE versions ADD COLUMN compatibility_flags TEXT NOT NULL DEFAULT '[]';  -- JSON array
ALTER TABLE versions ADD COLUMN crons TEXT NOT NULL DEFAULT '[]';  -- JSON array
ALTER TABLE versions ADD COLUMN queue_consumers TEXT NOT NULL DEFAULT '[]';  -- JSON array of objects
ALTER TABLE versions ADD COLUMN tail_consumers TEXT NOT NULL DEFAULT '[]';  -- JSON array of objects
ALTER TABLE versions ADD COLUMN message TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN tag TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE modules ADD COLUMN source_map BLOB;
