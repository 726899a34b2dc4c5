-- Databases by the name under which workers bind them. The connection string, with its password, is sealed.

CREATE TABLE databases (
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    sealed      BLOB NOT NULL,
    by_operator INTEGER NOT NULL,  -- 1: it may be in the operator's own network
    created_at  INTEGER NOT NULL,  -- ms since 1970
    PRIMARY KEY (tenant, name)
) STRICT;
