"""Spark lost the processes that do the work, Python workers or executors: which, and what to give them."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from vsc.runtime.errors import LostProcessError

__all__ = ["lost_driver", "lost_process"]

_GOES_ON = "the same command continues with this epoch"
_WORKER_HELP = (
    "if it was for memory, give Python workers more of it: --conf spark.executor.memoryOverhead=... on a cluster, "
    f"fewer cores (--master 'local[1]') on this machine; {_GOES_ON}"
)
_EXECUTOR_HELP = (
    "its log says why; if it was for memory (exit code 137 or 52), raise --executor-memory, for the JVM, or "
    f"spark.executor.memoryOverhead, for Python workers; {_GOES_ON}"
)
_DRIVER_HELP = (
    "if the system killed it for memory (SIGKILL; `dmesg` says so), give the machine more, or the JVM less: "
    f"--driver-memory; {_GOES_ON}"
)
_HEAP_HELP = f"raise --executor-memory, or --driver-memory for a local master; {_GOES_ON}"
_ENDS = (
    (r"(java\.lang\.OutOfMemoryError[^\n]*)", "a JVM of Spark ran out of memory: {}", _HEAP_HELP),
    (r"ExecutorLostFailure \(([^\n]+)", "Spark lost the executors of a task, one after the other: ({}", _EXECUTOR_HELP),
    (r"RejectedExecutionException: Task org\.apache\.spark\.executor\.", "an executor that was ending refused a task",
     _GOES_ON),
    (r"worker exited unexpectedly", "a Python worker of Spark ended at work, as one does that the system kills for "
     "memory", _WORKER_HELP),
)  # fmt: skip
"""How Spark says it, what that means, and what helps."""


_SILENT = (Py4JError, OSError, EOFError)
"""What a call of a JVM raises that does not answer."""


def lost_driver(error: BaseException, exit_status: Callable[[], int | None]) -> LostProcessError | None:
    """The error where the driver's JVM answers no more, as it has ended: with that status, negative for a signal. None
    for an `error` that says something else, and if there is no status."""
    seen: BaseException | None = error
    while seen is not None and (isinstance(seen, Py4JJavaError) or not isinstance(seen, _SILENT)):
        seen = seen.__cause__ or seen.__context__
    status = None if seen is None else exit_status()
    if status is None:
        return None
    how = f"with exit status {status}" if status >= 0 else f"by signal {-status} ({signal.Signals(-status).name})"
    return LostProcessError(f"the JVM of Spark's driver ended while it was at work, {how}", _DRIVER_HELP)


def lost_process(text: str) -> LostProcessError | None:
    """The error that an exception of Spark's with that `text` amounts to; None if it says something else."""
    for pattern, message, help in _ENDS:
        found = re.search(pattern, text)
        if found is not None:
            return LostProcessError(message.format(*found.groups()), help)
    return None
