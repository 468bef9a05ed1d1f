"""Foreign-key joins (KIP-213): subscriptions of the left table, and the answers of the right one."""
