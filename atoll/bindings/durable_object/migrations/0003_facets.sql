-- Facets: child objects within an object. They are deleted with it.

CREATE TABLE facets (
    namespace TEXT NOT NULL,
    id        TEXT NOT NULL,
    root      TEXT NOT NULL,  -- the id of the object they are in
    path      TEXT NOT NULL,  -- the names that lead to it from there, JSON
    PRIMARY KEY (namespace, id)
) STRICT;
