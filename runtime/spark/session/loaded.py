"""Keeps Spark's Python workers from collecting, or reading again, what they have loaded."""

from __future__ import annotations

import gc
import sys
from functools import cache
from zipimport import zipimporter

__all__ = ["keep_loaded"]


class _Archive(zipimporter):
    """Modules in an archive, which stays as it is while Spark runs."""

    def invalidate_caches(self) -> None:
        """Keeps what has been read."""


@cache
def keep_loaded() -> None:
    """Makes PySpark's work before and after each task cheap, once for each worker.

    PySpark collects garbage after every task: among all that a worker has loaded it costs some 50 ms of a core. Before
    4.3 it has Python forget, before every task, what the archives on its path hold: its own and the jar of Spark's core
    were read again, once for each package in them, which took a third of a second.
    """
    sys.path_hooks[:] = [_Archive if hook is zipimporter else hook for hook in sys.path_hooks]
    for path, finder in sys.path_importer_cache.items():
        if type(finder) is zipimporter:
            sys.path_importer_cache[path] = _Archive(path)
    gc.collect()
    gc.freeze()
