"""Types calls that take lambdas: what a lambda must give, and what the call gives."""

from __future__ import annotations

from collections.abc import Sequence

from vsc.compiler.expressions.call_site import CallSite
from vsc.compiler.expressions.coercion import coerce
from vsc.compiler.expressions.operators import Operand, condition
from vsc.compiler.expressions.refusal import refuse
from vsc.plan.expressions import Expr
from vsc.plan.types import BOOLEAN, ArrayType, DataType, MapType

__all__ = ["lambda_body", "lambda_result"]


def lambda_body(call: CallSite, number: int, body: Operand) -> Expr:
    """What the lambda at argument `number` computes: a condition where one is asked for, a sum of the type it had."""
    if call.name in ("exists", "filter", "forall"):
        return condition(body, f"the lambda of `{call.name}`")
    if call.name not in ("aggregate", "reduce") or number == 3:
        return body.expr
    same = coerce(body.expr, call.type(1))
    if same is None:
        message = f"the lambda of `{call.name}` gives a value of type {body.type}, and it starts with {call.type(1)}"
        raise refuse("VSC221", body.span, message, f"cast the start: `cast(... as {body.type})`")
    return same


def lambda_result(call: CallSite, args: Sequence[Expr]) -> DataType:
    """The type of the call, given all its arguments."""
    given = args[0].type
    match call.name:
        case "transform":
            return ArrayType(args[1].type)
        case "transform_values" if isinstance(given, MapType):
            return MapType(given.key, args[1].type)
        case "aggregate" | "reduce":
            return args[-1].type
        case "filter":
            return given
    return BOOLEAN
