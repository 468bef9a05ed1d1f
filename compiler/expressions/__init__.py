"""Expressions at compile time: resolves names, checks types, and builds the plan's expressions.

`type_expression` turns a syntax tree into a plan expression in which everything but the values is decided. Passes use
the other names to build scopes and to compare types.
"""

from vsc.compiler.expressions.aggregates import AggregateCalls
from vsc.compiler.expressions.array_rules import entries_of
from vsc.compiler.expressions.coercion import coerce, common_type
from vsc.compiler.expressions.constants import LENIENT
from vsc.compiler.expressions.doubts import unmet
from vsc.compiler.expressions.infer import is_aggregate_call, type_expression
from vsc.compiler.expressions.scope import Scope, ScopeInput, Typed

__all__ = [
    "LENIENT",
    "AggregateCalls",
    "Scope",
    "ScopeInput",
    "Typed",
    "coerce",
    "common_type",
    "entries_of",
    "is_aggregate_call",
    "type_expression",
    "unmet",
]
