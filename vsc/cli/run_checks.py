"""Checks of `vsc run` that need only its options. They run before Spark starts, which takes seconds."""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from vsc.cli.errors import UsageError
from vsc.cli.on_spark import SparkOptions
from vsc.cli.submit_options import PYTHON_FILES
from vsc.plan.nodes import Plan

__all__ = [
    "add_local_dir",
    "check_checkpoint",
    "check_functions",
    "check_local_dir",
    "check_options",
    "check_partitions",
]

_MOST_PARTITIONS = 10_000
"""A bound because each partition has its own RocksDB in every stage, and a task in every epoch."""


def check_options(args: argparse.Namespace, master: str) -> None:
    """Raises `UsageError` for impossible values and combinations."""
    check_partitions(args.partitions)
    if args.back_to is not None and args.back_to < 0:
        raise UsageError(f"there is no epoch {args.back_to} to go back to", "epochs are numbered from 0 on")
    if args.drain and args.trigger not in ("available-now", "once"):
        raise UsageError("--drain needs an end of the input", "use it with --trigger available-now or once")
    if args.log_format == "json" and args.progress in ("bar", "lines"):
        raise UsageError(f"--progress {args.progress} is not JSON", "with --log-format json use auto, json or none")
    check_local_dir(args.local_dir, master)


def check_partitions(partitions: int | None) -> None:
    """Raises `UsageError` for an impossible number of partitions."""
    if partitions is not None and not 1 <= partitions <= _MOST_PARTITIONS:
        raise UsageError(f"there cannot be {partitions} partitions", f"give a number from 1 to {_MOST_PARTITIONS:,}")


def add_local_dir(parser: argparse.ArgumentParser) -> None:
    """Adds ``--local-dir``."""
    parser.add_argument(
        "--local-dir", metavar="DIR", help="where executors keep RocksDB (default: Spark's local folders)"
    )


def check_local_dir(path: str | None, master: str) -> None:
    """Raises `UsageError` for an unusable folder; where executors are on this machine, it must be usable here."""
    if path is None:
        return
    if not path.strip():
        raise UsageError("--local-dir has no name", "give a folder that can be written")
    if os.path.exists(path) and not os.path.isdir(path):
        raise UsageError(f"--local-dir {path} is not a folder", "give one that can be written")
    from vsc.runtime.spark.base.folders import NO_ROOM_HELP, unwritable

    problem = unwritable(path) if master.startswith("local") else None
    if problem is not None:
        raise UsageError(f"--local-dir {path} cannot be written: {problem}", NO_ROOM_HELP)


def check_checkpoint(
    path: str, plan: Plan, file: str, local: bool, partitions: int | None = None, back_to: int | None = None
) -> bool | None:
    """Whether a checkpoint for the plan in `file` is new; None if only Spark can tell. `local`: the file system of a
    path without a scheme is this machine's.

    Raises CheckpointError for what is wrong with a local one, as far as its files show without Spark.
    """
    from vsc.runtime.errors import CheckpointError
    from vsc.runtime.spark.base.checksummed import LocalFiles, check_epoch
    from vsc.runtime.spark.base.folders import NO_ROOM_HELP, unwritable
    from vsc.runtime.spark.base.paths import is_local, local_path
    from vsc.runtime.spark.checkpoint.ancestry import check_alone
    from vsc.runtime.spark.checkpoint.checkpoint import checked_identity
    from vsc.runtime.spark.checkpoint.claim import check_unclaimed

    if not path.strip():
        raise CheckpointError("the checkpoint has no name", "give the path of a separate folder")
    if not is_local(path, local):
        return None
    folder = local_path(path)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise CheckpointError(f"the checkpoint {path} is a file", "give the path of a folder; it need not exist")
    problem = unwritable(folder)
    if problem is not None:
        raise CheckpointError(f"the checkpoint {path} cannot be written: {problem}", NO_ROOM_HELP)
    check_unclaimed(folder)
    files = LocalFiles(folder)
    identity, _ = checked_identity(files, path, plan, partitions, file)
    if identity is not None:
        check_alone(files, identity.id, lambda old: LocalFiles(local_path(old)))
    fresh = identity is None
    if back_to is not None:
        if fresh:
            raise CheckpointError(
                f"the checkpoint {path} is new: there is no epoch {back_to} to go back to",
                "correct the path of the checkpoint, or leave --back-to out",
            )
        check_epoch(files, back_to)
    return fresh


def check_functions(plan: Plan, options: SparkOptions) -> None:
    """Raises FunctionError for functions that are not there, on this machine and in the files of ``--py-files``.

    A module that this machine does not have at all may be on the executors of a cluster.
    """
    from vsc.runtime.errors import FunctionError
    from vsc.runtime.expressions import take

    with _importable(options.conf.get(PYTHON_FILES, "")):
        for function in plan.functions:
            try:
                take(function)
            except FunctionError as error:
                if options.master.startswith("local") or not _is_elsewhere(function.module, error.__cause__):
                    if not isinstance(error.__cause__, ImportError):
                        raise
                    help = "install its module where the run evaluates expressions, or give it with --py-files"
                    raise FunctionError(error.message, help) from error.__cause__


def _is_elsewhere(module: str, missing: BaseException | None) -> bool:
    """Whether an import failed because this machine has nothing of that name."""
    return isinstance(missing, ModuleNotFoundError) and missing.name == module.partition(".")[0]


@contextmanager
def _importable(files: str) -> Iterator[None]:
    """In this context, local files of ``--py-files`` can be imported as they can on executors; no trace is left."""
    local = [path.removeprefix("file://").removeprefix("file:") for path in files.split(",")]
    found = [path for pattern in filter(None, local) for path in glob.glob(pattern)]
    path, modules = list(sys.path), set(sys.modules)
    with tempfile.TemporaryDirectory(prefix="vsc-py-files-") as folder:
        for file in found:
            if file.endswith(".py"):
                shutil.copy(file, folder)
        sys.path[:0] = [folder, *(os.path.abspath(file) for file in found if not file.endswith(".py"))]
        try:
            yield
        finally:
            sys.path[:] = path
            if found:
                for name in set(sys.modules) - modules:
                    del sys.modules[name]
