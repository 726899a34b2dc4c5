"""The rate limit binding: so many times in so many seconds."""
