CREATE TABLE sent (
  tenant TEXT NOT NULL,
  day INTEGER NOT NULL, -- since 1970, UTC
  recipients INTEGER NOT NULL,
  PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;
