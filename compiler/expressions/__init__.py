"""Expressions at compile time: what names mean, which types go together, and what the plan gets.

`type_expression` turns a syntax tree into a plan expression in which nothing is left to decide but values; the other
names are what passes need to make scopes and to compare types.
"""

from vsc.compiler.expressions.aggregates import AggregateCalls
from vsc.compiler.expressions.coercion import coerce, common_type
from vsc.compiler.expressions.infer import is_aggregate_call, type_expression
from vsc.compiler.expressions.scope import Scope, ScopeInput, Typed

__all__ = [
    "AggregateCalls",
    "Scope",
    "ScopeInput",
    "Typed",
    "coerce",
    "common_type",
    "is_aggregate_call",
    "type_expression",
]
