"""PostgreSQL: a table read once, and as a sink that writes an epoch in one transaction."""
