"""What commands that start Spark share: their options, and the checks before Spark starts."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from vsc.cli.errors import UsageError
from vsc.cli.problems import Problem
from vsc.extras import install

if TYPE_CHECKING:
    from vsc.runtime.errors import VscRuntimeError

__all__ = [
    "MASTER",
    "Refused",
    "add_spark",
    "check_java",
    "default_is_local",
    "need_packages",
    "on_spark",
    "packages_of",
    "refusal",
    "settings",
]

MASTER = "local[*]"
_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s)://.+", re.IGNORECASE
)
_COORDINATES = re.compile(r"[^:\s/]+:[^:\s/]+:[^:\s]+(:[^:\s]+)*")
_MEMORY = re.compile(r"[1-9]\d*([kmgtp]b?|b)?", re.IGNORECASE)
T = TypeVar("T")

_NEEDED = ("pyspark", "pandas", "pyarrow", "numpy", "rocksdict", "google.protobuf", "rich")


class Refused(Exception):
    """The command ends before its work starts: the problem (text if already rendered) and the exit status."""

    def __init__(self, problem: Problem | str, status: int) -> None:
        super().__init__(problem)
        self.problem, self.status = problem, status


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Adds ``--master``, ``--conf`` and ``--packages``."""
    parser.add_argument("--master", default=MASTER, metavar="URL", help="as for spark-submit (default: local[*])")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; can be repeated"
    )
    parser.add_argument(
        "--packages",
        default="",
        metavar="LIST",
        help="Maven coordinates of packages that Spark fetches, separated by commas",
    )


def settings(args: argparse.Namespace) -> dict[str, str]:
    """Spark's settings from ``--conf``. Raises `UsageError`, also for an invalid ``--master`` or ``--packages``."""
    if not _MASTER.fullmatch(args.master):
        raise UsageError(
            f"--master {args.master} is not a master of Spark",
            "give local[N], local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT",
        )
    for one in packages_of(args):
        if not _COORDINATES.fullmatch(one):
            raise UsageError(f"--packages: {one} does not name a package", "write group:artifact:version")
    found = {}
    for pair in args.conf:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--conf takes KEY=VALUE, not `{pair}`", "as in --conf spark.executor.memory=4g")
        if not name.startswith("spark."):
            raise UsageError(
                f"--conf {name}: Spark's settings begin with `spark.`", f"Hadoop's are written `spark.hadoop.{name}`"
            )
        if name.endswith(("driver.memory", "executor.memory")) and not _MEMORY.fullmatch(value):
            raise UsageError(f"--conf {name}: {value!r} is not an amount of memory", "write it like 4g or 512m")
        found[name] = value
    return found


def packages_of(args: argparse.Namespace) -> list[str]:
    """The packages that ``--packages`` names."""
    return [p.strip() for p in args.packages.split(",") if p.strip()]


def default_is_local(master: str, conf: Mapping[str, str]) -> bool:
    """Whether a path without a scheme is certainly on this machine, not on a cluster's default file system."""
    elsewhere = "spark.hadoop.fs.defaultFS" in conf or bool(os.environ.get("HADOOP_CONF_DIR"))
    return master.startswith("local") and not elsewhere


def need_packages(command: str) -> None:
    """Raises `Refused` if a Python package that Spark needs is missing."""
    missing = [name for name in _NEEDED if not _importable(name)]
    if missing:
        names = ", ".join(missing)
        raise Refused(Problem(f"{command} needs {names}, not installed here", install("spark")), 2)


def check_java() -> None:
    """Raises `Refused` if this machine has no Java that Spark runs on."""
    from vsc.cli.doctor import java_problem

    problem = java_problem()
    if problem is not None:
        raise Refused(Problem(f"Spark cannot start: {problem}"), 1)


def refusal(error: VscRuntimeError) -> Refused:
    """The `Refused` for a runtime error: status 2 if the command was used wrongly, else 1."""
    from vsc.runtime.errors import ConfigurationError

    return Refused(Problem.of(error), 2 if isinstance(error, ConfigurationError) else 1)


def on_spark(name: str, args: argparse.Namespace, conf: dict[str, str], work: Callable[[Any], T]) -> T:
    """Runs `work` on a Spark session called `name`; returns its result. Raises `Refused` for errors vsc recognizes."""
    from vsc.runtime.errors import StartError, VscRuntimeError
    from vsc.runtime.spark.failures import translated
    from vsc.runtime.spark.interrupts import Interrupted, Interrupts
    from vsc.runtime.spark.launch import launched, new_log

    log, named = new_log(), False
    try:
        with Interrupts() as interrupts, launched(name, args.master, conf, packages_of(args), log, interrupts) as spark:
            return work(spark)
    except Interrupted:
        raise KeyboardInterrupt from None
    except VscRuntimeError as error:
        named = isinstance(error, StartError)
        raise refusal(error) from error
    except Exception as error:
        known = translated(error)
        if known is None:
            raise
        raise refusal(known) from error
    finally:
        if os.path.exists(log) and not named:
            os.remove(log)


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
