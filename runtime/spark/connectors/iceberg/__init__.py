"""Apache Iceberg."""
