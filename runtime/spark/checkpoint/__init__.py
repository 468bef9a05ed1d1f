"""The checkpoint's own files and Spark's: identity, claim, ancestry, damage and the way back, the state in it."""
