-- What a version was given, as the deploy wrote it: a JSON array of {type, name, ...}.
ALTER TABLE versions ADD COLUMN bindings TEXT NOT NULL DEFAULT '[]';
