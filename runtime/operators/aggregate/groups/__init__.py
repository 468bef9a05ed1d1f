"""The groups of an aggregate without windows, over streams and tables, and the state of all groups."""
