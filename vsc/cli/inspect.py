"""``vsc inspect``: writes the source statement for existing data files. Never starts a JVM."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from vsc.cli.common import print_payload
from vsc.cli.errors import UsageError
from vsc.plan.connectors import FACTS
from vsc.plan.words import counted

if TYPE_CHECKING:
    from vsc.inspect import Statement, Survey

__all__ = ["add_arguments", "execute"]

_ROWS = 250_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="the data of one source: a folder, a file or a glob; a topic"
    )
    parser.add_argument(
        "--registry", metavar="URL", help="each PATH is a topic of Kafka whose schemas this registry has"
    )
    parser.add_argument(
        "--registry-auth", metavar="file:PATH", help="the file with USER:PASSWORD or Bearer TOKEN for the registry"
    )
    parser.add_argument("--record", metavar="MESSAGE", help="of Protobuf, the message (default: the first)")
    parser.add_argument(
        "--format",
        choices=FACTS["files"].options["format"].choices,
        help="the format of the files (default: detected)",
    )
    parser.add_argument(
        "--rows", metavar="N", default=str(_ROWS),
        help=f"read about N rows, spread over the files, or `all` (default: {_ROWS:,})",
    )  # fmt: skip
    parser.add_argument("--kind", choices=("stream", "table"), help="default: table for change events, else stream")
    parser.add_argument("--name", help="the name of the source (default: from the path)")
    parser.add_argument(
        "--key",
        metavar="COLUMN",
        action="append",
        default=[],
        help="a key column; can be repeated (default: the likeliest)",
    )
    parser.add_argument("--timestamp", metavar="COLUMN", help="the column with the event time (default: the likeliest)")
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", help="a statement, or all findings (default: text)"
    )


def execute(args: argparse.Namespace) -> int:
    """Writes a statement for each path."""
    rows = _rows(args.rows)
    if len(args.paths) > 1 and (args.name or args.key or args.timestamp):
        raise UsageError("--name, --key and --timestamp are for one PATH", "put a glob in quotes to make it one source")
    from vsc.inspect import InspectError, Wanted, report, statement, survey

    if args.registry is not None:
        return _topics(args)
    if args.registry_auth is not None or args.record is not None:
        raise UsageError("--registry-auth and --record are for topics", "add --registry URL")

    wanted = Wanted(
        args.format, rows, args.name, args.kind, tuple(args.key), args.timestamp, time.time_ns() // 1_000_000
    )
    made: list[tuple[Survey, Statement]] = []
    try:
        for path in args.paths:
            seen = survey(path, wanted)
            made.append((seen, statement(seen, wanted, taken={one.name for _, one in made})))
            _tell(*made[-1])
    except InspectError as error:
        raise UsageError(error.message, error.help) from error
    if args.output == "json":
        print_payload(json.dumps([report(*one) for one in made], indent=2, ensure_ascii=False) + "\n")
    else:
        print_payload("\n".join(one.text for _, one in made))
    return 0


def _topics(args: argparse.Namespace) -> int:
    """Writes a statement for each topic."""
    from vsc.inspect import InspectError, TopicWanted, topic_statement

    if args.format or args.timestamp or args.output == "json":
        raise UsageError("--format, --timestamp and --output are for files", "leave them out with --registry")
    if args.registry_auth is not None and not args.registry_auth.startswith("file:"):
        raise UsageError("--registry-auth names a file: others see what a command says", "write file:PATH")
    wanted = TopicWanted(args.registry, args.registry_auth, args.name, args.kind, args.record, tuple(args.key))
    try:
        print_payload("\n".join(topic_statement(topic, wanted) for topic in args.paths))
    except InspectError as error:
        raise UsageError(error.message, error.help) from error
    return 0


def _rows(text: str) -> int | None:
    if text == "all":
        return None
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdecimal() or int(digits) == 0:
        raise UsageError(f"--rows takes a number of rows or `all`, not `{text}`", f"as in --rows {_ROWS}")
    return int(digits)


def _tell(seen: Survey, made: Statement) -> None:
    columns, rows = counted(len(seen.columns), "column"), counted(seen.profile.rows, "row")
    print(f"{seen.found.path}: {made.kind} {made.name}, {columns}, {rows} read", file=sys.stderr)
    for warning in made.warnings:
        print(f"warning: {warning}", file=sys.stderr)
