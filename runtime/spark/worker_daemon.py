"""Spark's daemon of Python workers, with all that vsc's tasks need loaded before the first worker is forked.

``spark.python.daemon.module`` names it (`session.session.OWN_SETTINGS`). Without it each worker imports
pyarrow, pandas and the operators itself. The only thread that runs at a fork is one of Arrow's allocator, which is
made to be forked.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pkgutil import walk_packages

from vsc.runtime.spark.session.loaded import keep_loaded

__all__ = ["main"]

_LOADED = (
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "vsc.runtime.spark.stages.later_stage",
    "vsc.runtime.spark.stages.later_stage_processor",
    "vsc.runtime.spark.stages.stage_zero",
    "vsc.runtime.spark.formats.text_lines",
    "vsc.runtime.spark.formats.csv",
    "vsc.runtime.spark.formats.parquet_files",
    "vsc.runtime.spark.connectors.kafka.texts",
    "vsc.runtime.spark.connectors.registry",
)
_OPERATORS = "vsc.runtime.operators"
"""Each of its modules is imported by the plan that needs it."""


def main() -> None:
    """Loads what workers need, then forks them for Spark until Spark ends.

    Where something is missing, workers still start: the first of them tells the driver what it is
    (`vsc.runtime.spark.session.executors`).
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would have to be forked
    try:
        _load()
    except Exception as error:
        print(f"vsc's workers are forked with less than they need: {error!r}", file=sys.stderr)
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]


def _load() -> None:
    for name in _LOADED:
        import_module(name)
    for module in walk_packages(import_module(_OPERATORS).__path__, f"{_OPERATORS}."):
        import_module(module.name)
    keep_loaded()


if __name__ == "__main__":
    main()
