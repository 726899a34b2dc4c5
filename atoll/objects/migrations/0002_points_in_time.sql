-- When the last commit in the file came, and the restore that is carried out before the object is opened again.
ALTER TABLE objects ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN restore_to INTEGER; -- the commit to go back to
ALTER TABLE objects ADD COLUMN restore_asked INTEGER; -- the last commit when it was asked for
CREATE INDEX objects_to_restore ON objects (namespace) WHERE restore_to IS NOT NULL;
