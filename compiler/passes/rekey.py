"""`rekey`: the new key."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.columns import beside
from vsc.compiler.passes.keys import new_key
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Column, Rekey, Schema

__all__ = ["rekey_shape"]


def rekey_shape(known: Known, operation: syntax.Rekey, schema: Schema, scope: Scope) -> ShapeResult:
    """The new key, and all other columns of the input."""
    items, findings = new_key(known.source, operation.keys, scope)
    if findings:
        return None, findings
    key = tuple(Column(item.name, item.expr.type) for item in items)
    names = {column.name for column in key}
    value = tuple(column for column in (*schema.key, *schema.value) if column.name not in names)
    places = [(item.name, part.span) for item, part in zip(items, operation.keys, strict=True)]
    return Shape(Schema(key, value), Rekey(items)), beside(value, places)
