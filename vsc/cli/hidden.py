"""The command line without the values in it (``--var NAME=VALUE``, ``--conf KEY=VALUE``), which may be secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["HIDDEN", "values_in", "without_values"]

HIDDEN = "..."
"""What stands in the place of a value."""

_PAIR = re.compile(r"\A(--[^=]*=[^=]*=|(?!--)[^=]*=)(.*)", re.DOTALL)


def without_values(arguments: Iterable[str]) -> str:
    """The arguments as one line."""
    return " ".join(_PAIR.sub(rf"\1{HIDDEN}", argument) for argument in arguments)


def values_in(arguments: Iterable[str]) -> Iterator[str]:
    """The values that `without_values` leaves out, except empty ones."""
    return (match[2] for argument in arguments if (match := _PAIR.fullmatch(argument)) is not None and match[2])
