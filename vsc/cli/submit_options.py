"""The options that commands share with spark-submit: each is a setting of Spark, the one that spark-submit makes of
it. Where Spark would ignore one, or could not do what it says, it is refused with what to do instead.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NoReturn

from vsc.cli.errors import UsageError

__all__ = [
    "DEPLOY_MODE", "KEYTAB", "MASTER", "OPTIONS", "PRINCIPAL", "PYTHON_FILES", "Option", "add_options", "manager",
]  # fmt: skip

PYTHON_FILES = "spark.submit.pyFiles"
MASTER, DEPLOY_MODE = "spark.master", "spark.submit.deployMode"
PRINCIPAL, KEYTAB = "spark.kerberos.principal", "spark.kerberos.keytab"

_SIZE = re.compile(r"[1-9]\d*[kmgtp]b?", re.IGNORECASE)
_HEAP = re.compile(r"[1-9]\d*[kmgt]", re.IGNORECASE)
_ARTIFACT = re.compile(r"[^:\s/]+:[^:\s/]+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*")
_SCHEME = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")
_PYTHON = (".py", ".zip", ".egg", ".jar")


Wrong = tuple[str, str]
"""What is wrong with a value, and what to do."""
Check = Callable[[str], Wrong | None]


def _form(fits: Callable[[str], object], what: str, help: str) -> Check:
    return lambda value: None if fits(value) else (f"{value!r} is not {what}", help)


_text: Check = lambda value: None if value.strip() else ("it is empty", "give a value, or leave it out")  # noqa: E731
_count = _form(re.compile(r"[1-9][0-9]{0,8}").fullmatch, "a count", "write a whole number from 1 on")
_size = _form(_SIZE.fullmatch, "an amount of memory", "write it with a unit, like 4g or 512m")
_heap = _form(_HEAP.fullmatch, "an amount of memory", "write it as Java does, like 4g or 512m")
_artifact = _form(_ARTIFACT.fullmatch, "an artifact", "write group:artifact")
_address = _form(_ADDRESS.fullmatch, "an address", "write it like https://repository.example/maven")


def _java_options(value: str) -> Wrong | None:
    if re.search(r"(^|\s)[\"']?-Xmx", value):
        return "Spark takes no -Xmx there", "set the heap with --driver-memory"
    return _text(value)


def _each(check: Check) -> Check:
    """A check of a list separated by commas."""
    return lambda value: next(filter(None, map(check, value.split(","))), None)


def _file(value: str) -> Wrong | None:
    """Local files have to be there; what another file system has, Spark will say."""
    path = value.partition("#")[0].removeprefix("file://").removeprefix("file:")
    if not path.strip():
        return "a name is empty", "separate names by single commas"
    there = _SCHEME.match(path) or os.path.exists(path) or glob.glob(path)
    return None if there else (f"there is no file {path}", "correct the path; in a list, commas separate names")


def _python(value: str) -> Wrong | None:
    if value.lower().endswith(_PYTHON):
        return _file(value)
    return f"{value!r} is not Python code to import", "give a .py, .zip, .egg or .jar; --files takes any file"


_ANY, _EXECUTORS = ("local", "standalone", "yarn", "k8s"), ("standalone", "yarn", "k8s")
_ON_LOCAL = "tasks run in the driver there: use --driver-memory, and local[N] for N cores"


@dataclass(frozen=True, slots=True)
class Option:
    """An option: the setting that it makes, what checks a value, where it works, what to use
    elsewhere."""

    name: str
    metavar: str
    key: str
    check: Check
    help: str
    managers: Collection[str] = _ANY
    instead: str = ""


_FILES = (
    Option("--jars", "LIST", "spark.jars", _each(_file), "jars for the driver and the executors"),
    Option(
        "--exclude-packages", "LIST", "spark.jars.excludes", _each(_artifact), "group:artifact of what not to fetch"
    ),
    Option("--repositories", "LIST", "spark.jars.repositories", _each(_address), "more repositories to fetch from"),
    Option("--py-files", "LIST", PYTHON_FILES, _each(_python), "Python code that executors import"),
    Option("--files", "LIST", "spark.files", _each(_file), "files for the working folder of each executor"),
    Option("--archives", "LIST", "spark.archives", _each(_file), "archives to unpack there, into NAME with FILE#NAME"),
)  # fmt: skip
_SIZES = (
    Option("--driver-memory", "SIZE", "spark.driver.memory", _heap, "heap of the driver, as 4g (Spark's default: 1g)"),
    Option("--driver-cores", "N", "spark.driver.cores", _count, "cores of the driver in cluster mode"),
    Option("--driver-class-path", "PATHS", "spark.driver.extraClassPath", _text, "added to the driver's class path"),
    Option(
        "--driver-java-options", "OPTIONS", "spark.driver.extraJavaOptions", _java_options, "of the driver's JVM"
    ),
    Option(
        "--driver-library-path", "PATHS", "spark.driver.extraLibraryPath", _text, "added to the driver's library path"
    ),
    Option(
        "--executor-memory", "SIZE", "spark.executor.memory", _size, "heap of an executor, as 4g (Spark's default: 1g)",
        _EXECUTORS, _ON_LOCAL,
    ),
    Option("--executor-cores", "N", "spark.executor.cores", _count, "cores of an executor", _EXECUTORS, _ON_LOCAL),
    Option(
        "--num-executors", "N", "spark.executor.instances", _count, "executors on YARN and Kubernetes",
        ("yarn", "k8s"), "bound them with --total-executor-cores and --executor-cores (local: local[N])",
    ),
    Option(
        "--total-executor-cores", "N", "spark.cores.max", _count, "cores of all executors on a standalone cluster",
        ("standalone",), "give --num-executors and --executor-cores (local: local[N])",
    ),
)  # fmt: skip
_ACCESS = (
    Option(
        "--queue", "NAME", "spark.yarn.queue", _text, "queue of YARN", ("yarn",), "leave it out: only YARN has queues"
    ),
    Option(
        "--principal", "NAME", PRINCIPAL, _text, "Kerberos principal to log in as; needs --keytab",
        ("local", "yarn", "k8s"), "Spark logs in on YARN and Kubernetes only: run kinit before",
    ),
    Option(
        "--keytab", "KEYTAB", KEYTAB, _file, "file with the principal's keys",
        ("local", "yarn", "k8s"), "Spark logs in on YARN and Kubernetes only: run kinit before",
    ),
)  # fmt: skip
_APPLICATION = (
    Option("--name", "NAME", "spark.app.name", _text, "name of the application (default: vsc and the topology's name)"),
)
_GROUPS = {
    "Spark, as for spark-submit": _APPLICATION,
    "files and packages, as for spark-submit": _FILES,
    "memory and cores, as for spark-submit": _SIZES,
    "access, as for spark-submit": _ACCESS,
}
OPTIONS = tuple(option for options in _GROUPS.values() for option in options)

_REFUSED = {
    "--class": ("a topology has no class to start", "leave it out; --jars adds jars"),
    "--kill": ("vsc run does not end other runs", "send the run's process SIGTERM: it ends after its epoch"),
    "--status": ("vsc run does not ask about other runs", "use spark-submit --status, or the cluster's page"),
    "--remote": ("Spark Connect is not supported", "run on the driver, with --master"),
    "--supervise": (
        "Spark supervises drivers of Java only, in cluster mode on a standalone cluster",
        "have systemd or Kubernetes restart the same command: it goes on from its checkpoint",
    ),
}


class _Refused(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> NoReturn:
        message, help = _REFUSED[str(option_string)]
        raise UsageError(f"{option_string}: {message}", help)


def add_options(parser: argparse.ArgumentParser, first: Callable[[Any], None]) -> None:
    """Adds the options in groups; `first` adds those of the first group that are not settings."""
    for title, options in _GROUPS.items():
        group = parser.add_argument_group(title)
        if options is _APPLICATION:
            first(group)
        for option in options:
            group.add_argument(option.name, metavar=option.metavar, dest=option.key, help=option.help)
    for name in _REFUSED:
        parser.add_argument(name, action=_Refused, nargs="?", help=argparse.SUPPRESS)


def manager(master: str) -> str:
    """The kind of a master's cluster. ``local-cluster`` has executors with the settings of a standalone one."""
    kind = re.split(r"[:\[]", master.lower())[0]
    return {"spark": "standalone", "local-cluster": "standalone"}.get(kind, kind)
