"""``vsc run --print-submit``: the spark-submit command that does the same, and the files that it needs: a main file,
the plan, and vsc itself. So the driver may run wherever spark-submit starts one, in cluster mode too.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vsc.cli.common import print_payload, write_file
from vsc.cli.errors import UsageError
from vsc.cli.messages import Messages
from vsc.cli.on_spark import PACKAGES, SparkOptions
from vsc.cli.submit_options import DEPLOY_MODE, OPTIONS, PYTHON_FILES, manager
from vsc.plan import dump
from vsc.plan.connectors.facts import VARIABLE
from vsc.plan.secret_variables import secret_variables
from vsc.plan.secrets import instead_of_secret, is_secret

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.spark.base.job import Run

__all__ = ["check_printable", "check_variables", "print_submit"]

_MARK = "Written by vsc run --print-submit."
_MAIN = '''\
"""Runs the topology {name} on the session that spark-submit makes. {mark}"""

from pathlib import Path

from pyspark.sql import SparkSession

import vsc

beside = Path(__file__).with_name("plan.json")
plan = beside if beside.exists() else Path("plan.json")  # in cluster mode, Spark puts files into the working folder
spark = SparkSession.builder.getOrCreate()
query = vsc.start(
    plan,
    spark,
{arguments}
)
query.awaitTermination()
spark.stop()
'''
_FILES = "spark.files"
_DRIVER_VARIABLE = {"yarn": "spark.yarn.appMasterEnv.", "k8s": "spark.kubernetes.driverEnv."}
"""What sets a variable of a driver in cluster mode, by manager."""
_PYTHON, _DRIVERS_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"


def check_printable(args: argparse.Namespace, options: SparkOptions) -> None:
    """Raises `UsageError` for what the printed command could not do, or would show to others."""
    for option, is_given in (
        ("--drain", args.drain),
        ("--progress", args.progress != "auto"),
        ("--log-format", args.log_format != "text"),
        ("--metrics", args.metrics is not None),
    ):
        if is_given:
            raise UsageError(
                f"{option} is not for --print-submit: spark-submit's driver is the printed main file, not vsc run",
                "leave it out; the main file may be changed",
            )
    for name, value in options.conf.items():
        if name not in options.from_files and (is_secret(name) or instead_of_secret(value) is not None):
            raise UsageError(f"{name} is a secret, which the command would show", "write it into a --properties-file")


def check_variables(plan: Plan, given: Mapping[str, str]) -> None:
    """Raises `UsageError` for variables that the main file would show to others."""
    options = secret_variables(plan)
    for name, value in given.items():
        if name in options or is_secret(name) or instead_of_secret(value) is not None:
            use = f" (option {options[name]!r})" if name in options else ""
            raise UsageError(
                f"--var {name} is a secret{use}, which the main file would hold",
                f"give it as the variable {name} of the environment, here and where the driver runs",
            )


def print_submit(args: argparse.Namespace, job: Run, options: SparkOptions, messages: Messages) -> None:
    """Writes the files into the folder that ``--print-submit`` names, and the command to standard output."""
    from vsc.runtime.spark.session.ship import package_zip

    folder = _folder(args.print_submit)
    text = dump(job.plan)
    write_file(str(folder / "main.py"), _main(job))
    write_file(str(folder / "plan.json"), text)
    package_zip(folder)
    print_payload(" \\\n    ".join(map(shlex.join, _command(args, job, options, folder))) + "\n")
    needed = sorted({*VARIABLE.findall(text)} - {*job.variables})
    if needed:
        messages.say("info", f"the driver needs these variables in its environment: {', '.join(needed)}")


def _folder(path: str) -> Path:
    """The folder for the files. Raises `UsageError` for one that holds anything else."""
    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = _MARK in (folder / "main.py").read_text(errors="replace") if (folder / "main.py").exists() else False
        if not own and any(folder.iterdir()):
            raise UsageError(f"--print-submit {path}: the folder holds other files", "name a new folder")
    except OSError as error:
        raise UsageError(f"--print-submit {path} cannot be written: {error.strerror}", "name a new folder") from None
    return folder


def _main(job: Run) -> str:
    options = job.options
    arguments: dict[str, Any] = {"checkpoint": job.checkpoint}
    if job.variables:
        arguments["variables"] = dict(job.variables)
    optional: dict[str, Any] = {
        "partitions": job.partitions, "trigger": job.trigger, "max_idle": job.max_idle, "local_dir": job.local_dir,
        "on_bad_row": options.on_bad_row, "on_error": options.on_error, "back_to": job.back_to, "max_bad": job.max_bad,
        "lineage": job.lineage,
    }  # fmt: skip
    if options.functions:
        arguments["functions"] = list(options.functions)
    arguments |= {name: value for name, value in optional.items() if value is not None}
    lines = "\n".join(f"    {name}={value!r}," for name, value in arguments.items())
    return _MAIN.format(name=job.plan.name, mark=_MARK, arguments=lines)


def _command(args: argparse.Namespace, job: Run, options: SparkOptions, folder: Path) -> Iterator[list[str]]:
    """The words of the command, an option a line."""
    from vsc.runtime.spark.session.names import LOCALE, UTF8

    settings = {DEPLOY_MODE: "client", "spark.app.name": f"vsc {job.plan.name}", **options.for_plan(job.plan)}
    if settings[DEPLOY_MODE] == "client":
        python = os.environ.get("PYSPARK_PYTHON") or sys.executable
        settings = {_PYTHON: python, _DRIVERS_PYTHON: sys.executable, **settings}
    settings = {**_locale(options.master, settings[DEPLOY_MODE]), **settings}
    settings[_FILES] = ",".join(filter(None, [settings.get(_FILES), str(folder / "plan.json")]))
    settings[PYTHON_FILES] = ",".join(filter(None, [settings.get(PYTHON_FILES), str(folder / "vsc.zip")]))
    settings[PACKAGES] = options.fetched(settings)
    names = {one.key: one.name for one in OPTIONS} | {DEPLOY_MODE: "--deploy-mode", PACKAGES: "--packages"}
    yield ["env", f"{LOCALE}={UTF8}", "spark-submit", "--master", options.master]
    for key, value in settings.items():
        if value and options.from_files.get(key) != value:
            yield [names[key], value] if key in names else ["--conf", f"{key}={value}"]
    if options.arguments:
        yield list(options.arguments)
    if args.verbose:
        yield ["--verbose"]
    yield [str(folder / "main.py")]


def _locale(master: str, mode: str) -> dict[str, str]:
    """The settings by which JVMs elsewhere read every file name."""
    from vsc.runtime.spark.session.names import LOCALE, UTF8, executor_locale

    driver = _DRIVER_VARIABLE.get(manager(master)) if mode == "cluster" else None
    return {**executor_locale(master), **({f"{driver}{LOCALE}": UTF8} if driver else {})}
