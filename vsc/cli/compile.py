"""``vsc compile``: a topology as its plan, or in another form."""

from __future__ import annotations

import argparse
import sys

from vsc.cli.common import add_variables, print_payload, read_text, use_color, variables, write_file
from vsc.cli.errors import UsageError

__all__ = ["add_arguments", "execute"]

_FORMS = ("plan", "topology", "graph", "mermaid", "dot", "svg", "spark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="a topology (.vdsl)")
    parser.add_argument("-o", "--output", metavar="OUT", help="write there instead of to standard output")
    parser.add_argument("--emit", choices=_FORMS, default="plan", help="what to make of it (default: plan)")
    add_variables(parser)


def execute(args: argparse.Namespace) -> int:
    """Compiles the file; 1 if it has errors, else 0."""
    given = variables(args)
    text = read_text(args.file)
    from vsc.compiler.driver import compile_source
    from vsc.compiler.emit import EMITTERS

    if args.emit not in EMITTERS:
        raise UsageError(f"--emit {args.emit} is not there yet", f"there are {', '.join(EMITTERS)}")
    result = compile_source(text, args.file, given)
    if result.diagnostics:
        from vsc.compiler.diagnostics.render import render_text

        sys.stderr.write(render_text(result.diagnostics, {args.file: result.source}, use_color(sys.stderr)))
    if result.plan is None:
        return 1
    payload = EMITTERS[args.emit](result.plan)
    if args.output is None:
        print_payload(payload)
    else:
        write_file(args.output, payload)
    return 0
