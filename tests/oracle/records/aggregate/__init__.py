"""`aggregate`, one record at a time: what no loop or array code does yet."""
