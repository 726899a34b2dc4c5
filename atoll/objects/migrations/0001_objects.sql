-- What is in the file of each object. The journal knows the rest.
CREATE TABLE objects (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,       -- its last commit that is in the file
    pages INTEGER NOT NULL,          -- the size of the file
    first_page INTEGER NOT NULL,     -- checksum of its first page
    merged_group INTEGER NOT NULL,   -- records of the journal up to this group are in the file
    alarm INTEGER,                   -- ms since 1970
    alarm_sequence INTEGER NOT NULL, -- the commit that set or deleted the alarm
    damage TEXT,                     -- why the object is refused
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX objects_with_alarm ON objects (alarm) WHERE alarm IS NOT NULL;
CREATE INDEX damaged_objects ON objects (namespace) WHERE damage IS NOT NULL;
