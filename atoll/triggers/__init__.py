"""What starts workers besides requests: the clock (cron), messages (queues), and what other workers did (tail)."""
