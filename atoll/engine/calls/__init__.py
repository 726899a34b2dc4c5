"""Calls of one engine: made by the pool, sent, answered, timed out, and the ops they make."""
