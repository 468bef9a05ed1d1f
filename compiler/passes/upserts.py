"""Sinks of streams that replace rows by key (`mode = 'upsert'`): every record has to have one (VSC520)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.shapes import Shape, Shapes
from vsc.compiler.source import Span
from vsc.compiler.topology import Topology
from vsc.plan.keyless import never_null

__all__ = ["check_upserts"]

Keeping = Sequence[syntax.Join | None]
"""For each key column of a stream the join because of which it may be null."""


def check_upserts(topology: Topology, order: tuple[str, ...], kinds: Kinds, shapes: Shapes) -> tuple[Finding, ...]:
    """A finding for each upsert of a stream without a key, or with records that may have none (D26)."""
    upserts = [
        (sink.name.text, option.value.span)
        for sink in topology.sinks
        for option in sink.connector.options
        if option.name.text == "mode" and getattr(option.value, "value", None) != "append"
    ]
    known = _known(topology, order, kinds, shapes) if upserts else {}
    return tuple(
        finding
        for name, place in upserts
        if kinds.get(name) == "stream" and name in known
        for finding in _problems(name, place, shapes[name], known[name])
    )


def _problems(name: str, place: Span, shape: Shape, keeping: Keeping) -> Iterator[Finding]:
    if not shape.schema.key:
        yield Finding(
            "VSC520", place, f"the rows of {code(named(name))} have no key by which others could be replaced", (),
            "add `key COLUMN` to its source, or `rekey` it",
        )  # fmt: skip
    for join in [one for one in keeping if one is not None][:1]:
        yield Finding(
            "VSC520", place, f"records of {code(named(name))} may have a null in their key, and no row is theirs",
            (Label(join.mode_span, "this join keeps records without a key"),),
            f"write a `rekey {name} by {', '.join(column.name for column in shape.schema.key)}` before the sink, which "
            "drops and counts them; or give the key of the join a value with `coalesce`",
        )  # fmt: skip


def _known(topology: Topology, order: tuple[str, ...], kinds: Kinds, shapes: Shapes) -> Mapping[str, Keeping]:
    """Of each node that has a shape, as `nullable_keys` tells it of a plan, which `vsc check` does not make."""
    known: dict[str, Keeping] = {}
    for name in order:
        declaration, shape = topology.nodes[name], shapes.get(name)
        if shape is not None:
            operation = declaration.operation if isinstance(declaration, syntax.DerivedDecl) else None
            known[name] = _keeping(operation, kinds, shape, shapes, known)
    return known


def _keeping(
    operation: syntax.Operation | None, kinds: Kinds, shape: Shape, shapes: Shapes, known: Mapping[str, Keeping]
) -> Keeping:
    match operation:
        case syntax.Join(left=left, right=right) if kinds.get(right.name.text) == "global table":
            return known[left.name.text]
        case syntax.Join(mode="left", left=left, within=None):
            if shape.rekeyed is None:
                return known[left.name.text]
            key = zip(shapes[left.name.text].schema.key, known[left.name.text], strict=True)
            there = {column.name for column, join in key if join is None}
            return [None if never_null(item.expr, there) else operation for item in shape.rekeyed[1]]
        case syntax.Distinct() if shape.rekeyed is None:
            return [None] * len(shape.schema.key)  # by its own key: it drops them
        case syntax.Filter() | syntax.Map() | syntax.Explode() | syntax.Merge() | syntax.Distinct():
            own = [None] * len(shape.schema.key)
            others = (known.get(read.name.text, ()) for read in operation.inputs)
            keys = zip(own, *(key for key in others if len(key) == len(own)), strict=True)  # a wrong one is reported
            return [next(filter(None, one), None) for one in keys]
        case _:
            return [None] * len(shape.schema.key)
