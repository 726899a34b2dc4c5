"""The S3-compatible endpoint of R2, on a host of its own."""
