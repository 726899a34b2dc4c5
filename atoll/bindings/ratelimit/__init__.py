"""The rate limit binding: at most N times in a period."""
