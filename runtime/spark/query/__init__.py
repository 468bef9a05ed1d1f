"""A query from its checks to its end: start, epochs, failures in words."""
