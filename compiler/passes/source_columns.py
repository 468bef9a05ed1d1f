"""The columns that a source declares, its key, its event time, and which of its rows delete."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code
from vsc.compiler.expressions import Scope, ScopeInput, coerce, type_expression
from vsc.compiler.passes.columns import equal_names, value_type_problem
from vsc.compiler.passes.conditions import condition
from vsc.compiler.passes.keys import declared_key
from vsc.compiler.passes.shapes import Known, Shape, ShapeResult
from vsc.compiler.source import SourceFile
from vsc.plan import Column, Item, Schema, expressions
from vsc.plan.types import BIGINT, INT, SMALLINT, TIMESTAMP, TINYINT
from vsc.plan.words import article

__all__ = ["source_shape"]

_NO_TIME_YET = (
    "a record has no event time yet",
    "name a column; without a `timestamp` clause the record's own time is used",
)


def source_shape(known: Known, decl: syntax.SourceDecl) -> ShapeResult:
    """Declared columns, key, timestamp, delete when."""
    declared = [(column.name.text, column.name.span) for column in decl.columns]
    findings = [finding for finding, _ in equal_names(declared, "VSC201")]
    for column in decl.columns:
        if (problem := value_type_problem(column.type.type)) is not None:
            message = f"`{column.name.text}` cannot be {article(column.type.type)}: {problem}"
            findings.append(Finding("VSC215", column.type.span, message, (), "choose another type"))
    doubtful = bool(findings)
    key, wrong = declared_key(decl)
    findings.extend(wrong)
    columns = tuple(Column(column.name.text, column.type.type) for column in decl.columns)
    by_name = {column.name: column for column in columns}
    schema = Schema(tuple(by_name[n] for n in key), tuple(c for c in columns if c.name not in key))
    scope = Scope((ScopeInput(decl.name.text, 0, schema),), _NO_TIME_YET, doubt=known.doubt, functions=known.functions)
    timestamp = None
    if decl.timestamp is not None:
        timestamp, wrong = event_time(known.source, decl.timestamp, scope)
        findings.extend(wrong)
    deleted = None
    if decl.delete_when is not None:
        deleted, wrong = condition(known.source, "delete when", decl.delete_when, scope)
        findings.extend(wrong)
    if doubtful:
        return None, findings
    return Shape(schema, condition=deleted, timestamp=timestamp, columns=columns), findings


def event_time(source: SourceFile, expr: syntax.Expression, scope: Scope) -> tuple[Item | None, list[Finding]]:
    """The expression of a `timestamp` clause (VSC402)."""
    typed = type_expression(expr, scope)
    if typed.expr is None:
        return None, list(typed.findings)
    text, time_type = source.slice(expr.span), typed.expr.type
    if time_type in (TINYINT, SMALLINT, INT) and not isinstance(typed.expr, expressions.Literal):
        match expr:
            case syntax.Chain(part, (syntax.Link(op="*", operand=syntax.Literal()),)):
                pass
            case part:
                pass
        seconds = source.slice(part.span)
        message = f"event time must be a timestamp or a bigint of milliseconds, which {article(time_type)} cannot hold"
        form = f"timestamp cast({seconds} as bigint) * 1000"
        help = f"if {code(seconds)} is in seconds, write {code(form)}"
        return None, [Finding("VSC402", expr.span, message, (), help)]
    fitting = typed.expr if time_type == TIMESTAMP else coerce(typed.expr, BIGINT)
    if fitting is not None:
        return Item("timestamp", fitting, text), []
    message = f"event time must be a timestamp or a bigint of milliseconds, not {article(time_type)}"
    help = f"write {code(f'cast({text} as timestamp)')}, or choose another column"
    return None, [Finding("VSC402", expr.span, message, (), help)]
