"""What a value depends on: columns of sources, and what became of each on its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal as Choice
from typing import NamedTuple

from vsc.plan.expressions import Call, Column, Expr, inside
from vsc.plan.record import record

__all__ = ["NONE", "Field", "Inputs", "Scope", "Transformation", "because", "merged", "of_expression", "through"]

_SUBTYPES = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
"""Of what is direct; the later one says more."""
_HASHES = ("md5", "sha2", "xxhash64")


class Field(NamedTuple):
    """A column of a source, by the names of both."""

    source: str
    column: str


class Transformation(NamedTuple):
    """What became of an input, in OpenLineage's words.

    ``DIRECT``: the value was made of it (``IDENTITY``: it is the value, ``TRANSFORMATION``, ``AGGREGATION``).
    ``INDIRECT``: it decided about the value (``CONDITIONAL``), or about which rows there are (``JOIN``, ``GROUP_BY``,
    ``FILTER``, ``SORT``, ``WINDOW``). `masking`: the value does not show it, as a hash does not.
    """

    type: Choice["DIRECT", "INDIRECT"]
    subtype: str
    masking: bool = False


Inputs = Mapping[Field, frozenset[Transformation]]

NONE: Inputs = {}


@record
class Scope:
    """What an expression sees of an input: what each column depends on, and the event time."""

    columns: Mapping[str, Inputs]
    time: Inputs


def merged(*parts: Inputs) -> Inputs:
    """What depends on all of them."""
    found: dict[Field, frozenset[Transformation]] = {}
    for part in parts:
        for field, transformations in part.items():
            found[field] = found.get(field, frozenset()) | transformations
    return found


def through(inputs: Inputs, subtype: str, masking: bool = False) -> Inputs:
    """What is made of a value that depends on `inputs`."""

    def further(was: Transformation) -> Transformation:
        if was.type == "INDIRECT":
            return was
        return Transformation("DIRECT", max(was.subtype, subtype, key=_SUBTYPES.index), was.masking or masking)

    return {field: frozenset(map(further, was)) for field, was in inputs.items()}


def because(inputs: Inputs, subtype: str) -> Inputs:
    """What is decided by a value that depends on `inputs`."""
    return dict.fromkeys(inputs, frozenset((Transformation("INDIRECT", subtype),)))


def of_expression(expr: Expr, scopes: Sequence[Scope]) -> Inputs:
    """What `expr` depends on, which sees `scopes`, input by input."""
    found = []
    for leaf, use in _leaves(expr):
        inputs = scopes[leaf.input].columns[leaf.name] if isinstance(leaf, Column) else scopes[_number(leaf)].time
        if use == "condition":
            found.append(because(inputs, "CONDITIONAL"))
        else:
            found.append(inputs if leaf is expr else through(inputs, "TRANSFORMATION", use == "hash"))
    return merged(*found)


_Use = Choice["value", "hash", "condition"]


def _leaves(expr: Expr) -> Iterator[tuple[Column | Call, _Use]]:
    """The columns and event times in an expression, with how each is used. Not recursive: it may be nested deeply."""
    waiting: list[tuple[Expr, _Use]] = [(expr, "value")]
    while waiting:
        part, use = waiting.pop()
        if isinstance(part, Column) or (isinstance(part, Call) and part.function == "event_time"):
            yield part, use
            continue
        inner: _Use = "hash" if isinstance(part, Call) and part.function in _HASHES and use == "value" else use
        values, conditions = _uses(part)
        waiting += ((one, inner) for one in values)
        waiting += ((one, "condition") for one in conditions)


def _uses(expr: Expr) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """The parts that an expression's value is made of, and those that decide about it."""
    match expr:
        case Call("case", args):
            return (*args[1:-1:2], args[-1]), args[:-1:2]
        case Call("if", args):
            return args[1:], args[:1]
        case Call("coalesce", args):
            return args, args[:-1]
        case Call("filter", args):
            return args[:1], args[1:]
        case _:
            return inside(expr), ()


def _number(event_time: Expr) -> int:
    """The input whose event time a call asks for."""
    [number] = [getattr(one, "value", 0) for one in inside(event_time)] or [0]
    return int(number)
