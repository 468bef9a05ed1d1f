"""Writes an expression as Spark SQL text that means the same, to compare our evaluation with Spark's.

Every constant and every cast is written out with its type, so Spark has nothing left to decide. The session has to be
in ANSI mode with the time zone UTC, as vsc sets it.
"""

from __future__ import annotations

from collections.abc import Callable

from vsc.plan.expressions import LAMBDAS, Call, Cast, Column, Expr, Lambda, Literal, Parameter, parts
from vsc.plan.types import DataType, DecimalType

__all__ = ["EVENT_TIME", "spark_sql"]

EVENT_TIME = "event_time()"
"""What `spark_sql` calls the event time of an input: no name of a column can be that."""

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%",
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR",
}  # fmt: skip
_NAMES = {"starts_with": "startswith", "ends_with": "endswith", "concat": "concat"}
_TIMES = ("add", "subtract")


def spark_sql(expr: Expr, names: Callable[[Column], str]) -> str:
    """`expr` as Spark SQL. `names` gives the text of a column, quoted as need be.

    Raises ValueError for ``event_time``, which is not a column to Spark: `names` is asked for it as the column called
    `EVENT_TIME` of its input, and may know one.
    """
    match expr:
        case Literal():
            return _literal(expr)
        case Column():
            return names(expr)
        case Cast(arg, type, safe):
            return f"{'try_cast' if safe else 'CAST'}({spark_sql(arg, names)} AS {_ddl(type)})"
        case Call("event_time", args):
            index = args[0].value if args and isinstance(args[0], Literal) else 0
            return names(Column(int(index or 0), EVENT_TIME, expr.type))
        case Parameter(place, depth):
            return f"p{depth}_{place}"
        case Lambda(body, depth):
            both = any(isinstance(p, Parameter) and (p.place, p.depth) == (1, depth) for p in parts(body))
            return f"{f'(p{depth}_0, p{depth}_1)' if both else f'p{depth}_0'} -> {spark_sql(body, names)}"
        case Call():
            return _call(expr, [spark_sql(arg, names) for arg in expr.args])


def _call(call: Call, args: list[str]) -> str:
    function = call.function
    if function in _INFIX:
        return "(" + f" {_INFIX[function]} ".join(args) + ")"
    match function:
        case "transform_values" | "reduce" | "aggregate":
            index = LAMBDAS[function][0]
            body = args[index].partition(" -> ")[2]
            depth = args[index].partition("_")[0].lstrip("(p")
            args[index] = f"(p{depth}_0, p{depth}_1) -> {body}"
            return f"{function}({', '.join(args)})"
        case "map":
            return f"CAST(map({', '.join(args)}) AS {_ddl(call.type)})"
        case "negate":
            return f"(- {args[0]})"
        case "not":
            return f"(NOT {args[0]})"
        case "is_null" | "is_not_null":
            return f"({args[0]} IS {'NOT ' if function == 'is_not_null' else ''}NULL)"
        case "in":
            return f"({args[0]} IN ({', '.join(args[1:])}))"
        case "like":
            return f"({args[0]} LIKE {args[1]})"
        case "case":
            branches = "".join(f" WHEN {a} THEN {b}" for a, b in zip(args[:-1:2], args[1::2], strict=True))
            return f"(CASE{branches} ELSE {args[-1]} END)"
        case "element":
            return f"{args[0]}[{args[1]}]"
        case "get_field":
            return f"{args[0]}.{_quoted_name(call.args[1])}"
        case "struct":
            return f"CAST(struct({', '.join(args)}) AS {_ddl(call.type)})"
        case "array":
            return f"CAST(array({', '.join(args)}) AS {_ddl(call.type)})" if args else "array()"
        case "from_json":
            return f"from_json({args[0]}, {_string(_ddl(call.type))})"
        case "ceil" | "floor" if str(call.args[0].type) in ("float", "double"):
            # Spark before 4.3 does not say when the result is not a bigint; a cast does. Beyond 2^52 all are whole.
            few = f"abs({args[0]}) < 4503599627370496D OR isnan({args[0]})"
            return f"IF({few}, {function}({args[0]}), CAST({args[0]} AS BIGINT))"
        case "round":
            return f"round({args[0]}, {_value(call.args[1])})"
        case "to_timestamp" | "to_date" | "date_trunc":
            return f"{function}({', '.join(args)})"
    return f"{_NAMES.get(function, function)}({', '.join(args)})"


def _value(expr: Expr) -> str:
    return str(expr.value) if isinstance(expr, Literal) else ""


def _quoted_name(expr: Expr) -> str:
    return "`" + _value(expr).replace("`", "``") + "`"


def _literal(literal: Literal) -> str:
    value, type = literal.value, literal.type
    if value is None:
        return "NULL" if str(type) == "void" else f"CAST(NULL AS {_ddl(type)})"
    match str(type):
        case "boolean":
            return "true" if value else "false"
        case "string":
            return _string(str(value))
        case "interval":
            return _interval(int(value))
        case "double" | "float":
            return f"CAST('{value!r}' AS {_ddl(type)})"
        case "int":
            return f"({value})" if isinstance(value, int) and value < 0 else str(value)
    if isinstance(type, DecimalType):
        return f"CAST('{value}' AS {_ddl(type)})"
    return f"CAST('{value}' AS {_ddl(type)})"


def _interval(millis: int) -> str:
    sign, (seconds, rest) = "-" if millis < 0 else "", divmod(abs(millis), 1000)
    days, seconds = divmod(seconds, 86400)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"
    return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"


def _string(text: str) -> str:
    """A string literal, free of everything that Spark's parser gives a meaning."""
    parts = []
    for letter in text:
        if letter in "\\'":
            parts.append("\\" + letter)
        elif letter in "${}" or ord(letter) < 32 or ord(letter) == 127:
            parts.append(f"\\u{ord(letter):04x}")
        else:
            parts.append(letter)
    return "'" + "".join(parts) + "'"


def _ddl(type: DataType) -> str:
    return str(type).upper() if not str(type).startswith(("struct", "array", "map")) else str(type)
