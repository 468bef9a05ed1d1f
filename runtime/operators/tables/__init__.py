"""A table in one batch: the changes put into its store, and what look-ups find there at each moment."""
