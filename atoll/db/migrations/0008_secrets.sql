-- Secrets of workers, sealed (control/vault.py). A row is never changed but by a rotation of the key, which seals the same
-- value anew. A version refers to the secrets it was made with.
CREATE TABLE secrets (
    id         TEXT PRIMARY KEY,
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX secrets_of_worker ON secrets (worker_id);

CREATE TABLE version_secrets (
    version_id TEXT NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
    secret_id  TEXT NOT NULL REFERENCES secrets (id) ON DELETE CASCADE,
    UNIQUE (version_id, secret_id)
) STRICT;

CREATE INDEX versions_of_secret ON version_secrets (secret_id);
