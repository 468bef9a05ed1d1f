"""`to_table`: its key, and which records delete."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope
from vsc.compiler.passes.conditions import condition
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.plan import Schema, ToTable

__all__ = ["to_table_shape"]


def to_table_shape(known: Known, operation: syntax.ToTable, schema: Schema, scope: Scope) -> ShapeResult:
    """The stream's own columns; it must have a key."""
    findings: list[Finding] = []
    deleted = None
    if operation.delete_when is not None:
        deleted, findings = condition(known.source, "delete when", operation.delete_when, scope)
    if not schema.key:
        name = operation.input.name.text
        findings.append(
            Finding("VSC210", operation.input.span, f"`{name}` has no key, and a table needs one", (),
                    f"declare it with `key COLUMN`, or give it one: {code(f'rekey {named(name)} by ...')}")
        )  # fmt: skip
        return None, findings
    return Shape(schema, ToTable(deleted)), findings
