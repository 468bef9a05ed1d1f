"""What commands that start Spark are given in the manner of spark-submit.

As there, an option comes before ``--conf``, that before the ``--properties-file``, that before ``spark-defaults.conf``;
an option and ``--conf`` that disagree are refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from vsc.cli.errors import UsageError
from vsc.cli.messages import Messages
from vsc.cli.on_spark import LOCAL, SparkOptions, add_spark, check_memory, parsed_packages, settings
from vsc.cli.problems import Problem
from vsc.cli.properties import default_file, properties
from vsc.cli.submit_options import DEPLOY_MODE, KEYTAB, MASTER, OPTIONS, PRINCIPAL, Option, add_options, manager
from vsc.plan.secrets import HIDDEN, is_secret, masked

__all__ = ["add_submit", "submit_options", "tell_settings"]


def add_submit(parser: argparse.ArgumentParser) -> None:
    """Adds the options that spark-submit has."""
    add_options(parser, _add_first)


def _add_first(group: Any) -> None:
    add_spark(group)
    group.set_defaults(master=None, print_submit=None)
    group.add_argument(
        "--properties-file", metavar="FILE",
        help="settings of Spark, in the format of Java's properties; other users cannot see them in ps",
    )  # fmt: skip
    group.add_argument(
        "--load-spark-defaults", action="store_true", help="with --properties-file, read spark-defaults.conf as well"
    )
    group.add_argument(
        "--deploy-mode", choices=("client", "cluster"),
        help="where the driver runs: client (default): here; cluster: only with --print-submit",
    )  # fmt: skip
    group.add_argument("--proxy-user", metavar="NAME", help="the user to act as on the cluster")


def submit_options(args: argparse.Namespace, messages: Messages) -> SparkOptions:
    """Raises `UsageError` for what is invalid. `messages` gets a warning for what a file has that is not Spark's."""
    conf = settings(args.conf)
    given = {one: value for one in OPTIONS if (value := vars(args)[one.key]) is not None}
    _check_agreement(args, given, conf)
    from_files = _from_files(args, messages)
    chosen = {name: value for name, (value, _) in from_files.items()} | conf
    chosen |= {one.key: value for one, value in given.items()}
    if args.deploy_mode is not None:
        chosen[DEPLOY_MODE] = args.deploy_mode
    master = args.master or chosen.get(MASTER) or LOCAL
    chosen.pop(MASTER, None)
    for one, value in given.items():
        _check_given(one, value, master)
    _check_identity(args, chosen)
    _check_mode(args, chosen, master)
    above = {*conf, *(one.key for one in given), DEPLOY_MODE, MASTER}
    hidden = {name: value for name, (value, _) in from_files.items() if name not in above}
    return SparkOptions.checked(master, chosen, parsed_packages(args.packages, conf), _arguments(args), hidden)


def _arguments(args: argparse.Namespace) -> tuple[str, ...]:
    """What spark-submit gets beside settings."""
    found: list[str] = []
    if args.properties_file is not None:
        found += ["--properties-file", args.properties_file]
    if args.load_spark_defaults:
        found.append("--load-spark-defaults")
    if args.proxy_user is not None:
        found += ["--proxy-user", args.proxy_user]
    return tuple(found)


def _check_agreement(args: argparse.Namespace, given: Mapping[Option, str], conf: Mapping[str, str]) -> None:
    said = [(one.name, one.key, value) for one, value in given.items()]
    said += [("--master", MASTER, args.master)] if args.master is not None else []
    said += [("--deploy-mode", DEPLOY_MODE, args.deploy_mode)] if args.deploy_mode is not None else []
    for name, key, value in said:
        if conf.get(key, value) != value:
            raise UsageError(f"{name} and --conf {key} disagree", "leave one of them out")


def _from_files(args: argparse.Namespace, messages: Messages) -> dict[str, tuple[str, int]]:
    if args.load_spark_defaults and args.properties_file is None:
        raise UsageError(
            "--load-spark-defaults is for --properties-file", "leave it out: without one, Spark reads the defaults"
        )
    default = default_file() if args.properties_file is None or args.load_spark_defaults else None
    found: dict[str, tuple[str, int]] = {}
    for path in filter(None, (default, args.properties_file)):
        for name, (value, line) in properties(path).items():
            if name.startswith("spark."):
                check_memory(f"{path}:{line}: {name}", name, value)
                found[name] = value, line
            else:
                help = f"Spark's settings begin with `spark.`; Hadoop's are written `spark.hadoop.{name}`"
                messages.problem(Problem(f"{path}:{line}: {name} has no effect", help, severity="warning"))
    return found


def _check_given(one: Option, value: str, master: str) -> None:
    problem = one.check(value)
    if problem is not None:
        raise UsageError(f"{one.name}: {problem[0]}", problem[1])
    if manager(master) not in one.managers:
        raise UsageError(f"{one.name} has no effect with --master {master}", one.instead)


def _check_identity(args: argparse.Namespace, chosen: Mapping[str, str]) -> None:
    if args.proxy_user is not None and not args.proxy_user.strip():
        raise UsageError("--proxy-user has no name", "give the user to act as, or leave it out")
    if args.proxy_user is not None and PRINCIPAL in chosen:
        raise UsageError("--proxy-user does not go with --principal", "leave one of them out")
    if (PRINCIPAL in chosen) != (KEYTAB in chosen):
        lacking = "--keytab" if PRINCIPAL in chosen else "--principal"
        raise UsageError(f"Spark logs in with a principal and its keytab: {lacking} is missing", f"add {lacking}")


def _check_mode(args: argparse.Namespace, chosen: Mapping[str, str], master: str) -> None:
    mode, kind = chosen.get(DEPLOY_MODE, "client"), manager(master)
    if mode not in ("client", "cluster"):
        raise UsageError(f"{DEPLOY_MODE}={mode} is not a mode", "write client or cluster")
    if mode == "client":
        if vars(args)["spark.driver.cores"] is not None:
            raise UsageError("--driver-cores has no effect: the driver runs here", "leave it out")
    elif kind == "local":
        raise UsageError(f"--master {master} is not a cluster that could run the driver", "leave --deploy-mode out")
    elif kind == "standalone":
        raise UsageError(
            f"Spark runs no Python driver in cluster mode with --master {master}",
            "leave --deploy-mode out, and start vsc run on a machine beside the cluster",
        )
    elif args.print_submit is None:
        raise UsageError(
            "the driver runs here, not in cluster mode",
            "leave --deploy-mode out; vsc run --print-submit DIR prints the spark-submit command that runs it there",
        )


def tell_settings(options: SparkOptions, args: argparse.Namespace, messages: Messages) -> None:
    """Says what Spark is set to, and by what; secrets are left out."""
    names = {one.key: one.name for one in OPTIONS if vars(args)[one.key] is not None}
    defaults = "spark-defaults.conf" if args.properties_file is None or args.load_spark_defaults else None
    files = " or ".join(filter(None, (defaults, args.properties_file)))
    messages.say("info", f"master: {options.master}")
    for name, value in sorted(options.conf.items()):
        origin = files if name in options.from_files else names.get(name, "--conf")
        messages.say("info", f"{name}: {HIDDEN if is_secret(name) else masked(value)} ({origin})")
