"""Whole databases: export, import and Time Travel."""
