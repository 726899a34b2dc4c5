CREATE TABLE usage (
  tenant TEXT NOT NULL,
  day INTEGER NOT NULL, -- since 1970, UTC
  requests INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;
