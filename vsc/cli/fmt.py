"""``vsc fmt``: formats topologies in the standard style. Never starts a JVM."""

from __future__ import annotations

import argparse

from vsc.cli.common import (
    STDIN,
    add_include_roots,
    bounded,
    print_payload,
    read_stdin,
    read_text,
    topologies,
    write_file,
)
from vsc.cli.errors import UsageError
from vsc.cli.problems import tell, tell_findings

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.description = (
        "Format topologies: one style, comments stay where they are. Files end up in UTF-8 with LF line ends. "
        "A file with a syntax error is left alone."
    )
    parser.epilog = (
        "exit status: 0 all files are formatted (now), 1 --check or --diff found files to format, "
        "2 a file has a syntax error or cannot be read or written"
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["."],
        help="a topology, a folder with topologies (*.vdsl), or - for standard input (default: this folder)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is not formatted")
    parser.add_argument("--diff", action="store_true", help="like --check, and show the changes")
    add_include_roots(parser)


def execute(args: argparse.Namespace) -> int:
    """Formats the files. Returns 2 if one cannot be formatted, 1 if one is unformatted with `--check`, else 0."""
    if "-" in args.paths:
        if len(args.paths) > 1:
            raise UsageError("vsc fmt: `-` cannot be combined with files", "format files in another command")
        return _stdin(args)
    with bounded(args):
        return _files(args)


def _files(args: argparse.Namespace) -> int:
    changed = failed = same = 0
    done = "would be reformatted" if args.check or args.diff else "reformatted"
    for path in topologies(args.paths):
        try:
            text = read_text(path)
            formatted = _formatted(text, path)
            if formatted is not None and formatted != text and not (args.check or args.diff):
                write_file(path, formatted)
        except UsageError as error:
            tell(error)
            formatted = None
        if formatted is None:
            failed += 1
        elif formatted == text:
            same += 1
        else:
            changed += 1
            tell(f"{done}: {path}")
            if args.diff:
                print_payload(_diff(text, formatted, path))
    counted = ((changed, done), (same, "unchanged"), (failed, "left alone"))
    tell(", ".join(f"{count} file{'s' * (count != 1)} {what}" for count, what in counted if count))
    return 2 if failed else 1 if changed and (args.check or args.diff) else 0


def _stdin(args: argparse.Namespace) -> int:
    text = read_stdin()
    formatted = _formatted(text, STDIN)
    if formatted is None:
        return 2
    if args.diff:
        print_payload(_diff(text, formatted, STDIN))
    elif not args.check:
        print_payload(formatted)
    return 1 if formatted != text and (args.check or args.diff) else 0


def _formatted(text: str, path: str) -> str | None:
    """The formatted text; None, with the errors reported, if it cannot be read."""
    from vsc.compiler.diagnostics.model import TopologyError
    from vsc.compiler.format import format_topology

    try:
        return format_topology(text, path)
    except TopologyError as error:
        from vsc.compiler.source import SourceFile

        tell_findings(error.diagnostics, SourceFile(path, text))
        return None


def _diff(text: str, formatted: str, path: str) -> str:
    from difflib import unified_diff
    from io import StringIO

    before, after = (list(StringIO(one, newline="\n")) for one in (text, formatted))
    lines = unified_diff(before, after, path, f"{path} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
