"""`map`: its items, and the event time that it gives."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.items import ItemRules, select, visible
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.compiler.passes.source_columns import event_time
from vsc.plan import Map, Schema

__all__ = ["map_shape"]


def map_shape(known: Known, operation: syntax.Map, schema: Schema, scope: Scope) -> ShapeResult:
    """The input's key, which an item may rename but not change, and the items."""
    name = visible(operation.input)
    stream = known.is_stream(operation.input)
    change = "give the new column another name"
    if stream:
        rekey = f"rekey {named(operation.input.name.text)} by ..."
        change += f", or give the stream another key: {code(rekey)}"
    own = frozenset((name, column.name) for column in schema.key)
    rules = ItemRules(schema.key, own, ((name, schema.value),), change, known.bounds(operation.input))
    found, time = select(known.source, operation.items, scope, rules), None
    findings = list(found.findings)
    if operation.timestamp is not None and stream:
        time, wrong = event_time(known.source, operation.timestamp, scope)
        findings += wrong
        if time is None:
            return None, findings
    return None if found.schema is None else Shape(found.schema, Map(found.items, time)), findings
