-- Access keys of the S3 endpoint.
CREATE TABLE credentials (
    access_key TEXT PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    bucket     TEXT NOT NULL,     -- '' for all buckets of the tenant
    can_write  INTEGER NOT NULL,
    sealed     BLOB NOT NULL,     -- the secret
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
