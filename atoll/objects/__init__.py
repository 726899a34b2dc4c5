"""Stores Durable Objects: one journal for the commits of all of them, and a file for each."""
