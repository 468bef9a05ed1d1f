"""Rules for the columns of one schema, declared or computed: distinct names, types that can be stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.source import Span
from vsc.plan import Column
from vsc.plan.types import DOUBLE, FLOAT, INTERVAL, VOID, ArrayType, DataType, MapType, types_in

__all__ = ["beside", "equal_names", "key_type_problem", "value_type_problem"]


def equal_names(names: Sequence[tuple[str, Span | None]], twice: str) -> Iterator[tuple[Finding, int]]:
    """A finding for every name that repeats an earlier one, exactly (code `twice`) or except for its case (VSC202).

    With each comes the position of the later one. A name without a place is a column that the statement does not name
    itself: the finding is at the name that repeats it.
    """
    seen: dict[str, int] = {}
    for index, (name, span) in enumerate(names):
        first = seen.setdefault(name.lower(), index)
        if first == index or span is None:
            continue
        earlier, place = names[first]
        label = (Label(place, f"`{earlier}` is here"),) if place not in (span, None) else ()
        if earlier == name:
            yield Finding(twice, span, f"there are two columns `{name}`", label, "give one of them another name"), index
        else:
            message = f"`{name}` and `{earlier}` differ only in case"
            yield Finding("VSC202", span, message, label, "give one of them another name"), index


def beside(columns: Iterable[Column], named: Sequence[tuple[str, Span]]) -> list[Finding]:
    """What is wrong with the columns that a statement names, given all other columns of the result."""
    new = {name for name, _ in named}
    others: list[tuple[str, Span | None]] = [(column.name, None) for column in columns if column.name not in new]
    return [finding for finding, _ in equal_names([*others, *named], "VSC203")]


def key_type_problem(type_: DataType) -> str | None:
    """Why a column of this type cannot be part of a key; None if it can."""
    for part in types_in(type_):
        if part in (FLOAT, DOUBLE):
            return "floating-point numbers are not compared exactly"
        if isinstance(part, ArrayType | MapType):
            return f"{'arrays' if isinstance(part, ArrayType) else 'maps'} cannot be compared as keys"
    return value_type_problem(type_)


def value_type_problem(type_: DataType) -> str | None:
    """Why a column cannot have this type; None if it can."""
    for part in types_in(type_):
        if part == VOID:
            return "a bare `null` has no type"
        if part == INTERVAL:
            return "a duration cannot be stored in a column"
    return None
