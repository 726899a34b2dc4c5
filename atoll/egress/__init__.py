"""The way out: which hosts and addresses a worker may reach, and connections to them."""
