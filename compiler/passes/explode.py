"""`explode`: its array, or the entries of its map, and the columns of an element and of its position.

Of a table, the position is a key column: behind those of the table, and before the bounds of its window.
"""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions import Scope, entries_of, type_expression
from vsc.compiler.passes.columns import beside
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Column, Explode, Item, Schema
from vsc.plan.types import INT, ArrayType, MapType
from vsc.plan.words import article

__all__ = ["explode_shape"]


def explode_shape(known: Known, operation: syntax.Explode, schema: Schema, scope: Scope) -> ShapeResult:
    """The input's columns, the position and the element, in place of columns of their names or after them."""
    typed = type_expression(operation.expr, scope)
    if typed.expr is None:
        return None, list(typed.findings)
    array = entries_of(typed.expr) if isinstance(typed.expr.type, MapType) else typed.expr
    if not isinstance(array.type, ArrayType):
        message = f"`explode` takes an array or a map, but this is {article(array.type)}"
        return None, [Finding("VSC217", operation.expr.span, message, (), "choose an array column")]
    value = {column.name: column.type for column in schema.value}
    for name in operation.names:
        if name.text in {column.name for column in schema.key}:
            message = f"this would change the key column `{name.text}`"
            return None, [Finding("VSC208", name.span, message, (), "choose another name after `as`")]
        value[name.text] = INT if name is operation.position else array.type.element
    key = schema.key
    if operation.position is not None and not known.is_stream(operation.input):
        key = _with_position(key, Column(operation.position.text, value.pop(operation.position.text)), known, operation)
    found = Schema(key, tuple(Column(name, type) for name, type in value.items()))
    findings = beside((*found.key, *found.value), [(name.text, name.span) for name in operation.names])
    item = Item(operation.alias.text, array, known.source.slice(operation.expr.span))
    position = None if operation.position is None else operation.position.text
    return Shape(found, Explode(item, position)), findings


def _with_position(
    key: tuple[Column, ...], position: Column, known: Known, operation: syntax.Explode
) -> tuple[Column, ...]:
    """A table's key with the position of an element."""
    bounds = known.bounds(operation.input)
    own = tuple(column for column in key if column.name not in bounds)
    return (*own, position, *key[len(own) :])
