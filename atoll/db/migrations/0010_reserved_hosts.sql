-- Hosts that a tenant had, and when it last let go of them. For a while nobody else gets them (control/reserved.py).
CREATE TABLE reserved_hosts (
    host     TEXT NOT NULL,  -- `shop.`: the name directly below the base domain with all below it; else as in a route
    tenant   TEXT NOT NULL,  -- '' once the tenant is deleted: then nobody gets it
    freed_at INTEGER NOT NULL,  -- ms since 1970
    PRIMARY KEY (host, tenant)
) STRICT, WITHOUT ROWID;

CREATE INDEX reserved_of_tenant ON reserved_hosts (tenant, freed_at);
