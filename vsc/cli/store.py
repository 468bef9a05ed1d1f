"""``vsc store``: shows what the stores of a checkpoint hold, without disturbing its query if that is running, or purges
keys once it has stopped.

If the checkpoint is a local folder, everything that can be refused is refused before Spark starts. Exit status: 0
answered, even if no such row exists, or purged; 1 a checkpoint that cannot be read, or not be purged; 2 wrong use (no
such store, key, time).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from vsc.cli import store_purge
from vsc.cli.common import add_functions, allowed_modules, print_payload
from vsc.cli.errors import UsageError
from vsc.cli.messages import Messages
from vsc.cli.on_spark import check_java, need_packages, refusal
from vsc.cli.problems import tell
from vsc.cli.submit import add_submit, submit_options

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.operators.views import Question, StoreInfo
    from vsc.runtime.spark.checkpoint.epoch_state import EpochState

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    every = _action(actions, "list", "all stores: their places, sizes and stream times")
    every.add_argument("--partitions", action="store_true", help="a line for each partition of a store")
    get = _action(actions, "get", "what a store holds for a key, now or as of a time")
    history = _action(actions, "history", "all versions of a key, newest first")
    scan = _action(actions, "scan", "all rows of a store, or those of a range of keys or times")
    for one in (get, history, scan):
        one.add_argument("store", metavar="STORE", help="a name that `vsc store list` shows, or a node that keeps one")
    for one in (get, history):
        one.add_argument("--key", required=True, metavar="K", help="the key; one of several columns as a JSON object")
    for one in (get, scan):
        one.add_argument("--as-of", metavar="T", help="what was valid then: ms since 1970, or ISO text")
    scan.add_argument("--from-key", metavar="K", help="from this key on; leading key columns are enough")
    scan.add_argument("--to-key", metavar="K", help="up to this key, included; leading key columns are enough")
    for one in (history, scan):
        one.add_argument("--from", dest="start", metavar="T", help="versions that are valid at that time or later")
        one.add_argument("--to", dest="end", metavar="T", help="versions that are valid at that time or before")
    scan.add_argument("--limit", type=int, metavar="N", help="at most N rows")
    store_purge.add_arguments(actions)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, does: str
) -> argparse.ArgumentParser:
    named = "" if name == "list" else " STORE" if name == "scan" else " STORE --key K"
    parser = store_purge.action(actions, name, named, does)
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    parser.add_argument("--at-epoch", type=int, metavar="N", help="as epoch N left it (default: the newest one)")
    add_functions(parser)
    add_submit(parser)
    return parser


def execute(args: argparse.Namespace) -> int:
    """Answers, or purges; returns the exit status."""
    if args.action == "purge":
        return store_purge.execute(args)
    options = submit_options(args, Messages())
    if not 0 <= (getattr(args, "limit", None) or 0) < 1 << 31:  # Spark's limit is a 32-bit number
        raise UsageError(f"--limit cannot be {args.limit}", f"give a number from 0 to {(1 << 31) - 1:,}")
    need_packages("vsc store")
    _look_ahead(args, options.default_is_local)
    check_java()
    return options.run("vsc store", {"spark.driver.maxResultSize": "0", **options.conf}, partial(_look, args))


def _look_ahead(args: argparse.Namespace, local: bool) -> None:
    """Refuses everything that a local checkpoint alone shows to be wrong."""
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.spark.base.checksummed import LocalFiles
    from vsc.runtime.spark.base.paths import is_local, local_path
    from vsc.runtime.spark.checkpoint.identity import read_identity

    if not is_local(args.checkpoint, local):
        return
    try:
        files = LocalFiles(local_path(args.checkpoint))
        plan = read_identity(files).plan(files)
        if args.action != "list":
            _asked(args, plan)
    except VscRuntimeError as error:
        raise refusal(error) from error


def _asked(args: argparse.Namespace, plan: Plan) -> tuple[StoreInfo, Question]:
    """The store that the arguments name, and the question that they ask."""
    from vsc.cli.store_key import read_key, read_time
    from vsc.runtime.operators.views.catalog import find_store
    from vsc.runtime.operators.views.question import question

    store = find_store(plan, args.store)
    given = vars(args)
    key, from_key, to_key = (
        None if given.get(name) is None else read_key(store, given[name]) for name in ("key", "from_key", "to_key")
    )
    as_of, start, end = (
        None if given.get(name) is None else read_time(given[name], name) for name in ("as_of", "start", "end")
    )
    history = args.action == "history" or start is not None or end is not None
    if as_of is not None and history:
        raise UsageError("--as-of asks for one time, --from and --to for many", "use one or the other")
    return store, question(
        store, key=key, from_key=from_key, to_key=to_key, as_of=as_of, history=history, start=start, end=end
    )


def _look(args: argparse.Namespace, spark: Any) -> int:
    from vsc.runtime.spark.checkpoint.epoch_state import EpochState

    state = EpochState.open(spark, args.checkpoint, args.at_epoch)
    state = replace(state, functions=allowed_modules(args))
    print_payload(_answer(args, state))
    tell(f"of epoch {state.epoch}")
    return 0


def _answer(args: argparse.Namespace, state: EpochState) -> str:
    from vsc.cli.store_text import rows_text, sizes_text, skew_hint

    if args.action == "list":
        sizes = state.sizes()
        hint = skew_hint(sizes)
        if hint is not None:
            tell(hint)
        return sizes_text(sizes, args.format, args.partitions)
    store, asked = _asked(args, state.plan)
    return rows_text(store, state.columns(store, asked, getattr(args, "limit", None)), args.format)
