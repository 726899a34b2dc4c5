"""The Cache API: responses by URL, for a while, on disk. Every worker has it."""
