"""The columns of every node: their names and types, and the typed expressions that they are computed by.

Each node's facts follow from those of its inputs; a node whose inputs are wrong has none, and nothing is reported about
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.aggregates import aggregate_shape
from vsc.compiler.passes.distinct import distinct_shape
from vsc.compiler.passes.explode import explode_shape
from vsc.compiler.passes.filter import filter_shape
from vsc.compiler.passes.items import scope_input
from vsc.compiler.passes.joins import join_shape
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.map import map_shape
from vsc.compiler.passes.merge import merge_shape
from vsc.compiler.passes.rekey import rekey_shape
from vsc.compiler.passes.reorder import reorder_shape
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult, Shapes
from vsc.compiler.passes.source_columns import source_shape
from vsc.compiler.passes.to_table import to_table_shape
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import SourceFile
from vsc.compiler.topology import Topology
from vsc.plan import Materialize, Schema, ToStream

__all__ = ["check_schemas"]


def check_schemas(
    source: SourceFile, topology: Topology, order: tuple[str, ...], kinds: Kinds, windows: Windows
) -> tuple[Shapes, tuple[Finding, ...]]:
    """The shape of every node of `order` that has one, and what is wrong with columns, keys and expressions."""
    findings: list[Finding] = []
    known = Known(source, kinds, windows, {}, findings.append, topology.functions)
    for name in order:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            shape, wrong = source_shape(known, declaration)
        else:
            shape, wrong = _derived(known, declaration.operation)
        findings.extend(wrong)
        if shape is not None:
            known.shapes[name] = shape
    return known.shapes, tuple(findings)


def _derived(known: Known, operation: syntax.Operation) -> ShapeResult:
    """The shape of an operation's result; None without a finding if an input has no shape."""
    first = known.shapes.get(operation.inputs[0].name.text)
    if first is None:
        return None, []
    inputs = (scope_input(operation.inputs[0], 0, first.schema),)
    scope = Scope(inputs, doubt=known.doubt, functions=known.functions, nodes=known.kinds)
    return _SHAPES[type(operation)](known, operation, first.schema, scope)


_SHAPES: dict[type, Callable[[Known, Any, Schema, Scope], ShapeResult]] = {
    syntax.Aggregate: aggregate_shape,
    syntax.Distinct: distinct_shape,
    syntax.Explode: explode_shape,
    syntax.Filter: filter_shape,
    syntax.Join: join_shape,
    syntax.Map: map_shape,
    syntax.Materialize: lambda known, operation, schema, scope: (Shape(schema, Materialize()), []),
    syntax.Merge: merge_shape,
    syntax.Rekey: rekey_shape,
    syntax.Reorder: reorder_shape,
    syntax.Suppress: lambda known, operation, schema, scope: (Shape(schema), []),
    syntax.ToStream: lambda known, operation, schema, scope: (Shape(schema, ToStream()), []),
    syntax.ToTable: to_table_shape,
}
"""The shape of a statement's result, given the schema of its first input and the scope of its expressions."""
