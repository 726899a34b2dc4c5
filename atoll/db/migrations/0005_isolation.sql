-- What calls of a version share, and what was turned on for it: a JSON object of booleans.
ALTER TABLE versions ADD COLUMN isolation TEXT NOT NULL DEFAULT 'pool';
ALTER TABLE versions ADD COLUMN switches TEXT NOT NULL DEFAULT '{}';
