"""``vsc store purge``: removes all rows of some keys from the checkpoint of a query that has stopped."""

from __future__ import annotations

import argparse

from vsc.cli.common import add_variables, variables
from vsc.cli.messages import Messages
from vsc.cli.on_spark import check_java, need_packages, refusal
from vsc.cli.problems import tell
from vsc.cli.submit import add_submit, submit_options

__all__ = ["action", "add_arguments", "execute"]


def action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, named: str, does: str
) -> argparse.ArgumentParser:
    """The parser of an action of ``vsc store``. `named`: what it needs beside a checkpoint; `does`: what it does."""
    parser = actions.add_parser(name, help=does, description=does[0].upper() + does[1:] + ".", allow_abbrev=False)
    parser.usage = f"{parser.prog}{named} --checkpoint DIR [option ...]"
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="the checkpoint of the query")
    return parser


def add_arguments(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the action's arguments."""
    does = "remove all rows of keys, their history and former states from the checkpoint of a stopped query"
    parser = action(actions, "purge", " STORE ... --key K", does)
    parser.add_argument(
        "stores", nargs="+", metavar="STORE", help="names that `vsc store list` shows, or nodes that keep one"
    )
    parser.add_argument(
        "--key", required=True, action="append", dest="keys", metavar="K",
        help="the key; one of several columns as a JSON object, of which leading columns are enough; can be repeated",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    add_variables(parser)
    add_submit(parser)


def execute(args: argparse.Namespace) -> int:
    """Purges; returns the exit status."""
    options, given = submit_options(args, Messages()), variables(args)
    need_packages("vsc store")
    from vsc.cli.store_key import read_key
    from vsc.runtime.errors import VscRuntimeError
    from vsc.runtime.spark.upgrade.purge import Purge, prepare, purge

    job = Purge(args.checkpoint, tuple(args.stores), tuple(args.keys), read_key, given, args.dry_run)
    try:
        prepare(job, options.default_is_local)
    except VscRuntimeError as error:
        raise refusal(error) from error
    check_java()
    settings = {"spark.driver.maxResultSize": "0", **options.conf}
    options.run("vsc store purge", settings, lambda spark: purge(job, spark, tell))
    return 0
