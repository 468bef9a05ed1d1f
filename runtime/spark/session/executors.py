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
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from vsc.plan.parts import OwnFunction
from vsc.plan.words import counted
from vsc.runtime.errors import VscRuntimeError
from vsc.runtime.spark.base.folders import missing, remove_empty
from vsc.runtime.spark.base.servers import Servers
from vsc.runtime.spark.session.findings import MEMORY_HELP, Shared, findings, not_run, short_of_memory, skew
from vsc.runtime.spark.session.on_executor import TOKEN, Answer, Asked, forget, look, token_file, write
from vsc.runtime.spark.session.packages import asked_of, module_of
from vsc.runtime.spark.session.session import is_here
from vsc.runtime.spark.session.standalone import looking_for_slots

__all__ = ["APART_HELP", "SECONDS_APART", "Executors", "apart"]

_log = logging.getLogger(__name__)

_HOLDS = (0.1, 0.3, 1.0, 3.0)
"""How long tasks take, in seconds, round by round, until each executor has run one."""
SECONDS_APART = 5.0
"""How far the clock of an executor may be from the driver's without a word: nothing that is computed depends on it."""
APART_HELP = "synchronize both, or their logs, the ages of files and times in Kafka do not fit together"
_SAMPLE = 20
"""How many files of a source are looked for."""


class Executors:
    """The executors of a session, and what they have to share with the driver: see the module."""

    def __init__(
        self,
        spark: SparkSession,
        shared: Sequence[Shared],
        packages: Sequence[str],
        local_dir: str | None = None,
        functions: Sequence[OwnFunction] = (),
    ) -> None:
        self._spark, self._shared, self._local_dir = spark, shared, local_dir
        self._packages = asked_of(packages)
        self._modules = tuple(dict.fromkeys(function.module for function in functions))
        self._known: frozenset[str] = frozenset()
        """The executors that have been asked."""
        self._warned: set[str] = set()
        self._here = is_here(spark.sparkContext.master)

    def check(self) -> None:
        """Asks the executors, if there are any that have not been asked. Raises what they have to share raises, and
        ConfigurationError for what they lack."""
        if self._here or (self._known and self._there() <= self._known):
            return
        found, known = self._look()
        for answer, problems in found:
            if answer.own not in self._warned:
                self._warn(answer)
            for problem in problems:
                raise problem
        self._known = known

    def _warn(self, answer: Answer) -> None:
        """Of what may be wrong with an executor, once."""
        self._warned.add(answer.own)
        if abs(answer.ahead) > SECONDS_APART:
            _log.warning("the clock of %s is %s: %s", answer.name, apart(answer.ahead), APART_HELP)
        if (little := short_of_memory(answer)) is not None:
            _log.warning("%s has %s: %s", answer.name, little, MEMORY_HELP)

    def look(self, servers: Sequence[Servers] = ()) -> list[tuple[Answer, list[VscRuntimeError]]]:
        """What each executor answers, and what is wrong with that; `servers` are those that it should reach.

        Raises ConfigurationError, or StartError, if none can be asked.
        """
        return self._look(tuple(servers))[0]

    def _look(
        self, servers: tuple[Servers, ...] = ()
    ) -> tuple[list[tuple[Answer, list[VscRuntimeError]]], frozenset[str]]:
        """What executors answer, with what is wrong, and which executors there are."""
        token, made = uuid.uuid4().hex[:TOKEN], self._begin_writing()
        written = [one for one in self._shared if not one.read]
        packages = tuple((name, module_of(name)) for name in self._packages)
        folders = tuple(one.path for one in written)
        asked = Asked(token, folders, self._files(), packages, self._local_dir, servers, self._modules)
        try:
            for one in written:
                write(token_file(one.path, token, "driver"))
            answers, known = self._answers(asked)
            found = [(answer, list(self._findings(asked, answer))) for answer in answers]
            if any(problems for _, problems in found):
                with suppress(Py4JJavaError, PySparkException):  # the problem is what counts
                    self._run(asked._replace(forget=True))
            return found, known
        finally:
            for one in written:
                forget(one.path, token)
            remove_empty(made)

    def _findings(self, asked: Asked, answer: Answer) -> Iterator[VscRuntimeError]:
        return findings(asked, self._shared, self._packages, self._spark.version, answer)

    def _begin_writing(self) -> list[str]:
        """Makes the folders that are written; returns those that were not there, innermost first."""
        made: list[str] = []
        for one in self._shared:
            if not one.read:
                made = missing(one.path) + made
                os.makedirs(one.path, exist_ok=True)
        return made

    def _files(self) -> tuple[tuple[str, int], ...]:
        """Files of the sources, with their sizes: the newest names of each, which are likely to be read."""
        found: list[tuple[str, int]] = []
        for one in self._shared:
            if one.read:
                for path in glob.glob(one.path) or [one.path]:
                    with suppress(FileNotFoundError):  # moved away meanwhile
                        found += [(file, os.path.getsize(file)) for file in _newest(path)]
        return tuple(found)

    def _answers(self, asked: Asked) -> tuple[list[Answer], frozenset[str]]:
        """An answer of each executor, and which ones there are."""
        found: dict[str, Answer] = {}
        for hold in _HOLDS:
            there = self._there()
            began = time.time()
            answers = self._run(asked._replace(hold=hold))
            ended = time.time()
            cores = max(1, self._spark.sparkContext.defaultParallelism // max(1, len(there)))
            found.update(
                (answer.own, answer._replace(ahead=skew(answer, began, ended), cores=cores)) for answer in answers
            )
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
            with looking_for_slots(self._spark, lambda: self._here or bool(self._there())):
                return context.parallelize(range(tasks), tasks).mapPartitions(partial(look, asked)).collect()
        except (Py4JJavaError, PySparkException) as error:
            problem = not_run(str(error))
            if problem is None:
                raise
            raise problem from error
        finally:
            context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]

    def _there(self) -> frozenset[str]:
        """The ids of the executors that Spark has now. Not by the driver's own address, which `SparkEnv` knows: Py4J
        looks at all of that class, and one of its methods needs what pyspark 4.3 lacks."""
        context: Any = self._spark.sparkContext._jsc.sc()
        return frozenset(str(context.getExecutorIds().mkString(" ")).split())


def apart(seconds: float) -> str:
    """How far a clock is `ahead` of the driver's, in words."""
    return f"{abs(seconds):.0f} seconds {'ahead of' if seconds > 0 else 'behind'} the driver's"


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
