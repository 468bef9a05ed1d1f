"""Keys that are null where a left join found nothing: what needs a key drops such records (VSC345)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import LENIENT
from vsc.compiler.passes.shapes import Shape, Shapes
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan import Filter, Item, Map, Rekey
from vsc.plan.expressions import Call, Cast, Column, Expr, parts

__all__ = ["check_nulls"]

Nulls = Mapping[str, syntax.Join]
"""The columns of a node that are null where a join found nothing, each with that join."""
Seen = Callable[[str], syntax.Join | None]
"""The join that makes a column of an input null, by the name that an expression has for it."""


def check_nulls(topology: Topology, order: tuple[str, ...], shapes: Shapes) -> tuple[Finding, ...]:
    """A warning for each key by which records are dropped for which a left join found nothing."""
    known: dict[str, Nulls] = {}
    findings: list[Finding] = []
    for name in order:
        declaration, shape = topology.nodes[name], shapes.get(name)
        if isinstance(declaration, syntax.SourceDecl) or shape is None:
            continue
        operation = declaration.operation
        read = [known.get(one.name.text, {}) for one in operation.inputs]
        findings.extend(_dropped(operation, shape, [one.get for one in read]))
        known[name] = _nulls(operation, shape, read)
    return tuple(findings)


def _dropped(operation: syntax.Operation, shape: Shape, read: Sequence[Seen]) -> Iterator[Finding]:
    """The keys of an operation that drop the records on which they are null."""
    match operation:
        case syntax.Join(mode="inner", on=on):
            items = shape.on or (shape.rekeyed[1] if shape.rekeyed is not None else ())
            yield from _keys(items, [part.span for part in on], read)
        case syntax.Aggregate(group=group):
            yield from _keys(shape.group, [part.span for part in group], read)
        case syntax.Distinct(by=by) if shape.rekeyed is not None:
            yield from _keys(shape.rekeyed[1], [part.span for part in by], read)
        case _:
            return


def _keys(items: Sequence[Item], places: Sequence[Span], read: Sequence[Seen]) -> Iterator[Finding]:
    for item, place in zip(items, places, strict=False):
        join = _origin(item.expr, read)
        if join is not None:
            table = code(named(join.right.name.text))
            yield Finding(
                "VSC345", place, f"this is null where a join found no row of {table}: those records are dropped here",
                (Label(join.mode_span, "this join keeps the records without a row"),),
                "give it a value with `coalesce`, or filter out the records without one before",
            )  # fmt: skip


def _nulls(operation: syntax.Operation, shape: Shape, read: Sequence[Nulls]) -> Nulls:
    """The columns of the result that are null where a join found nothing."""
    seen: list[Seen] = [one.get for one in read]
    match operation, shape.operation:
        case syntax.Aggregate(), _:
            return {}
        case _, Filter(predicate):  # whatever it asks about a column, it has been thought of
            asked = {part.name for part in parts(predicate.expr) if isinstance(part, Column)}
            return {name: join for name, join in read[0].items() if name not in asked}
        case _, Map(items):
            return _of_items(items, seen)
        case _, Rekey(items):
            return {**read[0], **_of_items(items, seen)}
        case syntax.Join(mode=mode), _:

            def missing(name: str) -> syntax.Join:
                return operation

            left = missing if mode == "outer" else seen[0]
            return _of_items(shape.items, [left, seen[1] if mode == "inner" else missing])
        case _:
            return {name: join for one in read for name, join in one.items()}


def _of_items(items: Sequence[Item], read: Sequence[Seen]) -> Nulls:
    found = ((item.name, _origin(item.expr, read)) for item in items)
    return {name: join for name, join in found if join is not None}


def _origin(expr: Expr, read: Sequence[Seen]) -> syntax.Join | None:
    """The join that makes `expr` null where it found nothing."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Column) and part.input < len(read) and (join := read[part.input](part.name)) is not None:
            return join
        if isinstance(part, Cast):
            waiting.append(part.arg)
        elif isinstance(part, Call) and part.function not in LENIENT and not part.is_own:
            waiting.extend(part.args)
    return None
