-- Settings of buckets (CORS, lifecycle, notifications), as JSON by kind.
CREATE TABLE bucket_settings (
    bucket INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (bucket, kind)
) STRICT, WITHOUT ROWID;

-- Buckets that anybody may read, by the first label of their host.
CREATE TABLE public_buckets (
    label  TEXT PRIMARY KEY,
    bucket INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

-- A preflight names a bucket and no tenant.
CREATE INDEX buckets_by_name ON buckets (name);

-- Ids of buckets are never reused, so a new bucket of the same name starts without settings.
CREATE TRIGGER settings_removed AFTER DELETE ON buckets BEGIN
    DELETE FROM bucket_settings WHERE bucket = old.id;
    DELETE FROM public_buckets WHERE bucket = old.id;
END;
