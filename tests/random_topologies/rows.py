"""Random rows of every type that `expressions` knows, two columns of each, and random expressions over them."""

from __future__ import annotations

import random
from typing import Any

from tests.random_topologies.expressions import TYPES, Scope, expression
from tests.random_topologies.records import Values
from vsc.compiler.expressions import Scope as Typing
from vsc.compiler.expressions import ScopeInput, type_expression
from vsc.compiler.parser import parse_expression
from vsc.plan.expressions import Expr
from vsc.plan.nodes import Column, Schema
from vsc.plan.types import parse_type
from vsc.runtime.values import from_python

__all__ = ["SCHEMA", "random_expressions", "random_rows"]

SCHEMA = Schema((), tuple(Column(f"{side}{i}", parse_type(t)) for i, t in enumerate(TYPES) for side in "lr"))


def random_rows(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Rows of internal values."""
    values = Values(rng, ["a", "b", "ab", "", "a|", "ß", " x "], 0)
    return [tuple(_internal(values.value(str(c.type), False), c) for c in SCHEMA.value) for _ in range(count)]


def _internal(value: Any, column: Column) -> Any:
    return None if value is None else from_python(value, column.type)


def random_expressions(rng: random.Random, count: int) -> list[tuple[str, Expr]]:
    """Expressions of all types, as text and typed."""
    scope = Scope([(c.name, str(c.type)) for c in SCHEMA.value], False, lambdas=2)
    found = []
    for _ in range(count):
        text = expression(rng, scope, rng.choice(TYPES), 3)
        parsed = parse_expression(text)
        assert parsed.expression is not None, text
        typed = type_expression(parsed.expression, Typing((ScopeInput("x", 0, SCHEMA),)))
        assert typed.expr is not None, (text, typed.findings)
        found.append((text, typed.expr))
    return found
