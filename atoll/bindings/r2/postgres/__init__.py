"""R2 on several nodes: buckets, objects and uploads in PostgreSQL, contents there or in an S3 service."""
