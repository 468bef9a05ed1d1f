"""Texts without quotes where a function takes a unit, a pattern or a zone: ``hour(at, Europe/Berlin)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Fix
from vsc.compiler.diagnostics.wording import code
from vsc.plan.functions import FUNCTIONS, TRUNCATION_UNITS, parse_pattern

__all__ = ["unquoted"]


def unquoted(call: syntax.FunctionCall, is_known: Callable[[str], bool]) -> Finding | None:
    """What is wrong with the first such argument of a call. `is_known`: whether a column or an input has this name."""
    for place, kind, read in _readers(call.name.text):
        arg = call.args[place] if place < len(call.args) else None
        if arg is not None and (written := _text(arg, is_known)) and (text := read(written)) is not None:
            message = f"the {kind} of {code(call.name.text)} is a text"
            return Finding("VSC225", arg.span, message, (), f"write `'{text}'`", Fix(arg.span, f"'{text}'"))
    return None


@cache
def _readers(function: str) -> tuple[tuple[int, str, Callable[[str], str | None]], ...]:
    """The places of such arguments in the calls of a function, what each is, and what reads it."""
    parameters = enumerate(FUNCTIONS[function].parameters)
    return tuple((place, name.strip("'"), _READS[name]) for place, name in parameters if name in _READS)


def _text(expr: syntax.Expression, is_known: Callable[[str], bool]) -> str | None:
    """The text that is read as names and operators; None if one of the names means something."""
    match expr:
        case syntax.ColumnRef(parts=parts) if not is_known(parts[0].text):
            return ".".join(part.text for part in parts)
        case syntax.Chain(first=first, rest=rest):
            texts = [_text(first, is_known)]
            for link in rest:
                texts += [link.op, _text(link.operand, is_known)]
            known = [text for text in texts if text is not None]
            return "".join(known) if len(known) == len(texts) else None
    return None


def _unit(text: str) -> str | None:
    return text.lower() if text.lower() in TRUNCATION_UNITS else None


def _pattern(text: str) -> str | None:
    try:
        parse_pattern(text, writes=True)
    except ValueError:
        return None
    return text


def _zone(text: str) -> str | None:
    from zoneinfo import available_timezones  # slow, and only needed for a mistake

    return text if text in available_timezones() else None


_READS: Final[Mapping[str, Callable[[str], str | None]]] = {"'unit'": _unit, "'pattern'": _pattern, "zone": _zone}
