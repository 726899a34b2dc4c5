"""Cron triggers: `scheduled` handlers that run at set times."""
