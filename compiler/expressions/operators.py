"""The typing rules of the operators: which operands they take, how they cast them, and the type of the result.

Every function takes typed operands and returns the plan's call, or raises Refused with a finding that names the types.
The rules are Spark SQL's in ANSI mode. Where this module is stricter than Spark, it says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vsc.compiler.diagnostics.model import Fix
from vsc.compiler.expressions.coercion import (
    INTEGERS,
    adjusted,
    common_type,
    common_type_of,
    convert,
    decimal_of,
    is_numeric,
    is_orderable,
    tightest_type,
    wider_decimal,
)
from vsc.compiler.expressions.refusal import Refused, refuse
from vsc.compiler.source import Span
from vsc.plan.expressions import Call, Expr, Literal
from vsc.plan.record import record
from vsc.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    ScalarType,
)

__all__ = [
    "Operand",
    "arithmetic",
    "case",
    "combine",
    "compare",
    "concatenate",
    "condition",
    "divide",
    "element",
    "is_in",
    "joined",
    "like",
    "map_key",
    "negate",
    "unify",
]

_VERBS = {"add": "add", "subtract": "subtract", "multiply": "multiply", "modulo": "take the remainder of"}
_BY_PARTS = "compare parts of them, like `m['key']`"
_TO_TEXT = "make it text: `to_json(...)`"
_COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


@record
class Operand:
    """A typed expression and its place in the source."""

    expr: Expr
    span: Span

    @property
    def type(self) -> DataType:
        """The expression's type."""
        return self.expr.type


# ------------------------------------------------------------------------------------------------------- arithmetic


def arithmetic(function: str, left: Operand, right: Operand, span: Span) -> Expr:
    """``+ - * %`` (`function`: add, subtract, multiply, modulo). `span` is the place of the operator itself."""
    timed = _with_time(function, left, right, span)
    if timed is not None:
        return timed
    a, b = _numbers(function, left, right, span)
    if isinstance(a.type, DecimalType) and isinstance(b.type, DecimalType):
        return Call(function, (a, b), _decimal_result(function, a.type, b.type))
    return Call(function, (a, b), a.type)


def joined(before: Expr, step: Expr) -> Expr:
    """Merges `step`, whose left argument is `before`, with `before` into one call, to keep a long chain flat.

    Merges only calls with the same operator and the same result type, where nothing is cast in between, so that the
    result is the same. Otherwise returns `step` unchanged.
    """
    match before, step:
        case Call(("add" | "subtract" | "multiply") as first, args, type), Call(second, (left, right), result):
            if first == second and left is before and type == result and is_numeric(right.type):
                return Call(first, (*args, right), result)
    return step


def divide(left: Operand, right: Operand, span: Span, function: str = "divide") -> Expr:
    """``/``: decimals give a decimal, everything else a double. `function` can also be ``try_divide``."""
    a, b = _numbers(function, left, right, span)
    if isinstance(a.type, DecimalType) and isinstance(b.type, DecimalType):
        return Call(function, (a, b), _decimal_result("divide", a.type, b.type))
    return Call(function, (convert(a, DOUBLE), convert(b, DOUBLE)), DOUBLE)


def negate(arg: Operand, span: Span) -> Expr:
    """Unary ``-``; a string is read as a double, as in Spark."""
    if arg.type in (STRING, VOID):
        return Call("negate", (convert(arg.expr, DOUBLE),), DOUBLE)
    if not is_numeric(arg.type):
        raise refuse("VSC220", span, f"`-` takes a number, not a value of type {arg.type}", "cast it to a number")
    return Call("negate", (arg.expr,), arg.type)


def _with_time(function: str, left: Operand, right: Operand, span: Span) -> Expr | None:
    """Arithmetic on a timestamp and a duration, or a date and days; None if neither operand is about time."""
    kinds = {left.type, right.type}
    if not kinds & {INTERVAL, DATE, TIMESTAMP}:
        return None
    if function == "add" and left.type in (INTERVAL, *INTEGERS):
        left, right = right, left
    if function in ("add", "subtract") and right.type == INTERVAL and left.type in (TIMESTAMP, VOID):
        return Call(function, (convert(left.expr, TIMESTAMP), right.expr), TIMESTAMP)
    if function == "add" and left.type == DATE and right.type in INTEGERS and right.type != BIGINT:
        return Call("date_add", (left.expr, convert(right.expr, INT)), DATE)
    raise _bad_time(function, left, right, span)


_DURATION = re.compile(r"\s*\d+ (?:ms|milliseconds?|s|seconds?|m|minutes?|h|hours?|d|days?)\s*")


def _written_date(expr: Expr) -> str | None:
    """The date that a difference of three numbers looks like: ``2026-01-05``."""
    if not isinstance(expr, Call) or expr.function != "subtract" or len(expr.args) != 3:
        return None
    parts = [int(arg.value) for arg in expr.args if isinstance(arg, Literal) and type(arg.value) is int]
    if len(parts) < 3 or not (1900 <= parts[0] < 2200 and 1 <= parts[1] <= 12 and 1 <= parts[2] <= 31):
        return None
    return "{:04}-{:02}-{:02}".format(*parts)


def _bad_time(function: str, left: Operand, right: Operand, span: Span) -> Refused:
    message = f"cannot {_VERBS.get(function, function)} {left.type} and {right.type}"
    if INTERVAL in (left.type, right.type):
        return refuse("VSC220", span, message, "a duration can only be added to or subtracted from a timestamp")
    if left.type == right.type == DATE:
        return refuse("VSC220", span, message, "`datediff(a, b)` counts the days between two dates")
    if DATE in (left.type, right.type):
        return refuse("VSC220", span, message, "`date_add(d, n)` adds n days to a date")
    if left.type == right.type == TIMESTAMP:
        return refuse("VSC220", span, message, "`unix_millis(b) - unix_millis(a)` are the milliseconds between the two")
    other = right if left.type == TIMESTAMP else left
    if isinstance(other.expr, Literal) and other.type == STRING and _DURATION.fullmatch(str(other.expr.value)):
        duration = str(other.expr.value).strip()
        return refuse("VSC220", span, message, f"write `{duration}`, without quotes", Fix(other.span, duration))
    sign = "-" if function == "subtract" else "+"
    return refuse("VSC220", span, message, f"write a duration, as in `t {sign} 5 minutes`")


def _numbers(function: str, left: Operand, right: Operand, span: Span) -> tuple[Expr, Expr]:
    """Both operands, cast to a common type or each to its own decimal type."""
    a, b = left.expr, right.expr
    if left.type == VOID and right.type == VOID:
        return convert(a, DOUBLE), convert(b, DOUBLE)
    a, b = (convert(a, b.type) if a.type == VOID else a), (convert(b, a.type) if b.type == VOID else b)
    if STRING in (a.type, b.type) and a.type != b.type:
        promoted = common_type(a.type, b.type)
        if promoted is not None and is_numeric(promoted):
            a, b = convert(a, promoted), convert(b, promoted)
    if not (is_numeric(a.type) and is_numeric(b.type)):
        help = "cast them to numbers first, like `cast(x as int)`"
        if a.type == STRING and function == "add":
            help = "to join texts write `||`"
        elif STRING in (a.type, b.type):
            help = "cast the text to a number first, like `cast(x as double)`"
        verb = _VERBS.get(function, "divide")
        raise refuse("VSC220", span, f"cannot {verb} {left.type} and {right.type}", help)
    return _one_type(a, b, keep_decimals=True)


def _one_type(a: Expr, b: Expr, *, keep_decimals: bool) -> tuple[Expr, Expr]:
    if isinstance(a.type, DecimalType) or isinstance(b.type, DecimalType):
        left, right = _as_decimal(a), _as_decimal(b)
        if left is not None and right is not None:
            if not keep_decimals:
                left = right = wider_decimal(left, right, keep_fraction=True)
            return convert(a, left), convert(b, right)
        return convert(a, DOUBLE), convert(b, DOUBLE)
    common = tightest_type(a.type, b.type)
    return (a, b) if common is None else (convert(a, common), convert(b, common))


def _as_decimal(expr: Expr) -> DecimalType | None:
    return decimal_of(expr.type, expr.value if isinstance(expr, Literal) else None)


def _decimal_result(function: str, a: DecimalType, b: DecimalType) -> DecimalType:
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    match function:
        case "add" | "subtract":
            return adjusted(whole + scale + 1, scale)
        case "multiply":
            return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case "divide":
            scale = max(6, a.scale + b.precision + 1)
            return adjusted(a.precision - a.scale + b.scale + scale, scale)
        case _:
            whole = min(a.precision - a.scale, b.precision - b.scale)
            return adjusted(whole + scale, scale) if whole + scale > 0 else DecimalType(1, scale)


# ------------------------------------------------------------------------------------------- comparisons and logic


def compare(operator: str, left: Operand, right: Operand, span: Span) -> Expr:
    """``= <> < <= > >=``; `operator` is the sign as written."""
    a, b = _comparable(left, right, span)
    return Call(_COMPARISONS[operator], (a, b), BOOLEAN)


def _comparable(left: Operand, right: Operand, span: Span) -> tuple[Expr, Expr]:
    a, b = left.expr, right.expr
    if a.type == VOID or b.type == VOID:
        a, b = (convert(a, b.type) if a.type == VOID else a), (convert(b, a.type) if b.type == VOID else b)
    elif STRING in (a.type, b.type) and a.type != b.type:
        promoted = common_type(a.type, b.type)
        if promoted is not None:
            a, b = convert(a, promoted), convert(b, promoted)
    elif is_numeric(a.type) and is_numeric(b.type):
        a, b = _one_type(a, b, keep_decimals=False)
    elif isinstance(a.type, ScalarType) and (common := tightest_type(a.type, b.type)) is not None:
        a, b = convert(a, common), convert(b, common)
    if a.type != b.type:
        help = "cast one of them to the type of the other"
        dates = [text for one in (a, b) if (text := _written_date(one)) is not None]
        if dates and {a.type, b.type} & {DATE, TIMESTAMP}:
            help = f"write a date in quotes: `'{dates[0]}'`"
        raise refuse("VSC220", span, f"cannot compare {left.type} with {right.type}", help)
    if not is_orderable(a.type):
        raise refuse("VSC220", span, f"values of type {a.type} cannot be compared", _BY_PARTS)
    return a, b


def combine(function: str, operands: Sequence[Operand]) -> Expr:
    """``and`` or ``or`` of two or more operands."""
    return Call(function, tuple(condition(operand, f"`{function}`") for operand in operands), BOOLEAN)


def condition(arg: Operand, where: str) -> Expr:
    """`arg` as a condition. Spark also reads some text as booleans; vsc requires an explicit cast."""
    if arg.type == VOID:
        return convert(arg.expr, BOOLEAN)
    if arg.type != BOOLEAN:
        raise refuse("VSC227", arg.span, f"{where} takes a boolean, not a value of type {arg.type}", "compare it")
    return arg.expr


def is_in(arg: Operand, options: Sequence[Operand], span: Span) -> Expr:
    """``x in (a, b)``, with all values cast to their least common type."""
    operands = [arg, *options]
    exprs = unify(operands, "`in`", span)
    if exprs[0].type == VOID:
        exprs = [convert(expr, BOOLEAN) for expr in exprs]
    if not is_orderable(exprs[0].type):
        raise refuse("VSC220", arg.span, f"values of type {exprs[0].type} cannot be compared", _BY_PARTS)
    return Call("in", tuple(exprs), BOOLEAN)


def like(arg: Operand, pattern: Operand) -> Expr:
    """``x like pattern``; ``\\`` escapes ``%``, ``_`` and itself."""
    if isinstance(pattern.expr, Literal) and isinstance(pattern.expr.value, str):
        _check_pattern(pattern.expr.value, pattern.span)
    return Call("like", (_text(arg, "`like`"), _text(pattern, "`like`")), BOOLEAN)


def _check_pattern(pattern: str, span: Span) -> None:
    at = 0
    while at < len(pattern):
        if pattern[at] == "\\":
            if pattern[at + 1 : at + 2] not in ("%", "_", "\\"):
                what = "ends with" if at + 1 == len(pattern) else "puts an ordinary character after"
                message = f"the pattern {what} the escape character `\\`"
                raise refuse("VSC225", span, message, "write `\\\\` for a backslash")
            at += 1
        at += 1


def _text(arg: Operand, where: str) -> Expr:
    if isinstance(arg.type, ArrayType | MapType) or not isinstance(arg.type, ScalarType | DecimalType):
        raise refuse("VSC221", arg.span, f"{where} takes text, not a value of type {arg.type}", _TO_TEXT)
    if arg.type == INTERVAL:
        raise refuse("VSC221", arg.span, f"{where} takes text, not a duration", "write it in quotes")
    return convert(arg.expr, STRING)


def concatenate(operands: Sequence[Operand]) -> Expr:
    """``||`` and ``concat``: binaries give a binary, arrays an array, and everything else is cast to text."""
    types = [operand.type for operand in operands]
    if any(isinstance(type, ArrayType) for type in types):
        common = common_type_of(types)
        if common is None:
            wrong = next(o for o in operands if o.type != operands[0].type)
            message = f"cannot join {operands[0].type} and {wrong.type}"
            raise refuse("VSC226", wrong.span, message, f"cast it: `cast(... as {operands[0].type})`")
        return Call("concat", tuple(convert(o.expr, common) for o in operands), common)
    if all(type in (BINARY, VOID) for type in types) and BINARY in types:
        return Call("concat", tuple(convert(o.expr, BINARY) for o in operands), BINARY)
    return Call("concat", tuple(_text(o, "`||`") for o in operands), STRING)


# --------------------------------------------------------------------------------------------- branches and elements


def unify(operands: Sequence[Operand], where: str, span: Span, *, strings: bool = True) -> list[Expr]:
    """All operands, cast to their least common type. The finding names the first that does not fit those before it."""
    common = common_type_of([o.type for o in operands], strings=strings)
    if common is None:
        for count in range(2, len(operands) + 1):
            if common_type_of([o.type for o in operands[:count]], strings=strings) is None:
                break
        wrong, before = operands[count - 1], common_type_of([o.type for o in operands[: count - 1]], strings=strings)
        message = f"{where} needs values of one type, not {before} and {wrong.type}"
        raise refuse("VSC226", wrong.span, message, f"cast it: `cast(... as {before})`")
    if common == INTERVAL:
        raise refuse("VSC226", span, f"{where} does not take durations", "add the duration to a timestamp")
    return [convert(o.expr, common) for o in operands]


def case(conditions: Sequence[Expr], values: Sequence[Operand], span: Span) -> Expr:
    """``case``. `values` has one more entry than `conditions`; the last is for ``else``."""
    exprs = unify(values, "`case`", span)
    args: list[Expr] = []
    for when, value in zip(conditions, exprs, strict=False):
        args += [when, value]
    return Call("case", (*args, exprs[-1]), exprs[-1].type)


def element(base: Operand, index: Operand) -> Expr:
    """``a[i]`` (from 0; a missing element is an error at run time) and ``m['k']`` (a missing key gives null)."""
    match base.type:
        case ArrayType(item):
            if index.type != VOID and index.type not in INTEGERS:
                message = f"an array index must be an integer, not a value of type {index.type}"
                raise refuse("VSC220", index.span, message, "the first element is `[0]`")
            return Call("element", (base.expr, convert(index.expr, INT) if index.type == VOID else index.expr), item)
        case MapType(_, value):
            return Call("element", (base.expr, map_key(base, index)), value)
    scalar = isinstance(base.type, ScalarType | DecimalType)
    help = "only arrays and maps have elements" if scalar else "write `.name` for the field of a struct"
    raise refuse("VSC220", base.span, f"a value of type {base.type} has no elements", help)


def map_key(base: Operand, index: Operand) -> Expr:
    """`index` as a key of the map `base`. Only lossless casts are allowed."""
    assert isinstance(base.type, MapType)
    key = base.type.key
    common = tightest_type(key, index.type)
    if common == key:
        return convert(index.expr, key)
    if key in INTEGERS and index.type in INTEGERS and isinstance(index.expr, Literal):
        narrowed = convert(index.expr, key)
        if isinstance(narrowed, Literal):
            return narrowed
    raise refuse("VSC220", index.span, f"the map's keys are {key}, not {index.type}", f"cast it: `cast(... as {key})`")
