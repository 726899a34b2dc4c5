-- Whose a worker is, and a line for every change that anybody made.
ALTER TABLE workers ADD COLUMN tenant TEXT NOT NULL DEFAULT 'default';
ALTER TABLE modules ADD COLUMN sha256 TEXT NOT NULL DEFAULT '';  -- of the source, as hex; '' in rows from before

CREATE TABLE audit (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,  -- ms since 1970
    tenant TEXT NOT NULL,
    actor  TEXT NOT NULL,  -- name of the token, or `local`
    action TEXT NOT NULL,  -- worker.create, secret.put …
    target TEXT NOT NULL,
    detail TEXT NOT NULL  -- what a reader wants to know besides; never a secret
) STRICT;

CREATE INDEX audit_of_tenant ON audit (tenant, id);
