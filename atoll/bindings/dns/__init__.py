"""Names and records of DNS, for node:dns."""
