"""``vsc explain``: the page of a diagnostic code, or all codes with their titles."""

from __future__ import annotations

import argparse
import re

from vsc.cli.common import print_payload
from vsc.cli.errors import UsageError

__all__ = ["add_arguments", "execute"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("code", metavar="CODE", nargs="?", help="a code such as VSC303 or 303 (default: list all)")


def execute(args: argparse.Namespace) -> int:
    """Prints the page, or the list."""
    from vsc.compiler.diagnostics.codes import CODES

    if args.code is None:
        print_payload("".join(f"{code}  {found.severity:7}  {found.title}\n" for code, found in sorted(CODES.items())))
    else:
        print_payload(_page(args.code))
    return 0


def _page(written: str) -> str:
    from vsc.compiler.diagnostics.codes import CODES
    from vsc.compiler.diagnostics.page import read_page
    from vsc.compiler.diagnostics.suggest import nearest

    digits = re.fullmatch(r"(?:vsc)?[ -]?([0-9]{1,3})", written, re.IGNORECASE)
    code = f"VSC{digits.group(1):0>3}" if digits else written.upper()
    if code not in CODES:
        near = nearest(code, CODES)
        all_codes = "`vsc explain` lists all codes"
        raise UsageError(f"there is no code {written}", f"did you mean {near}? {all_codes}" if near else all_codes)
    return read_page(code)
