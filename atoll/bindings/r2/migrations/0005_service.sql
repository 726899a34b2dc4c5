-- Contents may be in another S3-compatible service.

-- The folder of this index in the service, and for how long contents stay there after their last object.
CREATE TABLE service (
    folder       TEXT NOT NULL,
    keep_seconds INTEGER NOT NULL
) STRICT;
INSERT INTO service (folder, keep_seconds) VALUES (lower(hex(randomblob(8))), 0);

ALTER TABLE segments ADD COLUMN place INTEGER NOT NULL DEFAULT 0;  -- 0: a file of this node, 1: an object of the service

ALTER TABLE garbage ADD COLUMN due INTEGER NOT NULL DEFAULT 0;  -- seconds since 1970, when it may be removed
CREATE INDEX garbage_by_due ON garbage (due, content);

-- A backup has the index, and not what is in the service: contents stay until that backup is old.

DROP TRIGGER content_removed;
CREATE TRIGGER content_removed AFTER DELETE ON objects WHEN old.part_size > 0 BEGIN
    INSERT INTO garbage (content, due) SELECT old.content,
        iif(EXISTS (SELECT 1 FROM segments WHERE content = old.content AND place = 1), unixepoch() + keep_seconds, 0) FROM service;
END;
