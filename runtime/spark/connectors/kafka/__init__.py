"""Kafka: topics as sources, and as sinks that write in transactions."""
