"""vsc on Spark Structured Streaming: `start` runs a plan as one streaming query, `read_store` looks into its state."""

from vsc.extras import required

with required("vsc.runtime.spark", "spark"):
    from vsc.runtime.spark.epoch_state import read_store
    from vsc.runtime.spark.query import Hook, start
    from vsc.runtime.spark.running_query import QueryFailedError, RunningQuery

__all__ = ["Hook", "QueryFailedError", "RunningQuery", "read_store", "start"]
