-- The migrations of each shared database that a node knows. Nodes of older releases have {}: they share the main one.
ALTER TABLE nodes ADD COLUMN schemas jsonb NOT NULL DEFAULT '{}';
