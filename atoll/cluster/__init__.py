"""Several nodes on one PostgreSQL: who is there, and what they have changed."""
