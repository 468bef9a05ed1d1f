"""The runtime: a plan's operators, the state that they keep, and the two places where they run (one process, Spark)."""
