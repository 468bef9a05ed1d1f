"""``vsc explain``: the page of a diagnostic code."""

from __future__ import annotations

import argparse
import re

from vsc.cli.common import print_payload
from vsc.cli.errors import UsageError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("code", metavar="CODE", help="a code such as VSC303")


def execute(args: argparse.Namespace) -> int:
    """Prints the page."""
    from vsc.compiler.diagnostics.codes import CODES
    from vsc.compiler.diagnostics.page import read_page
    from vsc.compiler.diagnostics.suggest import nearest

    digits = re.fullmatch(r"(?:vsc)?([0-9]{3})", args.code, re.IGNORECASE)
    code = f"VSC{digits.group(1)}" if digits else args.code.upper()
    if code not in CODES:
        near = nearest(code, CODES)
        raise UsageError(f"there is no code {args.code}", f"did you mean {near}?" if near else None)
    print_payload(read_page(code))
    return 0
