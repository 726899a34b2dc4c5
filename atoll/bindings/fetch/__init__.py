"""fetch(): requests of workers to other servers, and to other workers of this node."""
