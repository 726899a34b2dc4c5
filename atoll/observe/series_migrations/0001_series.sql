-- Counts of calls over time. `subject` is "w:ID" of a worker, "t:NAME" of a tenant or "n" for the node; `version` is empty
-- except for workers. `data` is StepCounts (series_points.py). Rows exist only where there were calls.
CREATE TABLE series (
  step INTEGER NOT NULL,  -- seconds
  subject TEXT NOT NULL,
  at INTEGER NOT NULL,    -- seconds since 1970, a multiple of the step
  version TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (step, subject, at, version)
) WITHOUT ROWID;
CREATE INDEX series_by_age ON series (step, at);
