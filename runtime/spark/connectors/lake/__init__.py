"""What Delta Lake and Iceberg have in common."""
