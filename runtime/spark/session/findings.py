"""What is wrong with an executor, in the user's words: by what it has answered, or by how Spark failed to ask it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement

from vsc.plan.words import bytes_text, counted
from vsc.runtime.errors import ConfigurationError, FunctionError, SourceError, StateError, VscRuntimeError
from vsc.runtime.spark.base.releases import minor_release
from vsc.runtime.spark.session.on_executor import Answer, Asked, appears, token_file

__all__ = ["MEMORY_HELP", "Shared", "findings", "not_run", "short_of_memory", "skew"]

_ENDED = re.compile(r"Error from python worker:\s*\n((?:.*\n)+?)PYTHONPATH was:")
_RAISED = re.compile(r"PythonException: Traceback .*\n(?:[ \t]+.*\n)+(\S.*)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_CLASS = re.compile(r"(?:InvalidClass|ClassNotFound)Exception: (org\.apache\.spark\.[\w.$]+)")
_SPARK_HELP = "install that release of pyspark beside vsc, or run on a cluster of the driver's release"
_SHARED_HELP = (
    "give a path that the driver and all executors share (a network file system, HDFS, an object store), or run with "
    "--master 'local[*]'"
)
MEMORY_HELP = (
    "give it more, or fewer cores (--executor-cores); on YARN and Kubernetes, spark.executor.memoryOverhead is for "
    "Python workers"
)
_WORKER_BYTES = 256 << 20
"""What the Python workers of a core take, at least."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A path that the driver and the executors have to share: what it is, and the kind of error if they do not.

    `read`: it is a source's, a file, a folder or a pattern; else a folder that is written.
    """

    what: str
    path: str
    error: type[VscRuntimeError]
    read: bool = False


def findings(
    asked: Asked, shared: Sequence[Shared], packages: Mapping[str, Requirement], spark: str, answer: Answer
) -> Iterator[VscRuntimeError]:
    """What is wrong with what an executor has answered. `spark` is the driver's release."""
    of_itself = (_other_spark(spark, answer), _lacking(packages, answer), _no_module(answer), _no_local_folder(answer))
    yield from filter(None, of_itself)
    yield from _not_written(asked, [one for one in shared if not one.read], answer)
    yield from filter(None, [_not_read(asked, [one for one in shared if one.read], answer)])


def _other_spark(spark: str, answer: Answer) -> ConfigurationError | None:
    if minor_release(answer.spark) == minor_release(spark):
        return None
    return ConfigurationError(f"{answer.name} runs Spark {answer.spark}, the driver Spark {spark}", _SPARK_HELP)


def _lacking(packages: Mapping[str, Requirement], answer: Answer) -> ConfigurationError | None:
    found = dict(zip(packages, answer.versions, strict=True))
    missing = [name for name, version in found.items() if version is None]
    other = [
        f"{name} {version} ({asked.specifier})"
        for name, asked in packages.items()
        if (version := found[name]) and not asked.specifier.contains(version, prereleases=True)
    ]
    if not missing and not other:
        return None
    lacks = [f"does not have {', '.join(missing)}"] if missing else []
    lacks += [f"has a release that vsc cannot use of {', '.join(other)}"] if other else []
    return ConfigurationError(
        f"the Python of {answer.name}, {answer.python}, {' and '.join(lacks)}",
        "install them there, name another Python with PYSPARK_PYTHON, or send one that `vsc pack` makes: "
        "docs/clusters/index.md",
    )


def _no_module(answer: Answer) -> FunctionError | None:
    if not answer.lacking:
        return None
    return FunctionError(
        f"the Python of {answer.name} does not have {', '.join(answer.lacking)}, of the topology's functions",
        "send what they are in with --py-files, or install it there",
    )


def _no_local_folder(answer: Answer) -> StateError | None:
    if answer.local is None:
        return None
    return StateError(
        f"{answer.name} cannot keep state on its disk: {answer.local}",
        "free some space there, or give --local-dir a folder that executors can make and write",
    )


def _not_written(asked: Asked, written: Sequence[Shared], answer: Answer) -> Iterator[VscRuntimeError]:
    for one, wrong in zip(written, answer.folders, strict=True):
        why = f"{answer.name} {wrong}" if wrong else None
        if why is None and not appears(token_file(one.path, asked.token, answer.own)):
            why = f"what {answer.name} writes there is not seen by the driver"
        if why is not None:
            yield one.error(f"{one.what} ({one.path}) is not shared: {why}", _SHARED_HELP)


def _not_read(asked: Asked, read: Sequence[Shared], answer: Answer) -> SourceError | None:
    """Files that the driver itself no longer has as they were count for nothing: they were moved, or written again."""
    gone = next((file for file, size in asked.files if file in answer.files and _is(file, size)), None)
    if gone is None:
        return None
    place = next(one for one in read if _holds(one.path, gone))
    return SourceError(
        f"{place.what} ({place.path}) is not shared: {answer.name} does not have {gone} as the driver has it, or may "
        "not read it",
        _SHARED_HELP,
    )


def _is(file: str, size: int) -> bool:
    try:
        return os.path.getsize(file) == size
    except OSError:
        return False


def _holds(pattern: str, file: str) -> bool:
    return any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in glob.glob(pattern) or [pattern])


def skew(answer: Answer, began: float, ended: float) -> float:
    """By how many seconds the clock of an executor, asked between two times of the driver's, is ahead, at least."""
    return answer.clock - ended if answer.clock > ended else min(answer.clock - began, 0.0)


def short_of_memory(answer: Answer) -> str | None:
    """That an executor has less memory free than its Python workers take; None if it has not."""
    least = answer.cores * _WORKER_BYTES
    if answer.memory is None or answer.memory >= least:
        return None
    return (
        f"{bytes_text(answer.memory)} of memory free for the Python workers of {counted(answer.cores, 'core')}, "
        f"which take {bytes_text(least)} or more"
    )


def not_run(text: str) -> ConfigurationError | None:
    """Why executors could not be asked: no Python, another one, another Spark, or what their Python raised."""
    program = _NO_PROGRAM.search(text)
    if program is not None:
        return ConfigurationError(
            f"the executors cannot start Python: there is no {program[1]} that runs there",
            "set PYSPARK_PYTHON (or --conf spark.pyspark.python) to a Python that they have",
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        line = next(line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line)
        return ConfigurationError(
            f"the executors run another Python than the driver: {line.strip()}",
            "use the same minor version on both: the driver's is that which runs vsc, PYSPARK_PYTHON names that of the "
            "executors",
        )
    other = _OTHER_CLASS.search(text)
    if other is not None:
        return ConfigurationError(f"the cluster runs another Spark than the driver: {other[1]} differs", _SPARK_HELP)
    ended = _ENDED.search(text)
    if ended is not None:
        return ConfigurationError(
            f"the Python of the executors ends as it starts: {ended[1].strip().splitlines()[-1].strip()}",
            "name another one with PYSPARK_PYTHON (or --conf spark.pyspark.python): docs/clusters/index.md",
        )
    raised = _RAISED.search(text)
    if raised is not None:
        return ConfigurationError(f"an executor cannot say what it has: {raised[1].strip()}", "its log has the rest")
    return None
