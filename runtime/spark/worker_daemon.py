"""Spark's daemon of Python workers, which has loaded all that a task of vsc needs before it forks the first one.

``spark.python.daemon.module`` names it (`vsc.runtime.spark.session.local_settings`). Without it each worker imports
pyarrow, pandas and the operators anew. No thread runs when a worker is forked but one of Arrow's allocator, which
expects to be forked.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pkgutil import walk_packages
from zipimport import zipimporter

from vsc.runtime.spark.garbage import freeze

__all__ = ["main"]

_LOADED = (
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_util",
    "vsc.runtime.spark.later_stage",
    "vsc.runtime.spark.stage_zero",
)
_OPERATORS = "vsc.runtime.operators"
"""Each of its modules is imported by the plan that needs it."""


class _Archive(zipimporter):
    """Modules in an archive, which stays as it is while Spark runs."""

    def invalidate_caches(self) -> None:
        """Keeps what has been read. Spark before 4.3 has Python forget it before each task: all of Spark's own archives
        were read again, once for each package in them, a third of a second of a task."""


def _keep_archives() -> None:
    sys.path_hooks[:] = [_Archive if hook is zipimporter else hook for hook in sys.path_hooks]
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def main() -> None:
    """Loads what workers need, then forks them for Spark until Spark ends."""
    _keep_archives()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads would have to be forked
    for name in _LOADED:
        import_module(name)
    for module in walk_packages(import_module(_OPERATORS).__path__, f"{_OPERATORS}."):
        import_module(module.name)
    freeze()
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
