"""Durable Objects that nodes share through PostgreSQL: commits are rows there, and files on the disk are caches."""
