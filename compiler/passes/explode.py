"""`explode`: its array, or the entries of its map, and the column of an element."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions import Scope, entries_of, type_expression
from vsc.compiler.passes.columns import beside
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Column, Explode, Item, Schema
from vsc.plan.types import ArrayType, MapType
from vsc.plan.words import article

__all__ = ["explode_shape"]


def explode_shape(known: Known, operation: syntax.Explode, schema: Schema, scope: Scope) -> ShapeResult:
    """The input's columns and the element, in place of a column of its name or after them."""
    typed = type_expression(operation.expr, scope)
    if typed.expr is None:
        return None, list(typed.findings)
    array = entries_of(typed.expr) if isinstance(typed.expr.type, MapType) else typed.expr
    if not isinstance(array.type, ArrayType):
        message = f"`explode` takes an array or a map, but this is {article(array.type)}"
        return None, [Finding("VSC217", operation.expr.span, message, (), "choose an array column")]
    name, element = operation.alias.text, array.type.element
    if name in {column.name for column in schema.key}:
        message = f"this would change the key column `{name}`"
        return None, [Finding("VSC208", operation.alias.span, message, (), "choose another name after `as`")]
    value = tuple(Column(name, element) if column.name == name else column for column in schema.value)
    if name not in {column.name for column in value}:
        value = (*value, Column(name, element))
    findings = beside((*schema.key, *value), [(name, operation.alias.span)])
    item = Item(name, array, known.source.slice(operation.expr.span))
    return Shape(Schema(schema.key, value), Explode(item)), findings
