"""TCP connections of workers: `connect()` of cloudflare:sockets, node:net and node:tls."""
