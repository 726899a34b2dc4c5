-- Client certificates by name. The certificate and its private key are sealed together.

CREATE TABLE certificates (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     BLOB NOT NULL,
    issuer     TEXT NOT NULL,
    serial     TEXT NOT NULL,
    expires_at INTEGER NOT NULL,  -- ms since 1970
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;
