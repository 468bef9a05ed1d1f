"""What a Python worker of Spark has loaded is not garbage."""

from __future__ import annotations

import gc
from functools import cache

__all__ = ["freeze"]


@cache
def freeze() -> None:
    """Takes what a worker has loaded out of the garbage collector's sight, once for each worker.

    PySpark collects garbage after every task: among all of that it costs some 50 ms of a core.
    """
    gc.collect()
    gc.freeze()
