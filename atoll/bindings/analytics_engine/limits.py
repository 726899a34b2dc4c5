"""Cloudflare's limits of a data point, which analytics_engine.js checks too."""

MAX_INDEX_BYTES = 96
MAX_BLOBS = 20
MAX_DOUBLES = 20
MAX_BLOB_BYTES = 16_000  # all of a point
