"""`distinct`: what tells its records apart, and how long they are remembered."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.expressions import Scope, type_expression
from vsc.compiler.passes.columns import key_type_problem
from vsc.compiler.passes.keys import is_key, under_key
from vsc.compiler.passes.options import too_long
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.compiler.source import SourceFile
from vsc.plan import Item, Schema
from vsc.plan.operations import Distinct
from vsc.plan.words import article

__all__ = ["distinct_shape"]


def distinct_shape(known: Known, operation: syntax.Distinct, schema: Schema, scope: Scope) -> ShapeResult:
    """The stream's own columns and key; with `by`, `rekeyed` is the stream under the key of these values."""
    findings = _lengths(operation)
    by, wrong = _values(known.source, operation, scope)
    findings.extend(wrong)
    if not operation.by and not schema.key:
        name = operation.input.name.text
        message = f"`{name}` has no key to tell its records apart by"
        help = f"say what tells them apart: {code(f'distinct {named(name)} by EXPR within ...')}"
        findings.append(Finding("VSC210", operation.input.span, message, (), help))
    if findings:
        return None, findings
    grace = 0
    if operation.grace is not None:
        assert isinstance(operation.grace.duration, syntax.Duration)
        grace = operation.grace.duration.milliseconds
    rekeyed = None
    if by and not is_key(by, schema):
        rekeyed = under_key(schema, by)
    distinct = Distinct(operation.within.milliseconds, grace, rekeyed is not None)
    return Shape(schema, distinct, rekeyed=rekeyed), []


def _lengths(operation: syntax.Distinct) -> list[Finding]:
    if operation.within.milliseconds < 1:
        message = "records can only be remembered for a time above zero"
        return [Finding("VSC125", operation.within.span, message, (), "make `within` at least one millisecond")]
    lengths = [operation.within, *([operation.grace.duration] if operation.grace is not None else [])]
    return [finding for length in lengths if (finding := too_long(length, "VSC125")) is not None]


def _values(source: SourceFile, operation: syntax.Distinct, scope: Scope) -> tuple[tuple[Item, ...], list[Finding]]:
    items: list[Item] = []
    findings: list[Finding] = []
    for number, expr in enumerate(operation.by):
        typed = type_expression(expr, scope)
        findings.extend(typed.findings)
        if typed.expr is None:
            continue
        if (problem := key_type_problem(typed.expr.type)) is not None:
            message = f"{article(typed.expr.type)} cannot tell records apart: {problem}"
            findings.append(Finding("VSC205", expr.span, message, (), "choose another expression"))
        items.append(Item(f"by#{number}", typed.expr, source.slice(expr.span)))
    return tuple(items), findings
