"""What tasks, driver and sinks hand to each other: blobs of records, counters, an epoch's pace, and its output."""
