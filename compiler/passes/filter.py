"""`filter`: its condition."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.conditions import condition
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Filter, Schema

__all__ = ["filter_shape"]


def filter_shape(known: Known, operation: syntax.Filter, schema: Schema, scope: Scope) -> ShapeResult:
    """The input's own columns."""
    predicate, findings = condition(known.source, "where", operation.predicate, scope)
    return Shape(schema, None if predicate is None else Filter(predicate)), findings
