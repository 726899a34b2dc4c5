"""Workers, versions and secrets in the database."""
