"""Durable Objects: namespaces of objects that have a name, their own storage, and one live copy each."""
