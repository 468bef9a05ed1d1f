"""`suppress` (KIP-328): holds the changes of a table back, so that only the last of several comes out."""
