"""What commands that start Spark share: their options, and the checks before Spark starts."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from vsc.cli.errors import Refused, UsageError
from vsc.cli.problems import Problem
from vsc.extras import install

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.spark.session.interrupts import Interrupts

__all__ = [
    "LOCAL",
    "PACKAGES",
    "SparkOptions",
    "add_spark",
    "check_java",
    "check_memory",
    "need_packages",
    "parsed_packages",
    "refusal",
    "settings",
]

LOCAL = "local[*]"
_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,[1-9]\d*)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s)://.+", re.IGNORECASE
)
_COORDINATES = re.compile(r"[^:\s/]+:[^:\s/]+:[^:\s]+(:[^:\s]+)*")
PACKAGES = "spark.jars.packages"
_MEMORY = re.compile(r"[1-9]\d*([kmgtp]b?|b)?", re.IGNORECASE)
T = TypeVar("T")


def add_spark(parser: argparse._ActionsContainer) -> None:
    """Adds ``--master``, ``--conf`` and ``--packages``."""
    parser.add_argument("--master", default=LOCAL, metavar="URL", help="as for spark-submit (default: local[*])")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; can be repeated"
    )
    parser.add_argument(
        "--packages",
        default="",
        metavar="LIST",
        help="Maven coordinates of packages that Spark fetches, separated by commas, in place of those in a file; vsc "
        "adds those of the topology's connectors",
    )


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """What a command is given for its session.

    `arguments` are those of spark-submit that are not settings; `from_files` the settings that it finds in a file.
    """

    master: str
    conf: Mapping[str, str]
    packages: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    from_files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, args: argparse.Namespace) -> SparkOptions:
        """What ``--master``, ``--conf`` and ``--packages`` say. Raises `UsageError` for what is invalid."""
        conf = settings(args.conf)
        return cls.checked(args.master, conf, parsed_packages(args.packages, conf))

    @classmethod
    def checked(
        cls,
        master: str,
        conf: Mapping[str, str],
        packages: tuple[str, ...],
        arguments: tuple[str, ...] = (),
        from_files: Mapping[str, str] | None = None,
    ) -> SparkOptions:
        """`packages` take the place of those that `conf` names. Raises `UsageError` for a master that is none."""
        if not _MASTER.fullmatch(master):
            raise UsageError(
                f"--master {master} is not a master of Spark",
                "give local[N], local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT",
            )
        kept = {name: value for name, value in conf.items() if not packages or name != PACKAGES}
        return cls(master, kept, packages, arguments, from_files or {})

    def fetched(self, settings: Mapping[str, str]) -> str:
        """The packages that Spark fetches: those of ``--packages``, then those of `settings`."""
        return ",".join(filter(None, [*self.packages, settings.get(PACKAGES)]))

    @property
    def are_given(self) -> bool:
        """Whether any of them differs from its default."""
        return bool(self.conf or self.packages) or self.master != LOCAL

    @property
    def default_is_local(self) -> bool:
        """Whether a path without a scheme is certainly on this machine, not on a cluster's default file system."""
        elsewhere = "spark.hadoop.fs.defaultFS" in self.conf or bool(os.environ.get("HADOOP_CONF_DIR"))
        return self.master.startswith(("local", "spark://")) and not elsewhere

    @property
    def is_cluster_mode(self) -> bool:
        """Whether the driver is to run on the cluster."""
        return self.conf.get("spark.submit.deployMode") == "cluster"

    def for_plan(self, plan: Plan) -> dict[str, str]:
        """The settings with those that the connectors of `plan` need. Raises VscRuntimeError if they cannot be had."""
        from vsc.runtime.spark.connectors.jars import connector_settings

        return {**self.conf, **connector_settings(plan, self.conf, self.packages)}

    def run(
        self,
        name: str,
        conf: Mapping[str, str],
        work: Callable[[Any], T],
        interrupts: Interrupts | None = None,
        failed: int | None = None,
    ) -> T:
        """Runs `work` on a session called `name` with the settings `conf`; returns its result.

        Raises `Refused` for errors vsc recognizes. With `failed`, every error of `work` is one, and that is the exit
        status of those that are not vsc's own. KeyboardInterrupt after a signal, which `interrupts` handles.
        """
        from vsc.runtime.errors import StartError, VscRuntimeError
        from vsc.runtime.spark.query.failures import in_a_line, translated
        from vsc.runtime.spark.query.launch import launched, new_log
        from vsc.runtime.spark.query.lost_processes import lost_driver
        from vsc.runtime.spark.session.interrupts import Interrupted, Interrupts

        log, named, started = new_log(), False, False
        handling = Interrupts() if interrupts is None else interrupts
        try:
            with (
                handling if interrupts is None else nullcontext(),
                launched(
                    name, self.master, conf, self.packages, log, handling, self.arguments, self.from_files
                ) as spark,
            ):
                started = True
                return work(spark)
        except Interrupted:
            raise KeyboardInterrupt from None
        except VscRuntimeError as error:
            named = isinstance(error, StartError)
            raise refusal(error) from error
        except Exception as error:
            known = lost_driver(error, handling.jvm_status) or translated(error)
            if known is not None:
                raise refusal(known, failed) from error
            named = True
            if failed is None or not started:
                raise
            raise Refused(Problem(f"the query failed: {in_a_line(error)}", f"Spark's log is {log}"), failed) from error
        finally:
            if os.path.exists(log) and not named:
                os.remove(log)


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """The settings that ``--conf`` gives. Raises `UsageError`."""
    return dict(map(_setting, pairs))


def parsed_packages(given: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """What ``--packages`` names. Raises `UsageError`, also if ``--conf`` names others."""
    packages = _named(given)
    if packages and _named(conf.get(PACKAGES, given)) != packages:
        raise UsageError(f"--packages and --conf {PACKAGES} disagree", "leave one of them out")
    for one in packages:
        if not _COORDINATES.fullmatch(one):
            raise UsageError(f"--packages: {one} does not name a package", "write group:artifact:version")
    return packages


def _named(packages: str) -> tuple[str, ...]:
    return tuple(p.strip() for p in packages.split(",") if p.strip())


def check_memory(place: str, name: str, value: str) -> None:
    """Raises `UsageError` if a setting that is an amount of memory has a value that is none."""
    if name.endswith(("driver.memory", "executor.memory")) and not _MEMORY.fullmatch(value):
        raise UsageError(f"{place}: {value!r} is not an amount of memory", "write it like 4g or 512m")


def _setting(pair: str) -> tuple[str, str]:
    """The name and the value that ``--conf`` gives. Raises `UsageError`."""
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise UsageError("--conf takes KEY=VALUE: a name or a `=` is missing", "as in --conf spark.executor.memory=4g")
    if not name.startswith("spark."):
        raise UsageError(
            f"--conf {name}: Spark's settings begin with `spark.`", f"Hadoop's are written `spark.hadoop.{name}`"
        )
    check_memory(f"--conf {name}", name, value)
    return name, value


def need_packages(command: str) -> None:
    """Raises `Refused` if a Python package that Spark needs is missing, or is a release that vsc cannot use."""
    from vsc.cli.machine import NOT_INSTALLED, package_checks

    wrong = [one for one in package_checks() if one.fix is not None]
    missing = [one.name for one in wrong if one.found == NOT_INSTALLED]
    if missing:
        names = ", ".join(missing)
        raise Refused(Problem(f"{command} needs {names}, not installed here", install("spark")), 2)
    if wrong:
        releases = "; ".join(f"{one.name} {one.found}" for one in wrong)
        raise Refused(Problem(f"{command} cannot run: {releases}", install("spark")), 2)


def check_java() -> None:
    """Raises `Refused` if this machine has no Java that Spark runs on."""
    from vsc.cli.machine import java_problem

    problem = java_problem()
    if problem is not None:
        raise Refused(problem, 1)


def refusal(error: VscRuntimeError, status: int | None = None) -> Refused:
    """The `Refused` for a runtime error: status 2 if the command was used wrongly, 3 if its input was, else 1."""
    from vsc.runtime.errors import ConfigurationError, UnusableInputError

    own = 2 if isinstance(error, ConfigurationError) else 3 if isinstance(error, UnusableInputError) else 1
    return Refused(Problem.of(error), own if status is None else status)
