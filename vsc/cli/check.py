"""``vsc check``: finds errors in topologies. Never starts a JVM."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vsc.cli.common import (
    add_allow,
    add_include_roots,
    add_variables,
    allowed_codes,
    bounded,
    print_payload,
    read_texts,
    topologies,
    variables,
    warn_unknown,
    with_included,
)
from vsc.cli.problems import tell, use_color
from vsc.cli.watch import add_watch, watched

if TYPE_CHECKING:
    from vsc.compiler.diagnostics.model import Diagnostic
    from vsc.compiler.source import SourceFile

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["."],
        help="a topology, a folder with topologies (*.vdsl), or - for standard input (default: this folder)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "concise", "json", "sarif", "github"),
        default="text",
        help="text goes to standard error, the others to standard output (default: text)",
    )
    parser.add_argument("--deny-warnings", action="store_true", help="exit with 1 if there is a warning")
    add_allow(parser)
    add_watch(parser)
    add_variables(parser)
    add_include_roots(parser)


def execute(args: argparse.Namespace) -> int:
    """Checks the files. Returns 2 if one cannot be read, 1 if one has errors (or denied warnings), else 0."""
    with bounded(args):
        if args.watch:
            watched("vsc check", args.paths, lambda: with_included(topologies(args.paths)), lambda: _once(args))
        return _once(args)


def _once(args: argparse.Namespace) -> int:
    given, silent = variables(args), allowed_codes(args)
    texts, unread = read_texts(topologies(args.paths))
    found, sources = _check(texts, given)
    diagnostics = [one for one in found if one.code not in silent]
    for error in unread:
        tell(error)
    unknown = not unread and warn_unknown(given, (source.text for source in sources.values()))
    if args.format == "text":
        from vsc.compiler.diagnostics.render import render_text, summary

        files = "1 file" if len(texts) == 1 else f"{len(texts)} files"
        if texts:
            tell(f"{render_text(diagnostics, sources, use_color(sys.stderr))}{files}: {summary(diagnostics)}")
    else:
        from vsc.compiler.diagnostics.render_machine import RENDERERS

        print_payload(RENDERERS[args.format](diagnostics))
    failed = any(args.deny_warnings or d.severity == "error" for d in diagnostics)
    return 2 if unread else 1 if failed or (unknown and args.deny_warnings) else 0


def _check(texts: Mapping[str, str], given: Mapping[str, str]) -> tuple[list[Diagnostic], dict[str, SourceFile]]:
    """What is wrong, and the files that were read. One that another one includes is not checked by itself."""
    collects = gc.isenabled()
    gc.disable()  # loading the compiler leaves no garbage; collecting would take a tenth of the time
    try:
        from vsc.compiler.driver import check_source

        checked = [check_source(text, path, given) for path, text in texts.items()]
        parts = {os.path.realpath(part.path) for source, _ in checked for part in source.included}
        whole = [one for one in checked if os.path.realpath(one[0].path) not in parts]
        found = dict.fromkeys(finding for _, of_one in whole for finding in of_one)
        return list(found), {path: file for source, _ in checked for path, file in source.files().items()}
    finally:
        if collects:
            gc.enable()
