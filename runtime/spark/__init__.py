"""vsc on Spark Structured Streaming: `start` runs a plan as one streaming query, `read_store` looks into its state.

They are loaded when they are first asked for: Python processes of Spark import parts of this package alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from vsc.extras import required

if TYPE_CHECKING:
    from vsc.runtime.spark.checkpoint.epoch_state import read_store
    from vsc.runtime.spark.query.running_query import QueryFailedError, RunningQuery
    from vsc.runtime.spark.query.start import Hook, start

__all__ = ["Hook", "QueryFailedError", "RunningQuery", "read_store", "start"]

_HOME = {
    "Hook": "query.start",
    "QueryFailedError": "query.running_query",
    "RunningQuery": "query.running_query",
    "read_store": "checkpoint.epoch_state",
    "start": "query.start",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with required(__name__, "spark"):
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
