-- Datasets of Analytics Engine, and their data points. A blob or double that a point does not have is NULL.

CREATE TABLE datasets (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    points INTEGER NOT NULL DEFAULT 0,
    bytes  INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE points (
    id        INTEGER PRIMARY KEY,
    dataset   INTEGER NOT NULL,
    size      INTEGER NOT NULL,  -- bytes
    timestamp INTEGER NOT NULL,  -- seconds since 1970
    index1    TEXT NOT NULL,
    blob1     TEXT,
    blob2     TEXT,
    blob3     TEXT,
    blob4     TEXT,
    blob5     TEXT,
    blob6     TEXT,
    blob7     TEXT,
    blob8     TEXT,
    blob9     TEXT,
    blob10    TEXT,
    blob11    TEXT,
    blob12    TEXT,
    blob13    TEXT,
    blob14    TEXT,
    blob15    TEXT,
    blob16    TEXT,
    blob17    TEXT,
    blob18    TEXT,
    blob19    TEXT,
    blob20    TEXT,
    double1   REAL,
    double2   REAL,
    double3   REAL,
    double4   REAL,
    double5   REAL,
    double6   REAL,
    double7   REAL,
    double8   REAL,
    double9   REAL,
    double10  REAL,
    double11  REAL,
    double12  REAL,
    double13  REAL,
    double14  REAL,
    double15  REAL,
    double16  REAL,
    double17  REAL,
    double18  REAL,
    double19  REAL,
    double20  REAL
) STRICT;

CREATE INDEX points_by_time ON points (dataset, timestamp);
