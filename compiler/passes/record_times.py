"""A `map` whose event time is later than the record's own, whatever the record (VSC406).

A column that a source declares as its event time holds the record's own time, and so does `event_time()`. The pass
follows such columns from node to node, and asks how far an expression is at least ahead of them. It is careful rather
than complete: what it does not know is not ahead.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions.constants import Known, Outcomes
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.shapes import Shape, Shapes
from vsc.compiler.topology import Topology
from vsc.plan import Item, Map
from vsc.plan.expressions import Call, Column, Expr, Literal
from vsc.plan.types import INTERVAL
from vsc.plan.words import duration

__all__ = ["check_record_times"]

_Own = frozenset[str]
"""The columns that hold the record's own event time."""
_NONE: _Own = frozenset()


def check_record_times(topology: Topology, order: tuple[str, ...], kinds: Kinds, shapes: Shapes) -> Iterator[Finding]:
    """Event times that are always later than the record's own."""
    own: dict[str, _Own] = {}
    for name in (name for name in order if name in shapes):
        declaration, shape = topology.nodes[name], shapes[name]
        if isinstance(declaration, syntax.SourceDecl):
            given = None if shape.timestamp is None else shape.timestamp.expr
            own[name] = frozenset((given.name,)) if isinstance(given, Column) else _NONE
            continue
        operation = declaration.operation
        before = [own.get(read.name.text, _NONE) for read in operation.inputs]
        own[name] = _kept(operation, shape, before, kinds, shapes)
        if isinstance(operation, syntax.Map) and operation.timestamp is not None:
            yield from _ahead_of_record(name, operation, operation.timestamp, shape, before[0])


def _ahead_of_record(
    name: str, operation: syntax.Map, written: syntax.Expression, shape: Shape, own: _Own
) -> Iterator[Finding]:
    given = shape.operation.timestamp if isinstance(shape.operation, Map) else None
    ahead = None if given is None else _ahead(given.expr, own)
    if ahead is not None and ahead > 0:
        yield Finding(
            "VSC406", written.span,
            f"`{name}` would drop every record: this is at least {duration(ahead)} after the record's own event time",
            (), f"name a time that is not after {code('event_time()')}, or leave the {code('timestamp')} out and give "
            f"it as a column: {code(f'map {named(operation.input.name.text)} select ..., EXPR as NAME')}",
        )  # fmt: skip


def _kept(operation: syntax.Operation, shape: Shape, before: list[_Own], kinds: Kinds, shapes: Shapes) -> _Own:
    """The columns of the result that hold its records' own times."""
    value = frozenset(column.name for column in shape.schema.value)
    match operation:
        case syntax.Map(input=read):
            given = shape.operation.timestamp if isinstance(shape.operation, Map) else None
            items = shape.operation.items if isinstance(shape.operation, Map) else ()
            key = shapes[read.name.text].schema.key
            renamed = {new.name for old, new in zip(key, shape.schema.key, strict=True) if old.name in before[0]}
            if given is None or _is_own(given.expr, before[0]):
                return _own_items(items, before[0]) | renamed
            return frozenset(item.name for item in items if item.expr == given.expr)
        case syntax.Join(left=read) if kinds.get(read.name.text) == "stream" and operation.within is None:
            there = before[0]
            if shape.rekeyed is not None:
                there &= {column.name for column in shape.rekeyed[0].value}
            return _own_items(shape.items, there)
        case syntax.Explode():
            return before[0] - {name.text for name in operation.names}
        case syntax.Rekey():
            return before[0] & value
        case syntax.Merge():
            return frozenset.intersection(*before)
        case syntax.Join() | syntax.Aggregate() | syntax.Suppress():
            return _NONE
        case _:
            return before[0]


def _own_items(items: tuple[Item, ...], own: _Own) -> _Own:
    return frozenset(item.name for item in items if _is_own(item.expr, own))


def _is_own(expr: Expr, own: _Own) -> bool:
    match expr:
        case Column(0, name):
            return name in own
        case Call("event_time", ()):
            return True
        case _:
            return False


def _ahead(expr: Expr, own: _Own) -> int | None:
    """How far in ms the value is at least ahead of the record's own time; None if that is not known."""
    if _is_own(expr, own):
        return 0
    match expr:
        case Call("add" | "subtract" as function, (first, *others)):
            return _moved(first, tuple(others), 1 if function == "add" else -1, own)
        case Call("greatest", args):
            return max((found for arg in args if (found := _ahead(arg, own)) is not None), default=None)
        case Call("least", args):
            return _least(args, own)
        case Call("coalesce", (first, *_)):
            return _ahead(first, own)  # own times are never null
        case Call("case" | "if", args):
            return _least((*args[1::2], args[-1]), own)
        case _:
            return None


def _moved(first: Expr, others: tuple[Expr, ...], sign: int, own: _Own) -> int | None:
    """The sum (`sign` 1) or the difference of a time and constants."""
    terms = [(first, 1), *((other, sign) for other in others)]
    times = [(at, found) for at, (term, _) in enumerate(terms) if (found := _ahead(term, own)) is not None]
    if len(times) != 1 or terms[times[0][0]][1] < 0:
        return None
    place, total = times[0]
    for at, (term, its) in enumerate(terms):
        if at != place:
            if (constant := _constant(term)) is None:
                return None
            total += its * constant
    return total


def _constant(expr: Expr) -> int | None:
    if isinstance(expr, Literal) and expr.type == INTERVAL and isinstance(expr.value, int):
        return expr.value
    found = Outcomes().of(expr)
    value = found.value if isinstance(found, Known) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _least(args: tuple[Expr, ...], own: _Own) -> int | None:
    found = [_ahead(arg, own) for arg in args]
    return None if None in found else min(one for one in found if one is not None)
