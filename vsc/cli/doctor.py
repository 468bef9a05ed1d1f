"""``vsc doctor``: finds what keeps Spark from running here, or a topology from running on a cluster, and how to fix it.

Without arguments it looks at this machine, and does not start Spark. With a topology, or a master, it asks all that
``vsc run`` would with the same options, up to the first row: nothing is read, written or made that stays. Exit status:
0 if a run would start, 1 if not, 2 for wrong use.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from vsc.cli.checks import Check, as_json, as_text
from vsc.cli.common import add_functions, add_variables, allowed_modules, print_payload, variables
from vsc.cli.errors import UsageError
from vsc.cli.machine import ARCHIVE, machine_checks
from vsc.cli.messages import Messages, Warnings
from vsc.cli.on_spark import SparkOptions
from vsc.cli.run_checks import add_local_dir, check_local_dir
from vsc.cli.submit import add_submit, submit_options

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments: of those of ``vsc run``, what it takes to look."""
    parser.usage = f"{parser.prog} [option ...] [FILE]"
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="a topology or a plan to look at as well: its sources, sinks, functions"
    )
    parser.add_argument("--checkpoint", metavar="DIR", help="the checkpoint that it has, or is to have")
    add_variables(parser)
    add_functions(parser)
    add_local_dir(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="the form of the report")
    parser.add_argument(
        "--warm", action="store_true", help="make the archive from which runs on this machine load Spark's classes"
    )
    add_submit(parser)


def execute(args: argparse.Namespace) -> int:
    """Prints what each check finds, as text at once; returns 1 if one of them says that a run fails."""
    messages, found = Messages(), []
    options = submit_options(args, messages)
    check_local_dir(args.local_dir, options.master)
    with Warnings(messages):
        for check in _checks(args, options, messages):
            found.append(check)
            if args.format == "text":
                print_payload(as_text(check))
    if args.format == "json":
        print_payload(as_json(found))
    return 1 if any(check.status == "bad" for check in found) else 0


def _checks(args: argparse.Namespace, options: SparkOptions, messages: Messages) -> Iterator[Check]:
    given, modules = variables(args), allowed_modules(args)
    if args.file is None and (given or modules or args.checkpoint is not None):
        raise UsageError("--checkpoint, --var and --functions are of a topology", "name its file as well")
    spark_alone = args.file is None and args.local_dir is None and args.master is None and not options.are_given
    if args.warm and not spark_alone:
        raise UsageError("--warm makes what every run on this machine uses", "leave out the file and Spark's options")
    here = [check for check in machine_checks() if not (args.warm and check.name == ARCHIVE)]
    yield from here
    if args.warm and not any(check.status == "bad" for check in here):
        from vsc.cli.warm import warmed

        yield warmed()
    if spark_alone:
        return
    if any(check.status == "bad" for check in here):
        yield Check("Spark", "was not started", "fix the problems above and run this again", fails=False)
        return
    from vsc.cli.doctor_run import RunChecks

    yield from RunChecks(args.file, args.checkpoint, args.local_dir, given, modules, options, messages).all()
