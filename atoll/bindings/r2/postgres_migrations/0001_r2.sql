-- Buckets of tenants and their objects, for any number of nodes. Times are milliseconds since 1970 unless they have
-- the type of a time. Every write of a tenant locks the row of that tenant first, so writes of one tenant follow one
-- another as they do on one node.

CREATE TABLE r2_tenants (
    tenant  text PRIMARY KEY,
    objects bigint NOT NULL DEFAULT 0,
    bytes   bigint NOT NULL DEFAULT 0  -- of contents, keys and metadata, parts of unfinished uploads included
);

CREATE TABLE r2_buckets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- never reused: objects of a dropped bucket go later
    tenant     text NOT NULL REFERENCES r2_tenants (tenant),
    name       text NOT NULL,
    created_at bigint NOT NULL,
    objects    bigint NOT NULL DEFAULT 0,
    bytes      bigint NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);
CREATE INDEX r2_buckets_by_name ON r2_buckets (name);

-- Dropped buckets whose objects are not all gone yet.
CREATE TABLE r2_dropped (id bigint PRIMARY KEY);

CREATE TABLE r2_objects (
    bucket        bigint NOT NULL,
    key           bytea NOT NULL,   -- UTF-8; sorted by bytes
    version       text NOT NULL,
    size          bigint NOT NULL,
    etag          text NOT NULL,
    uploaded      bigint NOT NULL,
    storage_class text NOT NULL,
    checksums     text NOT NULL,    -- JSON of hex digests
    http          text NOT NULL,    -- JSON, or ''
    custom        text NOT NULL,
    content       bigint NOT NULL,  -- its rows in r2_segments; of no meaning if it has a body
    part_size     bigint NOT NULL,  -- of all its segments but the last; 0: the content is the body
    cost          bigint NOT NULL,  -- bytes that count towards quotas
    body          bytea,
    PRIMARY KEY (bucket, key)
);
ALTER TABLE r2_objects ALTER COLUMN body SET STORAGE EXTERNAL;  -- most is compressed already

-- What makes up a content, in order from 1. place: 1 an object of the S3 service, 2 rows of r2_pieces.
CREATE TABLE r2_segments (
    content bigint NOT NULL,
    number  int NOT NULL,
    file    bigint NOT NULL UNIQUE,
    place   int NOT NULL,
    PRIMARY KEY (content, number)
);

CREATE TABLE r2_pieces (
    file   bigint NOT NULL,
    number int NOT NULL,
    body   bytea NOT NULL,  -- 1 MB, but for the last
    PRIMARY KEY (file, number)
);
ALTER TABLE r2_pieces ALTER COLUMN body SET STORAGE EXTERNAL;

-- Contents on their way in. The commit that makes an object of one deletes its row here; if that finds none, or one
-- that is dead, the upload was given up and the commit fails. Rows of nodes that ended are garbage.
CREATE TABLE r2_unfinished (
    file    bigint PRIMARY KEY,
    session text NOT NULL,
    place   int NOT NULL,
    is_dead boolean NOT NULL DEFAULT false
);

-- Contents that nothing names any more, and from when on they may be removed.
CREATE TABLE r2_garbage (
    content bigint PRIMARY KEY,
    due     timestamptz NOT NULL
);
CREATE INDEX r2_garbage_by_due ON r2_garbage (due);

-- Garbage that nodes still read.
CREATE TABLE r2_reading (
    session text NOT NULL,
    content bigint NOT NULL,
    PRIMARY KEY (session, content)
);
CREATE INDEX r2_reading_by_content ON r2_reading (content);

CREATE TABLE r2_uploads (
    id            text PRIMARY KEY,
    bucket        bigint NOT NULL,
    key           bytea NOT NULL,
    state         int NOT NULL,  -- 0 in progress, 1 completed, 2 aborted
    created_at    bigint NOT NULL,
    storage_class text NOT NULL,
    http          text NOT NULL,
    custom        text NOT NULL
);
CREATE INDEX r2_uploads_by_age ON r2_uploads (created_at);
CREATE INDEX r2_uploads_by_key ON r2_uploads (bucket, key, id COLLATE "C") WHERE state = 0;
CREATE INDEX r2_finished_uploads ON r2_uploads (bucket, created_at) WHERE state > 0;

CREATE TABLE r2_parts (
    upload   text NOT NULL,
    number   int NOT NULL,
    content  bigint NOT NULL,
    size     bigint NOT NULL,
    etag     text NOT NULL,  -- hex MD5
    uploaded bigint NOT NULL,
    PRIMARY KEY (upload, number)
);

-- Settings of buckets (CORS, lifecycle, notifications), as JSON by kind.
CREATE TABLE r2_settings (
    bucket bigint NOT NULL REFERENCES r2_buckets (id) ON DELETE CASCADE,
    kind   text NOT NULL,
    value  text NOT NULL,
    PRIMARY KEY (bucket, kind)
);

-- Buckets that anybody may read, by the first label of their host.
CREATE TABLE r2_public (
    label  text PRIMARY KEY,
    bucket bigint NOT NULL UNIQUE REFERENCES r2_buckets (id) ON DELETE CASCADE
);

-- Access keys of the S3 endpoint.
CREATE TABLE r2_credentials (
    access_key text PRIMARY KEY,
    tenant     text NOT NULL,
    name       text NOT NULL,
    bucket     text NOT NULL,  -- '' for all buckets of the tenant
    can_write  int NOT NULL,
    sealed     bytea NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX r2_credentials_by_tenant ON r2_credentials (tenant);

-- Notifications that no queue has yet, written in the transaction of the change that they are about.
CREATE TABLE r2_events (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    queue  text NOT NULL,
    body   bytea NOT NULL
);
CREATE INDEX r2_events_by_queue ON r2_events (tenant, queue, id);

-- The folder of all nodes in the S3 service, the text that says it is theirs, and for how long contents stay there
-- after their last object.
CREATE TABLE r2_service (
    one          boolean PRIMARY KEY DEFAULT true CHECK (one),
    folder       text NOT NULL,
    owner        text NOT NULL,
    keep_seconds bigint NOT NULL
);

-- Begin a write: locks the tenant, then finds the bucket. In a function each statement sees what was committed before
-- it began, so the bucket is found as it is after the wait for the lock.
CREATE FUNCTION r2_enter(of_tenant text, named text)
RETURNS TABLE (id bigint, objects bigint, bytes bigint, rules text) LANGUAGE plpgsql AS $$
DECLARE
    had r2_tenants%ROWTYPE;
BEGIN
    SELECT * INTO had FROM r2_tenants t WHERE t.tenant = of_tenant FOR UPDATE;
    RETURN QUERY SELECT b.id, had.objects, had.bytes,
        (SELECT s.value FROM r2_settings s WHERE s.bucket = b.id AND s.kind = 'notifications')
        FROM r2_buckets b WHERE b.tenant = of_tenant AND b.name = named;
END $$;

-- End a write: what it added.
CREATE FUNCTION r2_count(of_tenant text, of_bucket bigint, more_objects bigint, more_bytes bigint)
RETURNS void LANGUAGE sql AS $$
    UPDATE r2_buckets SET objects = objects + more_objects, bytes = bytes + more_bytes WHERE id = of_bucket;
    UPDATE r2_tenants SET objects = objects + more_objects, bytes = bytes + more_bytes WHERE tenant = of_tenant;
$$;

-- What nothing names any more: contents of the service stay for some days, because a backup of this database names them.
CREATE FUNCTION r2_discard(gone bigint, grace double precision) RETURNS void LANGUAGE sql AS $$
    INSERT INTO r2_garbage (content, due) VALUES (gone, clock_timestamp() + interval '1 second' * (grace + CASE
        WHEN EXISTS (SELECT FROM r2_segments s WHERE s.content = gone AND s.place = 1)
        THEN coalesce((SELECT keep_seconds FROM r2_service), 0) ELSE 0 END)) ON CONFLICT DO NOTHING;
$$;
