-- Logins of the dashboard. Each belongs to a token and ends with it; only a hash of the cookie is stored.
CREATE TABLE sessions (
  hash BLOB PRIMARY KEY,
  token TEXT NOT NULL,
  created_at INTEGER NOT NULL,  -- ms since 1970
  used_at INTEGER NOT NULL      -- to the minute
) WITHOUT ROWID;
