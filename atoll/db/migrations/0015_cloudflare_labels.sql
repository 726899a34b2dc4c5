-- What Cloudflare's tools said about a worker or a version and Atoll has no meaning for, as JSON: they expect it back. Nothing
-- else reads it. A row without a version is about the worker.

CREATE TABLE cloudflare_labels (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
    version_id TEXT REFERENCES versions (id) ON DELETE CASCADE,
    labels     TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX cloudflare_labels_of ON cloudflare_labels (worker_id, coalesce(version_id, ''));
CREATE INDEX cloudflare_labels_by_version ON cloudflare_labels (version_id);
