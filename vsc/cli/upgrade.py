"""``vsc upgrade``: a new checkpoint for a changed topology, which continues where the old one stopped.

If the checkpoints are local folders, everything that can be refused is refused before Spark starts. Exit status: 0
done, 1 refused (topology, checkpoints, a store that needs a decision), 2 wrong use.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from vsc.cli.common import add_functions, add_variables, allowed_modules, print_payload, variables
from vsc.cli.errors import UsageError
from vsc.cli.messages import Messages, Warnings
from vsc.cli.on_spark import SparkOptions, check_java, need_packages, refusal
from vsc.cli.plans import plan_of
from vsc.cli.problems import tell
from vsc.cli.run_checks import check_functions, check_partitions
from vsc.cli.submit import add_submit, submit_options

if TYPE_CHECKING:
    from vsc.changes import Change
    from vsc.plan.nodes import Plan

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.usage = f"{parser.prog} --from OLD --checkpoint DIR [option ...] NEW"
    parser.add_argument("file", metavar="NEW", help="the new topology (.vdsl), or a plan (.json) of it")
    parser.add_argument(
        "--from", dest="old", required=True, metavar="OLD", help="the checkpoint to continue from; it is only read"
    )
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="the folder of the new checkpoint")
    parser.add_argument("--partitions", type=int, metavar="N", help="partitions of the new one (default: as before)")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--reset", nargs="+", action="extend", default=[], metavar="STORE",
        help="stores to empty, of those that would be rebuilt; they are refilled from a table if possible",
    )  # fmt: skip
    parser.add_argument(
        "--accept", nargs="+", action="extend", default=[], metavar="STORE",
        help="stores to keep as the old topology computed them, of those that would have to be rebuilt",
    )  # fmt: skip
    parser.add_argument(
        "--position", action="append", default=[], metavar="SOURCE=POSITION",
        help="where a source begins: needed where its connector changes; can be repeated",
    )  # fmt: skip
    add_variables(parser)
    add_functions(parser)
    add_submit(parser)


def execute(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    messages, given = Messages(), variables(args)
    options = submit_options(args, messages)
    check_partitions(args.partitions)
    plan = plan_of(args.file, given, messages, warns=True)
    need_packages("vsc upgrade")
    with Warnings(messages):
        return _upgraded(args, plan, options, given)


def _upgraded(args: argparse.Namespace, plan: Plan, options: SparkOptions, given: Mapping[str, str]) -> int:
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.spark.upgrade import Upgrade, emptied, prepare, upgrade

    job = Upgrade(
        plan, args.old, args.checkpoint, given, args.partitions, frozenset(args.reset), frozenset(args.accept),
        args.dry_run, _positions(args.position), allowed_modules(args),
    )  # fmt: skip
    try:
        prepared = prepare(job, options.default_is_local, partial(_show, job.positions))
        compared = prepared.compared
        for remark in () if compared is None else emptied(compared.changes, job.reset, job.positions, plan):
            tell(remark)
        check_functions(plan, options)
        check_java()
        settings = {"spark.driver.maxResultSize": "0", **options.for_plan(plan)}
    except VscRuntimeError as error:
        raise refusal(error) from error
    carried = options.run(f"vsc upgrade {plan.name}", settings, lambda spark: upgrade(prepared, spark, tell))
    if carried is not None:
        values = "".join(f" --var {name}=..." for name in given)
        tell(f"carried over {carried}; next: vsc run {args.file} --checkpoint {args.checkpoint}{values}")
    return 0


def _positions(given: list[str]) -> dict[str, str]:
    """The positions that `--position` gives, by source. Raises UsageError for one that cannot be parsed."""
    positions: dict[str, str] = {}
    for one in given:
        name, is_there, value = one.partition("=")
        if not (name and is_there and value):
            raise UsageError(f"--position {one}: it is not SOURCE=POSITION", "write, say, --position orders=latest")
        if name in positions:
            raise UsageError(f"--position {one}: source {name} has a position already", "give each source one")
        positions[name] = value
    return positions


def _show(positions: Collection[str], changes: Sequence[Change]) -> None:
    """Shows what the new topology changes; `positions`: the sources that are given one."""
    from vsc.changes import render
    from vsc.runtime.spark.upgrade import remarks

    print_payload(render(changes, "text", ""))
    for remark in remarks(changes, positions):
        tell(remark)
