"""Atoll: a self-hosted serverless runtime for JavaScript, with a V8 engine in a process of its own."""

__version__ = "0.1.0"
