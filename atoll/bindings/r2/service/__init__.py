"""Contents of R2 in another S3-compatible service."""
