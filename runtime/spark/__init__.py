"""vsc on Spark Structured Streaming: `start` runs a plan as one streaming query."""

from vsc.runtime.spark.query import start

__all__ = ["start"]
