-- The contents of static assets. What is known about them is in the shared database of the nodes (asset_files).
-- A content is never changed. It is deleted when nothing names it, and it was put some time ago.
CREATE TABLE asset_contents (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    hash   bytea NOT NULL,  -- SHA-256 of the file
    coding text NOT NULL,   -- '' for the file itself, or the ending of a compressed copy of it
    size   bigint NOT NULL,
    digest bytea NOT NULL,  -- SHA-256 of this content: nodes check what they fetch
    put_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, hash, coding)
);

CREATE TABLE asset_pieces (
    content bigint NOT NULL REFERENCES asset_contents (id) ON DELETE CASCADE,
    part    int NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (content, part)
);
ALTER TABLE asset_pieces ALTER COLUMN body SET STORAGE EXTERNAL;  -- compressed already, or sent as it is

-- When a node last looked for what nothing needs: one node in an hour does.
CREATE TABLE asset_sweep (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at  timestamptz NOT NULL
);
INSERT INTO asset_sweep (at) VALUES ('-infinity');
