"""The aggregate calls of one `aggregate` statement: checks their arguments, types them and collects them.

The types are Spark SQL's in ANSI mode. A sum of integers is a bigint, and an average of numbers is a double. A decimal
result has ten (``sum``) or four (``avg``) more digits. Stricter than Spark: strings are not read as numbers. As in
Spark, ``bool_and`` and ``bool_or`` are ``min`` and ``max`` of conditions.
"""

from __future__ import annotations

from dataclasses import replace

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.expressions.coercion import INTEGERS, convert, is_numeric, is_orderable
from vsc.compiler.expressions.infer import type_expression
from vsc.compiler.expressions.scope import Scope, Typed
from vsc.compiler.source import SourceFile, Span
from vsc.plan.expressions import Call, Column, Expr, Literal
from vsc.plan.functions import AGGREGATES
from vsc.plan.nodes import AggregateCall
from vsc.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_PRECISION,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
)

__all__ = ["AggregateCalls"]

_MOST_ROWS = 1000
_OF_NUMBERS = ("sum", "avg", "stddev", "variance")
_OF_CONDITIONS = {"bool_and": "min", "bool_or": "max"}


class AggregateCalls:
    """Collects the calls of one `select`. `row` is the scope of their arguments: the rows that are aggregated.

    Equal calls are collected once. The result of call number n is the column ``#n`` of input 0.
    """

    def __init__(self, source: SourceFile, row: Scope, before: int | None = None) -> None:
        self._source, self._before = source, before
        self._over = before or 0
        self._row = replace(row, key=None, aggregate=_nested, grouped=frozenset())
        self._found: list[AggregateCall] = []
        self._overs: list[int] = []

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The calls collected so far, without duplicates."""
        return tuple(self._found)

    @property
    def overs(self) -> tuple[int, ...]:
        """How far back each call looks, in ms: what its ``over`` says, or `before`."""
        return tuple(self._overs)

    def take(self, call: syntax.FunctionCall) -> Typed:
        """The column that holds the result of `call`, or the findings about it."""
        name = call.name.text
        typed = [type_expression(arg, self._row) for arg in call.args]
        findings = tuple(finding for one in typed for finding in one.findings)
        if findings:
            return Typed(None, findings)
        wrong = _wrong_form(call) or self._wrong_over(call)
        if wrong is not None:
            return Typed(None, (wrong,))
        args = tuple(one.expr for one in typed if one.expr is not None)
        bad = _wrong_types(call, args)
        if bad is not None:
            return Typed(None, (bad,))
        if name in _OF_NUMBERS:
            args = (_summed(args[0]) if name in ("sum", "avg") else convert(args[0], DOUBLE),)
        if call.ignoring_nulls:
            return self._known(name, args[0], self._source.slice(call.span))
        if name == "collect_last":
            if (count := _count(args[1])) is None:
                return Typed(None, (_not_a_count(call.args[1].span, name),))
            args = (args[0], self._time_of_known(args[0]), count)
        if name == "collect_top":
            if (count := _count(args[1])) is None:
                return Typed(None, (_not_a_count(call.args[1].span, name),))
            args = (args[0], args[2], count, Literal(call.order == "desc", BOOLEAN))
        if name == "approx_percentile":
            if (share := _share(args[1])) is None:
                return Typed(None, (_not_a_share(call.args[1].span),))
            args = (args[0], share)
        text, function = self._source.slice(call.span), _OF_CONDITIONS.get(name, name)
        return Typed(self._column(AggregateCall(function, args, call.distinct, _type(name, args), text)))

    def _known(self, name: str, value: Expr, text: str) -> Typed:
        """``first`` and ``last`` of the values that are not null, made of other calls."""
        time = self._time_of_known(value)
        if name == "last":
            return Typed(self._column(AggregateCall("max_by", (value, time), False, value.type, text)))
        list_type = ArrayType(value.type)
        args = (value, time, Literal(1, INT), Literal(False, BOOLEAN))
        first = self._column(AggregateCall("collect_top", args, False, list_type, text))
        is_there = Call("gt", (Call("size", (first,), INT), Literal(0, INT)), BOOLEAN)
        found = Call("element", (first, Literal(0, INT)), value.type)
        return Typed(Call("if", (is_there, found, convert(Literal(None, VOID), value.type)), value.type))

    def _time_of_known(self, value: Expr) -> Expr:
        """A row's event time, null where `value` is."""
        time = self._row.event_time or Call("event_time", (), TIMESTAMP)
        return Call("if", (Call("is_null", (value,), BOOLEAN), Literal(None, TIMESTAMP), time), TIMESTAMP)

    def _wrong_over(self, call: syntax.FunctionCall) -> Finding | None:
        """What is wrong with the ``over`` of a call; else takes it."""
        self._over = self._before or 0
        if call.over is None:
            return None
        if self._before is None:
            message = f"`{call.name.text}` takes no `over` here: it is for what came before each record"
            help = "write it in a `join ... within (before = ...)` of two streams"
            return Finding("VSC222", call.over.span, message, (), help)
        if not 0 < call.over.milliseconds <= self._before:
            message = "`over` is longer than zero, and not longer than the `before` of `within`"
            return Finding("VSC125", call.over.span, message, (), "make `before` as long as the longest `over`")
        self._over = call.over.milliseconds
        return None

    def _column(self, call: AggregateCall) -> Expr:
        for number, known in enumerate(self._found):
            same = (known.function, known.args, known.distinct) == (call.function, call.args, call.distinct)
            if same and self._overs[number] == self._over:
                return Column(0, f"#{number}", known.type)
        self._found.append(call)
        self._overs.append(self._over)
        return Column(0, f"#{len(self._found) - 1}", call.type)


def _nested(call: syntax.FunctionCall) -> Typed:
    message = f"`{call.name.text}` cannot be inside another aggregate"
    help = "aggregate twice: a second `aggregate` reads the table that the first one makes"
    return Typed(None, (Finding("VSC118", call.span, message, (), help),))


def _wrong_form(call: syntax.FunctionCall) -> Finding | None:
    name = call.name.text
    if name == "collect_top" and not call.star and not call.distinct:
        if call.order and len(call.args) == 3:
            return None
        message = "`collect_top` takes a value, and how many rows by what"
        return Finding("VSC222", call.span, message, (), f"write `{AGGREGATES[name].signature}`")
    if call.order or (name != "count" and (call.star or call.distinct)):
        word = "*" if call.star else "distinct" if call.distinct else "by"
        message = f"`{name}` does not take `{word}`"
        help = _without_repeats(name) if call.distinct else f"write `{AGGREGATES[name].signature}`"
        return Finding("VSC222", call.span, message, (), help)
    wanted = 0 if call.star else AGGREGATES[name].least
    if len(call.args) == wanted:
        return None
    message = f"`{name}` takes {wanted} argument{'' if wanted == 1 else 's'}, not {len(call.args)}"
    return Finding("VSC222", call.span, message, (), f"write `{AGGREGATES[name].signature}`")


def _without_repeats(name: str) -> str:
    """What to write for ``NAME(distinct x)``."""
    if name in ("min", "max", "bool_and", "bool_or", "collect_set"):
        return f"write `{AGGREGATES[name].signature}`: repeats change nothing"
    if name == "collect_list":
        return "write `collect_set(value)`"
    if name in ("sum", "avg"):
        from vsc.compiler.expressions.elsewhere import instead_of  # a text without mistakes does not need it

        return instead_of(f"{name}_distinct")[0]
    return "aggregate twice: first a `group by` with the value, then its rows"


def _wrong_types(call: syntax.FunctionCall, args: tuple[Expr, ...]) -> Finding | None:
    name = call.name.text
    if name in _OF_NUMBERS and not is_numeric(args[0].type):
        return _refused(name, call.args[0].span, args[0].type, "a number", "cast it to a number")
    if name == "approx_percentile" and not is_numeric(args[0].type) and args[0].type not in (DATE, TIMESTAMP):
        return _refused(name, call.args[0].span, args[0].type, "a number or a time", "cast it")
    if name in _OF_CONDITIONS and args[0].type != BOOLEAN:
        return _refused(name, call.args[0].span, args[0].type, "a condition", "compare it, as in `x > 0`")
    pairs = tuple(zip(args, call.args, strict=True))
    ordered = {"min": pairs[:1], "max": pairs[:1], "min_by": pairs[1:], "max_by": pairs[1:], "collect_set": pairs,
               "collect_top": pairs[2:]}  # fmt: skip
    for arg, written in ordered.get(name, pairs if call.distinct else ()):
        if not is_orderable(arg.type):
            return _refused(name, written.span, arg.type, "values that can be compared", "choose another expression")
    for arg, written in pairs:
        if arg.type in (INTERVAL, VOID):
            return _refused(name, written.span, arg.type, "the value of a column", "choose another expression")
    return None


def _count(arg: Expr) -> Literal | None:
    """How many rows `collect_top` or `collect_last` collects; None if `arg` does not say."""
    known = isinstance(arg, Literal) and arg.type == INT and isinstance(arg.value, int) and 1 <= arg.value <= _MOST_ROWS
    return arg if known and isinstance(arg, Literal) else None


def _not_a_count(span: Span, name: str) -> Finding:
    message = f"`{name}` takes a number of rows here, from 1 to {_MOST_ROWS:,}"
    return Finding("VSC225", span, message, (), f"write the number, as in `{AGGREGATES[name].signature}`")


def _share(arg: Expr) -> Literal | None:
    """The share of `approx_percentile` as a double; None if `arg` is not one."""
    value = arg.value if isinstance(arg, Literal) and (is_numeric(arg.type)) else None
    return Literal(float(value), DOUBLE) if value is not None and 0 <= float(value) <= 1 else None


def _not_a_share(span: Span) -> Finding:
    message = "`approx_percentile` takes a number from 0 to 1 here"
    return Finding("VSC225", span, message, (), "write it, as in `approx_percentile(x, 0.95)`, and call it for each")


def _refused(name: str, span: Span, type_: DataType, wanted: str, action: str) -> Finding:
    return Finding("VSC221", span, f"`{name}` takes {wanted}, but this is a {type_}", (), action)


def _summed(arg: Expr) -> Expr:
    if isinstance(arg.type, DecimalType):
        return arg
    return convert(arg, BIGINT if arg.type in INTEGERS else DOUBLE)


def _type(name: str, args: tuple[Expr, ...]) -> DataType:
    if name == "count":
        return BIGINT
    type_ = args[0].type
    if name in ("collect_list", "collect_set", "collect_top", "collect_last"):
        return ArrayType(type_)
    if name not in ("sum", "avg"):
        return type_
    if isinstance(type_, DecimalType):
        precision, scale = (10, 0) if name == "sum" else (4, 4)
        return DecimalType(min(type_.precision + precision, MAX_PRECISION), min(type_.scale + scale, MAX_PRECISION))
    return DOUBLE if name == "avg" else type_
