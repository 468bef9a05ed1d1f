"""What a file system takes for what each epoch asks of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from pyspark.sql import SparkSession

from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.folders import missing, remove_empty
from vsc.runtime.spark.base.hadoop import Files, file_errors_as

__all__ = ["storage_seconds"]


def storage_seconds(spark: SparkSession, folder: str, error: type[VscRuntimeError], what: str) -> dict[str, float]:
    """Seconds by operation, tried with a small file that is removed again: ``write``, ``rename``, ``list``, ``read``,
    ``delete``. Raises an `error` that names `what` the folder is for one that fails, or is not seen."""
    token = f".vsc-{uuid.uuid4().hex}"
    with file_errors_as(error, f"{what} {folder}", "give a folder that can be written"):
        files = Files(spark, folder)
        there, made = files.exists(), missing(files.local()) if files.is_local else []
        try:
            return {name: _seconds(work) for name, work in _operations(files, token).items()}
        finally:
            for name in (token, f"{token}.new") if there or files.is_local else ("",):
                files.delete(name)
            remove_empty(made)


def _operations(files: Files, token: str) -> dict[str, Callable[[], None]]:
    def seen() -> None:
        if token not in files.names():
            raise OSError(f"{files.path(token)} has been renamed, and is not listed")

    def read() -> None:
        if files.read(token) != token:
            raise OSError(f"{files.path(token)} does not hold what has been written")

    return {
        "write": lambda: files.overwrite(f"{token}.new", token),
        "rename": lambda: files.rename(f"{token}.new", token),
        "list": seen,
        "read": read,
        "delete": lambda: files.delete(token),
    }


def _seconds(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
