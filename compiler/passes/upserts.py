"""Sinks of streams that replace rows by key (`mode = 'upsert'`): every record has to have one (VSC520)."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.topology import Topology
from vsc.plan.keyless import never_null

__all__ = ["check_upserts"]


def check_upserts(topology: Topology, kinds: Kinds, shapes: Shapes) -> tuple[Finding, ...]:
    """A finding for each upsert of a stream without a key, or with records that may have none (D26)."""
    return tuple(finding for sink in topology.sinks for finding in _of(topology, kinds, shapes, sink))


def _of(topology: Topology, kinds: Kinds, shapes: Shapes, sink: syntax.SinkDecl) -> Iterator[Finding]:
    name = sink.name.text
    mode = next((option.value for option in sink.connector.options if option.name.text == "mode"), None)
    shape = shapes.get(name)
    if mode is None or shape is None or kinds.get(name) != "stream" or getattr(mode, "value", None) == "append":
        return
    if not shape.schema.key:
        yield Finding(
            "VSC520", mode.span, f"the rows of {code(named(name))} have no key by which others could be replaced", (),
            "add `key COLUMN` to its source, or `rekey` it",
        )  # fmt: skip
        return
    join = _keeps_null(topology, kinds, shapes, name)
    if join is not None:
        yield Finding(
            "VSC520", mode.span, f"records of {code(named(name))} may have a null in their key, and no row is theirs",
            (Label(join.mode_span, "this join keeps records without a key"),),
            f"write a `rekey {name} by {', '.join(column.name for column in shape.schema.key)}` before the sink, which "
            "drops and counts them; or give the key of the join a value with `coalesce`",
        )  # fmt: skip


def _keeps_null(topology: Topology, kinds: Kinds, shapes: Shapes, name: str) -> syntax.Join | None:
    """The join because of which a record of a stream may have a null in its key."""
    declaration = topology.nodes.get(name)
    if not isinstance(declaration, syntax.DerivedDecl) or name not in shapes:
        return None
    operation = declaration.operation
    match operation:
        case syntax.Join(left=left, right=right) if kinds.get(right.name.text) == "global table":
            return _keeps_null(topology, kinds, shapes, left.name.text)
        case syntax.Join(mode="left", left=left, within=None):
            new_key = shapes[name].rekeyed
            if new_key is None:
                return _keeps_null(topology, kinds, shapes, left.name.text)
            there = {column.name for column in shapes[left.name.text].schema.key}
            return None if all(never_null(item.expr, there) for item in new_key[1]) else operation
        case syntax.Filter() | syntax.Map() | syntax.Explode() | syntax.Merge() | syntax.Distinct():
            found = (_keeps_null(topology, kinds, shapes, one.name.text) for one in operation.inputs)
            return next(filter(None, found), None)
        case _:
            return None
