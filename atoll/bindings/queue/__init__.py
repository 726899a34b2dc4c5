"""Queues: messages that one worker sends and another consumes, in batches."""
