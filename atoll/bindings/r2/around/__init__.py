"""What R2 buckets have besides objects: public hosts, CORS and lifecycle rules, notifications."""
