"""``vsc run``: a topology, or a compiled plan, on Spark.

Everything that can be refused is refused before Spark starts. Exit status: 0 done, 1 refused (topology, plan,
checkpoint, sources, sinks), 2 wrong use, 3 the query failed, 130 interrupted. What happens on Spark is in
`vsc.runtime.spark`, which is imported here only when it is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING

from vsc.cli.common import add_allow, add_functions, add_variables, allowed_codes, allowed_modules, variables
from vsc.cli.errors import Refused
from vsc.cli.messages import JsonMessages, Messages, Warnings
from vsc.cli.on_spark import SparkOptions, check_java, need_packages, refusal
from vsc.cli.plans import plan_of
from vsc.cli.print_submit import check_printable, check_variables, print_submit
from vsc.cli.problems import Problem
from vsc.cli.run_checks import add_local_dir, check_checkpoint, check_functions, check_options
from vsc.cli.submit import add_submit, submit_options, tell_settings
from vsc.extras import required

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.spark.query.preflight import PreparedRun
    from vsc.runtime.spark.report.lineage import RunLineage
    from vsc.runtime.spark.report.progress import Display

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.usage = f"{parser.prog} [option ...] --checkpoint DIR FILE"
    parser.add_argument("file", metavar="FILE", help="a topology (.vdsl), or a plan (.json) that vsc compile has made")
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="folder for the query's state and progress")
    parser.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="partitions of the state: how many tasks can work on it at the same time (default: 4; fixed once the "
        "checkpoint exists)",
    )
    parser.add_argument(
        "--trigger",
        default="available-now",
        metavar="WHEN",
        help="available-now: all available input, then stop (default); once: the same in one epoch; "
        "or a duration such as '10 seconds': an epoch at that interval until it is stopped",
    )
    parser.add_argument(
        "--max-idle",
        metavar="D",
        help="with a duration as trigger: how long the other sources wait for one that has nothing new (default: 0)",
    )
    add_variables(parser)
    add_allow(parser)
    add_functions(parser)
    parser.add_argument(
        "--drain",
        action="store_true",
        help="at the end, emit everything still held: for a grace, in windows, in suppress",
    )
    parser.add_argument(
        "--back-to",
        type=int,
        metavar="EPOCH",
        help="first go back to the state after that epoch, and forget what came later",
    )
    add_local_dir(parser)
    parser.add_argument(
        "--on-bad-row",
        choices=("drop", "fail"),
        default="drop",
        help="what to do with rows that cannot be read, or have no key or time (default: drop, and count them)",
    )
    parser.add_argument(
        "--max-bad",
        metavar="BOUND",
        help="fail before an epoch is written in which more rows of a source are bad: a number, or a percentage "
        "of the rows read (default: no bound)",
    )
    parser.add_argument(
        "--on-error",
        choices=("fail", "drop"),
        default="fail",
        help="what to do with records on which an expression fails (default: fail)",
    )
    parser.add_argument(
        "--progress",
        choices=("auto", "bar", "lines", "json", "none"),
        default="auto",
        help="what to show on stderr (default: auto, a bar on a terminal, else lines)",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json: everything on stderr is one JSON object a line (default: text)",
    )
    parser.add_argument(
        "--metrics",
        metavar="prometheus:[HOST:]PORT",
        help="serve the run's metrics for Prometheus at this address (default host: 127.0.0.1)",
    )
    parser.add_argument(
        "--lineage",
        metavar="TARGET",
        help="tell what the run reads and writes, column by column: OpenLineage's events, appended to this file or "
        "posted to this URL",
    )
    parser.add_argument(
        "--print-submit",
        metavar="DIR",
        help="run nothing: write main.py, plan.json and vsc.zip into DIR, and print the equal spark-submit command",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show Spark's settings, and where each comes from")
    add_submit(parser)


def execute(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    messages = JsonMessages() if args.log_format == "json" else Messages()
    with _ended_by_signals(messages), Warnings(_of_warnings(args, messages)):
        status = _executed(args, messages)
    if status == 130:  # another Ctrl-C would only make Python complain while it exits
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return status


def _of_warnings(args: argparse.Namespace, messages: Messages) -> Messages | None:
    """Where log records go while the query runs. With `--progress json`, each one is a line of JSON too."""
    if args.progress == "json":
        return JsonMessages()
    return None if args.progress == "none" else messages


def _executed(args: argparse.Namespace, messages: Messages) -> int:
    try:
        options = submit_options(args, messages)
        given = variables(args)
        check_options(args, options.master)
        if args.print_submit is not None:
            check_printable(args, options)
        warns = args.progress not in ("json", "none")
        plan = plan_of(args.file, given, messages, warns, allowed_codes(args))
        if args.print_submit is not None:
            check_variables(plan, given)
        need_packages("vsc run")
        return _on_spark(args, plan, options, given, messages)
    except Refused as refused:
        if isinstance(refused.problem, Problem):
            messages.problem(refused.problem)
        else:
            messages.say("error", refused.problem)
        return refused.status


@contextlib.contextmanager
def _ended_by_signals(messages: Messages) -> Iterator[None]:
    """A context in which Ctrl-C and SIGTERM end the process without a traceback.

    For use while nothing runs; once Spark runs, `Interrupts` handles them.
    """

    def end(number: int, frame: FrameType | None) -> None:
        messages.say("info", "interrupted")
        os._exit(130)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_spark(
    args: argparse.Namespace, plan: Plan, options: SparkOptions, given: Mapping[str, str], messages: Messages
) -> int:
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.operators.context import RunOptions
    from vsc.runtime.spark.base.job import Run
    from vsc.runtime.spark.query.preflight import prepare
    from vsc.runtime.spark.session.session import tell_overridden

    job = Run(
        plan, args.checkpoint, given, args.partitions, args.trigger, args.max_idle, args.local_dir,
        RunOptions(args.on_bad_row, args.on_error, functions=allowed_modules(args)), args.back_to, args.drain,
        args.max_bad, args.lineage,
    )  # fmt: skip
    try:
        local = options.default_is_local
        if args.print_submit is not None:
            prepare(job, local and not options.is_cluster_mode)
            print_submit(args, job, options, messages)
            return 0
        prepared = prepare(job, local)
        check_functions(plan, options)
        fresh = check_checkpoint(args.checkpoint, plan, args.file, local, args.partitions, args.back_to)
        prepared = prepared.reach(fresh)
        check_java()
        tell_overridden(options.conf)
        if args.verbose:
            tell_settings(options, args, messages)
        lineage = _lineage(prepared)
        show = _display(args)
    except VscRuntimeError as error:
        raise refusal(error) from error
    return _run(prepared, options, show, lineage, messages)


def _lineage(prepared: PreparedRun) -> RunLineage | None:
    """What tells others of the run, if asked to. Raises ConfigurationError for a file that cannot be written."""
    target = prepared.job.lineage
    if target is None:
        return None
    from vsc.runtime.spark.report.lineage import RunLineage

    return RunLineage(prepared.ends.plan, target)


def _display(args: argparse.Namespace) -> Display:
    """What shows the progress: a screen, a log, an endpoint for Prometheus.

    Raises ConfigurationError if the endpoint's port is taken.
    """
    from vsc.runtime.spark.report.displays import Both, JsonDisplay, display

    exporter = None
    if args.metrics is not None:  # first, so that nothing has been shown yet if its port is taken
        with required("vsc run --metrics"):
            from vsc.runtime.spark.report.exporter import PrometheusDisplay, address

        exporter = PrometheusDisplay(*address(args.metrics))
    logged = args.log_format == "json" and args.progress != "none"
    shown = JsonDisplay(sys.stderr, logged=True) if logged else display(args.progress, sys.stderr)
    return shown if exporter is None else Both(shown, exporter)


def _run(
    prepared: PreparedRun, options: SparkOptions, show: Display, lineage: RunLineage | None, messages: Messages
) -> int:
    from vsc.runtime.spark.query.run import run
    from vsc.runtime.spark.report.progress import Activity, Phase
    from vsc.runtime.spark.session.interrupts import Interrupts

    settings = options.for_plan(prepared.job.plan)
    try:
        with contextlib.closing(show), Interrupts() as interrupts:
            show.doing(Activity(Phase.STARTING))
            name = f"vsc {prepared.job.plan.name}"
            options.run(
                name, settings, lambda spark: run(prepared, spark, show, interrupts, lineage), interrupts, failed=3
            )
    except KeyboardInterrupt:
        messages.say("info", "interrupted: the same command continues from here")
        return 130
    return 0
