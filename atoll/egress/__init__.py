"""Outgoing connections: which hosts and addresses a worker may reach, and HTTP and WebSockets to them."""
