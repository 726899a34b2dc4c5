"""PostgreSQL: the connection pool, its errors, and migrations. The only room that knows the driver."""
