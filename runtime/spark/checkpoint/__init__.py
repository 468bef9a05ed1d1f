"""The checkpoint's own files and Spark's: identity, claim, lineage, damage and the way back, the state in it."""
