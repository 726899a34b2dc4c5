"""Workflows: code whose steps are stored, so that it survives crashes and waits for days."""
