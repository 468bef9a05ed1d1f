"""Stage 0: what the rows of a source become before any shuffle."""
