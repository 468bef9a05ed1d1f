"""vsc on Spark Structured Streaming: `start` runs a plan as one streaming query, `read_store` looks into its state."""

from vsc.extras import required

with required("vsc.runtime.spark", "spark"):
    from vsc.runtime.spark.look import read_store
    from vsc.runtime.spark.query import start

__all__ = ["read_store", "start"]
