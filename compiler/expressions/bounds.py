"""How large an expression may be, so that code which walks it, here and later, may recurse."""

from __future__ import annotations

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.plan.expressions import Call, Expr, inside

__all__ = ["parts_of", "too_big", "too_nested"]

_MAX_DEPTH = 100
"""How deep expressions may be nested. A chain of operators of the same precedence counts once, however long it is."""

_MAX_PLAN_DEPTH = 3 * _MAX_DEPTH
"""How deep a plan expression may be, so that code that walks it may recurse. A call counts as two levels, as in the
plan's JSON, and a cast as one. In a chain, each change of operator (``a + b - c``) is a separate call."""

_MAX_SIZE = 100_000
"""How many parts a plan expression may have. Parts that ``between`` and ``case x when`` repeat count each time."""

_IN_PARTS = "compute parts of it in an earlier `map`"


def too_nested(expr: syntax.Expression) -> Finding | None:
    """What is wrong with how deeply an expression is nested as it is written."""
    if _depth(expr) <= _MAX_DEPTH:
        return None
    return _finding(expr, "the expression is nested too deeply", f"nest at most {_MAX_DEPTH} levels deep: {_IN_PARTS}")


def too_big(expr: syntax.Expression, typed: Expr) -> Finding | None:
    """What is wrong with the size or the depth of the plan of an expression."""
    size, depth = _measures(typed)
    if size > _MAX_SIZE:
        message = f"the expression has more than {_MAX_SIZE:,} parts, once `between` and `case` are written out"
        return _finding(expr, message, _IN_PARTS)
    if depth > _MAX_PLAN_DEPTH:
        return _finding(expr, "too many calculations in a row each need the result of the one before", _IN_PARTS)
    return None


def _finding(expr: syntax.Expression, message: str, help: str) -> Finding:
    return Finding("VSC228", expr.span, message, (), help)


def parts_of(expr: syntax.Expression | syntax.When | syntax.Link) -> list[syntax.Expression]:
    """The expressions that stand directly in `expr`."""
    parts: list[syntax.Expression] = []
    for name in expr.__match_args__:
        value = getattr(expr, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, syntax.When | syntax.Link):
                parts += parts_of(part)
            elif isinstance(part, syntax.Expression):
                parts.append(part)
    return parts


def _depth(root: syntax.Expression) -> int:
    """The depth of the deepest nesting, found without recursion. Stops counting just above `_MAX_DEPTH`.

    The value of a constant is one object wherever the constant stands: it is looked into again only where it is deeper.
    """
    deepest, open_parts = 0, [(root, 1)]
    seen: dict[int, int] = {}
    while open_parts:
        expr, depth = open_parts.pop()
        if seen.get(id(expr), 0) >= depth:
            continue
        seen[id(expr)] = depth
        deepest = max(deepest, depth)
        if deepest > _MAX_DEPTH:
            break
        open_parts += [(part, depth + 1) for part in parts_of(expr)]
    return deepest


def _measures(root: Expr) -> tuple[int, int]:
    """How many parts the expression has, counting a repeated part each time, and how deep it is."""
    known: dict[int, tuple[int, int]] = {}
    waiting = [root]
    while waiting:
        expr = waiting[-1]
        parts = inside(expr)
        measured = [known.get(id(part)) for part in parts]
        unknown = [part for part, found in zip(parts, measured, strict=True) if found is None]
        if unknown:
            waiting += unknown
            continue
        found = [measures for measures in measured if measures is not None]
        step = 2 if isinstance(expr, Call) else 1
        known[id(expr)] = 1 + sum(size for size, _ in found), step + max((depth for _, depth in found), default=0)
        waiting.pop()
    return known[id(root)]
