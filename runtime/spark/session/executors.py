"""Asks the executors, before the first row, whether they see the folders that the driver sees, and have what they need.

A path of the local file system means another disk on another machine, unless it is shared. What executors write there
would be lost without a word, and what they read would be something else. So each executor looks, in a small job: it
has to see a file that the driver has written, the driver has to see its own, and the files of sources have to be there
with their sizes. Executors that join later are asked before the next epoch is written.

Not for tasks in the driver's own process, which see what it sees.
"""

from __future__ import annotations

import glob
import logging
import os
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vsc.plan.words import counted
from vsc.runtime.errors import ConfigurationError, SourceError, VscRuntimeError
from vsc.runtime.spark.session.on_executor import Answer, Asked, appears, look, token_file, write
from vsc.runtime.spark.session.packages import asked_of, module_of
from vsc.runtime.spark.session.session import is_here

__all__ = ["Executors", "Shared", "no_python"]

_log = logging.getLogger(__name__)

_HOLDS = (0.1, 0.3, 1.0, 3.0)
"""How long tasks take, in seconds, round by round, until each executor has run one."""
_SAMPLE = 20
"""How many files of a source are looked for."""
_ENDED = re.compile(r"Error from python worker:\s*\n((?:.*\n)+?)PYTHONPATH was:")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_SHARED_HELP = (
    "give a path that the driver and all executors share (a network file system, HDFS, an object store), or run with "
    "--master 'local[*]'"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """A path that the driver and the executors have to share: what it is, and the kind of error if they do not.

    `read`: it is a source's, a file, a folder or a pattern; else a folder that is written.
    """

    what: str
    path: str
    error: type[VscRuntimeError]
    read: bool = False


class Executors:
    """The executors of a session, and what they have to share with the driver: see the module."""

    def __init__(self, spark: SparkSession, shared: Sequence[Shared], packages: Sequence[str]) -> None:
        self._spark, self._shared = spark, shared
        self._packages = asked_of(packages)
        self._known: frozenset[str] = frozenset()
        """Those that have been asked."""
        self._here = is_here(spark.sparkContext.master or "")

    def check(self) -> None:
        """Asks the executors, if there are any that have not been asked. Raises what they have to share raises, and
        ConfigurationError for what they lack."""
        if self._here or (self._known and self._there() <= self._known):
            return
        token, made = uuid.uuid4().hex[:12], self._begin_writing()
        written = [one for one in self._shared if not one.read]
        packages = tuple((name, module_of(name)) for name in self._packages)
        asked = Asked(token, tuple(one.path for one in written), self._files(), packages, 0.0)
        try:
            for one in written:
                write(token_file(one.path, token, "driver"))
            answers, known = self._answers(asked)
            problem = next((found for answer in answers if (found := self._problem(asked, written, answer))), None)
            if problem is not None:
                with suppress(Py4JJavaError, PySparkException):  # the problem is what counts
                    self._run(asked._replace(forget=True))
                raise problem
            self._known = known
        finally:
            for one in written:
                for path in glob.glob(token_file(glob.escape(one.path), token, "*")):
                    os.remove(path)
            for path in made:
                with suppress(OSError):  # it is used by now
                    os.rmdir(path)

    def _begin_writing(self) -> list[str]:
        """Makes the folders that are written; returns those that were not there."""
        made = [one.path for one in self._shared if not one.read and not os.path.isdir(one.path)]
        for path in made:
            os.makedirs(path)
        return made

    def _files(self) -> tuple[tuple[str, int], ...]:
        """Files of the sources, with their sizes: the newest names of each, which are likely to be read."""
        found: list[tuple[str, int]] = []
        for one in self._shared:
            if one.read:
                for path in glob.glob(one.path) or [one.path]:
                    found += [(file, os.path.getsize(file)) for file in _newest(path)]
        return tuple(found)

    def _answers(self, asked: Asked) -> tuple[list[Answer], frozenset[str]]:
        """An answer of each executor, and which ones there are."""
        found: dict[str, Answer] = {}
        for hold in _HOLDS:
            there = self._there()
            found.update((answer.own, answer) for answer in self._run(asked._replace(hold=hold)))
            if there == (now := self._there()) and len(found) >= len(now):
                return list(found.values()), now
        _log.warning(
            "%s of %s did not run a task at the start: before the first epoch is written they are asked again",
            max(len(now) - len(found), 1), counted(len(now), "executor"),
        )  # fmt: skip
        return list(found.values()), frozenset()

    def _run(self, asked: Asked) -> list[Answer]:
        context = self._spark.sparkContext
        tasks = max(context.defaultParallelism, 2 * len(self._there()))
        try:
            context.setJobDescription("vsc: what the executors see and have")
            return context.parallelize(range(tasks), tasks).mapPartitions(partial(look, asked)).collect()
        except (Py4JJavaError, PySparkException) as error:
            problem = no_python(str(error))
            if problem is None:
                raise
            raise problem from error
        finally:
            context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]

    def _there(self) -> frozenset[str]:
        """The addresses of the executors that Spark has now."""
        context: Any = self._spark.sparkContext._jsc.sc()
        driver = str(context.env().blockManager().blockManagerId().hostPort())
        found = context.getExecutorMemoryStatus().keys().mkString(" ").split()
        return frozenset(map(str, found)) - {driver}

    def _problem(self, asked: Asked, written: Sequence[Shared], answer: Answer) -> VscRuntimeError | None:
        lacking = self._lacking(answer)
        if lacking is not None:
            return lacking
        for one, wrong in zip(written, answer.folders, strict=True):
            why = f"{answer.name} {wrong}" if wrong else None
            if why is None and not appears(token_file(one.path, asked.token, answer.own)):
                why = f"what {answer.name} writes there is not seen by the driver"
            if why is not None:
                return one.error(f"{one.what} ({one.path}) is not shared: {why}", _SHARED_HELP)
        if answer.files:
            place = next(one for one in self._shared if one.read and _holds(one.path, answer.files[0]))
            return SourceError(
                f"{place.what} ({place.path}) is not shared: {answer.name} does not have {answer.files[0]} as the "
                "driver has it",
                _SHARED_HELP,
            )
        return None

    def _lacking(self, answer: Answer) -> ConfigurationError | None:
        """What is wrong with the packages of an executor."""
        found = dict(zip(self._packages, answer.versions, strict=True))
        missing = [name for name, version in found.items() if version is None]
        other = [
            f"{name} {version} ({asked.specifier})"
            for name, asked in self._packages.items()
            if (version := found[name]) and not asked.specifier.contains(version, prereleases=True)
        ]
        if not missing and not other:
            return None
        lacks = [f"does not have {', '.join(missing)}"] if missing else []
        lacks += [f"has a release that vsc cannot use of {', '.join(other)}"] if other else []
        return ConfigurationError(
            f"the Python of {answer.name}, {answer.python}, {' and '.join(lacks)}",
            "install them there, name another Python with PYSPARK_PYTHON, or send one that `vsc pack` makes: "
            "docs/guide.md, On a cluster",
        )


def _newest(path: str) -> list[str]:
    """Some files of a source; those of a folder that has folders are in the last ones."""
    if os.path.isfile(path):
        return [path]
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted((one for one in folders if one[0] not in "._"), reverse=True)
        found += [os.path.join(folder, name) for name in sorted(names, reverse=True) if name[0] not in "._"]
        if len(found) >= _SAMPLE:
            break
    return found[:_SAMPLE]


def _holds(pattern: str, file: str) -> bool:
    return any(file == path or file.startswith(f"{path.rstrip('/')}/") for path in glob.glob(pattern) or [pattern])


def no_python(text: str) -> ConfigurationError | None:
    """What is wrong with the Python itself that executors were to start."""
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
    ended = _ENDED.search(text)
    if ended is not None:
        return ConfigurationError(
            f"the Python of the executors ends as it starts: {ended[1].strip().splitlines()[-1].strip()}",
            "name another one with PYSPARK_PYTHON (or --conf spark.pyspark.python): docs/guide.md, On a cluster",
        )
    return None
