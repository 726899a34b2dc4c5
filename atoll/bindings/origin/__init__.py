"""The server behind a worker."""
