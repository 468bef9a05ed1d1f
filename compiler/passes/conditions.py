"""The conditions of clauses: `where` and `delete when`."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions import Scope, coerce, type_expression, unmet
from vsc.compiler.source import SourceFile
from vsc.plan import Item
from vsc.plan.types import BOOLEAN
from vsc.plan.words import article

__all__ = ["condition"]


def condition(
    source: SourceFile, name: str, expr: syntax.Expression, scope: Scope
) -> tuple[Item | None, list[Finding]]:
    """The condition of a clause called `name`, or what is wrong with it."""
    typed = type_expression(expr, scope)
    if typed.expr is None:
        return None, list(typed.findings)
    for doubt in unmet(expr):
        scope.doubt(doubt)
    fitting = coerce(typed.expr, BOOLEAN)
    if fitting is None:
        message = f"`{name}` takes a boolean, but this is {article(typed.expr.type)}"
        return None, [Finding("VSC214", expr.span, message, (), "write a comparison, like `a > 0`")]
    return Item(name, fitting, source.slice(expr.span)), []
