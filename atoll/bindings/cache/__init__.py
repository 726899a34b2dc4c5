"""The Cache API: responses by URL, on disk, until they expire. Every worker has it."""
