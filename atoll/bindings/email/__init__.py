"""Email: handlers of workers, and the way out through an SMTP server."""
