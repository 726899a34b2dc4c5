"""Queues: messages that wait for a worker. Producers are a binding; consumers are a trigger (triggers/queues.py)."""
