"""Tail workers: workers that receive records of the calls of other workers."""
