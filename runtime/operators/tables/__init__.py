"""A table in one batch: what is put into its store, and what look-ups find there at each moment."""
