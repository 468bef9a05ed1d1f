"""The state of a stage and partition: the protocol that keeps it in Spark, the local folder, what is sent into it."""
