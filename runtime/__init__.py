"""The runtime: a plan's operators, the state they keep, and the two places where they run (one process, Spark)."""
