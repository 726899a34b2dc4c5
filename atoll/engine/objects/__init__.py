"""The runtime of Durable Objects: where each object lives, its calls, its commits and its alarms."""
