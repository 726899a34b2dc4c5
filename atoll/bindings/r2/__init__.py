"""R2: buckets of objects, from a few bytes to terabytes."""
