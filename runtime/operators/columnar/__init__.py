"""The operators of a stage on whole columns; `run` puts them together."""
