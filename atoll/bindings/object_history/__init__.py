"""Points in time of a Durable Object, for its own code."""
