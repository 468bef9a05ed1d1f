"""What a run reports: its progress, for people, programs and Prometheus, and warnings about rows."""
