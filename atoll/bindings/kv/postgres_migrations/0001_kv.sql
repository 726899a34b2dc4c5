-- Namespaces of tenants and their entries. Times are seconds since 1970.

-- The size of all that a tenant has. Its row is locked by each write of the tenant, so quotas are exact, and the writes
-- of a tenant follow one another.
CREATE TABLE kv_tenants (
    tenant text PRIMARY KEY,
    keys   bigint NOT NULL DEFAULT 0,
    bytes  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE kv_namespaces (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     text NOT NULL,
    name       text NOT NULL,
    created_at bigint NOT NULL,
    keys       bigint NOT NULL DEFAULT 0,
    bytes      bigint NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
) WITH (fillfactor = 50);

-- Dropped namespaces whose entries are not all gone yet.
CREATE TABLE kv_dropped (
    id bigint PRIMARY KEY
);

CREATE TABLE kv_entries (
    namespace  bigint NOT NULL,
    key        bytea NOT NULL,  -- UTF-8
    expires_at bigint,
    metadata   text,            -- JSON
    size       bigint NOT NULL, -- of key, value and metadata
    value      bytea NOT NULL,
    PRIMARY KEY (namespace, key)
);
-- Values are compressed already or small: a length is read without the value.
ALTER TABLE kv_entries ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE INDEX kv_entries_by_expiry ON kv_entries (expires_at) WHERE expires_at IS NOT NULL;

-- Store entries, all or none. Returns 0, or 1 if there is no namespace, or 2 if the quota (null: none) would be
-- exceeded; then `keys` and `bytes` are what the tenant would have. Keys must not repeat.
CREATE FUNCTION kv_put(
    p_tenant text, p_name text, p_keys bytea[], p_values bytea[], p_metadata text[], p_expires bigint[],
    p_most_keys bigint, p_most_bytes bigint, OUT status int, OUT keys bigint, OUT bytes bigint
) LANGUAGE plpgsql AS $$
DECLARE
    space bigint;
    total kv_tenants;
    old_keys bigint;
    old_bytes bigint;
    new_bytes bigint;
BEGIN
    status := 0;
    SELECT * INTO total FROM kv_tenants t WHERE t.tenant = p_tenant FOR UPDATE;
    SELECT n.id INTO space FROM kv_namespaces n WHERE n.tenant = p_tenant AND n.name = p_name FOR UPDATE;
    IF space IS NULL THEN
        status := 1;
        RETURN;
    END IF;
    SELECT count(*), coalesce(sum(e.size), 0) INTO old_keys, old_bytes
        FROM kv_entries e WHERE e.namespace = space AND e.key = ANY (p_keys);
    SELECT coalesce(sum(octet_length(k) + octet_length(v) + coalesce(octet_length(m), 0)), 0) INTO new_bytes
        FROM unnest(p_keys, p_values, p_metadata) AS x (k, v, m);
    keys := total.keys + cardinality(p_keys) - old_keys;
    bytes := total.bytes + new_bytes - old_bytes;
    IF (keys > p_most_keys OR bytes > p_most_bytes) AND (keys > total.keys OR bytes > total.bytes) THEN
        status := 2;
        RETURN;
    END IF;
    INSERT INTO kv_entries AS e (namespace, key, expires_at, metadata, size, value)
        SELECT space, k, x, m, octet_length(k) + octet_length(v) + coalesce(octet_length(m), 0), v
        FROM unnest(p_keys, p_values, p_metadata, p_expires) AS y (k, v, m, x)
        ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at,
            metadata = excluded.metadata, size = excluded.size, value = excluded.value;
    PERFORM kv_grow(p_tenant, space, cardinality(p_keys) - old_keys, new_bytes - old_bytes);
END $$;

CREATE FUNCTION kv_grow(p_tenant text, p_space bigint, p_keys bigint, p_bytes bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_keys <> 0 OR p_bytes <> 0 THEN
        UPDATE kv_namespaces n SET keys = n.keys + p_keys, bytes = n.bytes + p_bytes WHERE n.id = p_space;
        UPDATE kv_tenants t SET keys = t.keys + p_keys, bytes = t.bytes + p_bytes WHERE t.tenant = p_tenant;
    END IF;
END $$;

-- Delete keys. Returns as kv_put does.
CREATE FUNCTION kv_delete(p_tenant text, p_name text, p_keys bytea[], OUT status int, OUT keys bigint, OUT bytes bigint)
LANGUAGE plpgsql AS $$
DECLARE
    space bigint;
BEGIN
    status := 0;
    PERFORM FROM kv_tenants t WHERE t.tenant = p_tenant FOR UPDATE;
    SELECT n.id INTO space FROM kv_namespaces n WHERE n.tenant = p_tenant AND n.name = p_name FOR UPDATE;
    IF space IS NULL THEN
        status := 1;
        RETURN;
    END IF;
    WITH gone AS (DELETE FROM kv_entries e WHERE e.namespace = space AND e.key = ANY (p_keys) RETURNING e.size)
        SELECT count(*), coalesce(sum(size), 0) INTO keys, bytes FROM gone;
    PERFORM kv_grow(p_tenant, space, -keys, -bytes);
END $$;

-- Delete some entries that expired before a time, and some of dropped namespaces. Returns how many are gone.
CREATE FUNCTION kv_sweep(p_before bigint, p_limit int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n record;
    gone bigint := 0;
    count_ bigint;
    size_ bigint;
BEGIN
    FOR n IN
        SELECT s.id, s.tenant FROM kv_namespaces s WHERE s.id IN
            (SELECT e.namespace FROM kv_entries e WHERE e.expires_at < p_before ORDER BY e.expires_at LIMIT p_limit)
        ORDER BY s.tenant, s.id
    LOOP
        PERFORM FROM kv_tenants t WHERE t.tenant = n.tenant FOR UPDATE;
        PERFORM FROM kv_namespaces s WHERE s.id = n.id FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        WITH old AS (
            DELETE FROM kv_entries e WHERE e.namespace = n.id AND e.key IN
                (SELECT o.key FROM kv_entries o WHERE o.namespace = n.id AND o.expires_at < p_before LIMIT p_limit)
            RETURNING e.size
        ) SELECT count(*), coalesce(sum(size), 0) INTO count_, size_ FROM old;
        PERFORM kv_grow(n.tenant, n.id, -count_, -size_);
        gone := gone + count_;
    END LOOP;
    FOR n IN SELECT d.id FROM kv_dropped d ORDER BY d.id LIMIT 1 FOR UPDATE SKIP LOCKED LOOP
        WITH old AS (
            DELETE FROM kv_entries e WHERE e.namespace = n.id AND e.key IN
                (SELECT o.key FROM kv_entries o WHERE o.namespace = n.id LIMIT p_limit)
            RETURNING 1
        ) SELECT count(*) INTO count_ FROM old;
        IF count_ = 0 THEN
            DELETE FROM kv_dropped d WHERE d.id = n.id;
            count_ := 1;
        END IF;
        gone := gone + count_;
    END LOOP;
    RETURN gone;
END $$;
