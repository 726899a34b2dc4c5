"""D1: SQL databases that belong to a tenant. Each is a Durable Object."""
