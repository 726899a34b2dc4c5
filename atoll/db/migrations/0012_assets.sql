-- Static assets. The bytes are in files, by tenant and hash; here is what is known about them.

CREATE TABLE asset_files (
    id      INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL,
    hash    BLOB NOT NULL,  -- SHA-256 of the content
    size    INTEGER NOT NULL,
    stored  INTEGER NOT NULL DEFAULT 0,  -- 0: a manifest names it, and it has not arrived yet
    packs   INTEGER NOT NULL,  -- 1: its type is worth compressing
    gzip    INTEGER NOT NULL DEFAULT 0,  -- size of the compressed copy; 0: there is none
    br      INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL,  -- ms since 1970: last named by a new manifest, or arrived
    UNIQUE (tenant, hash)
) STRICT;

-- Never changed. One line per file, see atoll/assets/manifest.py.
CREATE TABLE asset_manifests (
    number  INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL,
    id      TEXT NOT NULL,  -- SHA-256 of the text
    text    BLOB NOT NULL,
    files   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,  -- of all its files, each once
    used_at INTEGER NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

CREATE TABLE asset_refs (
    manifest INTEGER NOT NULL REFERENCES asset_manifests (number) ON DELETE CASCADE,
    file     INTEGER NOT NULL REFERENCES asset_files (id),
    PRIMARY KEY (manifest, file)
) STRICT, WITHOUT ROWID;

CREATE INDEX asset_refs_by_file ON asset_refs (file);

-- The assets of a version: a JSON object with the id of its manifest and the rules, or '' for none.
ALTER TABLE versions ADD COLUMN assets TEXT NOT NULL DEFAULT '';
CREATE INDEX versions_by_manifest ON versions (json_extract(assets, '$.manifest')) WHERE assets != '';
