"""A group of rows, and every aggregate function as a function of all the rows of a group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from tests.oracle.records.expressions import NodeFailure, Row, items
from tests.oracle.records.order import in_order
from vsc.plan.expressions import Literal
from vsc.plan.nodes import Aggregate, AggregateCall, Column, Node, Schema
from vsc.plan.types import DataType, DecimalType, ScalarType
from vsc.runtime.expressions import ExpressionFailure, compile_row

__all__ = ["Calls", "Group", "Member"]

_WIDE = Context(prec=100)


class Member(NamedTuple):
    """A row of a group: the arguments of each call, its event time, its number among all rows that came, and for the
    row of a table its key there."""

    args: tuple[tuple[Any, ...], ...]
    time: int
    arrival: int
    ident: Row = ()


@dataclass(frozen=True)
class Group:
    """The time of its result, the groups that were merged into it (sessions only), and the rows that came to it since.

    The members stand in the order in which they came.
    """

    time: int = -1
    merged: tuple[Group, ...] = ()
    own: tuple[Member, ...] = ()

    @property
    def members(self) -> Iterator[Member]:
        """All rows: those of the merged groups first."""
        for group in self.merged:
            yield from group.members
        yield from self.own

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(1 for _ in self.members)

    def without(self, ident: Row) -> Group:
        """The group of a table without the row of that key; without the last one, if it came more than once."""
        places = [place for place, member in enumerate(self.own) if member.ident == ident]
        return self if not places else replace(self, own=self.own[: places[-1]] + self.own[places[-1] + 1 :])


class Calls:
    """The calls and the items of `node`, an aggregate. A stream's rows only come; a table's may be taken back."""

    def __init__(self, node: Node, operation: Aggregate) -> None:
        self._name, self._calls, self._of_table = node.name, operation.calls, operation.over == "table"
        self.timed = operation.timed
        self._args = [[compile_row(arg, [operation.row]) for arg in call.args] for call in operation.calls]
        results = tuple(Column(f"#{i}", call.type) for i, call in enumerate(operation.calls))
        self._items = items(node.name, operation.items, [Schema(node.schema.key, results)])

    def args(self, row: Row, time: int) -> tuple[tuple[Any, ...], ...]:
        """The arguments of all calls for a row; NodeFailure if one of them fails."""
        found = []
        for call, functions in zip(self._calls, self._args, strict=True):
            try:
                found.append(tuple(f(row, None, time, None) for f in functions))
            except ExpressionFailure as failure:
                raise NodeFailure(self._name, call.text, failure.reason) from failure
        return tuple(found)

    def added(self, group: Group, member: Member) -> Group:
        """The group with a row more."""
        return replace(group, own=(*group.own, member))

    def merged(self, group: Group, other: Group) -> Group:
        """One group of two, none of whose rows of its own has come yet."""
        assert not group.own
        return replace(group, merged=(*group.merged, other))

    def result(self, group: Group, key: Row) -> Row:
        """The value columns of the group's result; `key`: its key columns. Raises NodeFailure if an item fails."""
        values = [self.value(n, group) for n in range(len(self._calls))]
        return self._items((*key, *values), None, group.time, None)

    def value(self, n: int, group: Group) -> Any:
        """The value of a call for a group. Raises NodeFailure if it has none."""
        call = self._calls[n]
        try:
            if call.function in ("sum", "avg"):
                return self._total(n, group)
            return _chosen(call, [(m.args[n], m) for m in group.members])
        except ExpressionFailure as failure:
            raise NodeFailure(self._name, call.text, failure.reason) from failure

    def _total(self, n: int, group: Group) -> Any:
        """A sum or a mean; null without values."""
        call = self._calls[n]
        of, average = call.args[0].type, call.function == "avg"
        values = [m.args[n][0] for m in group.members if m.args[n][0] is not None]
        if not values:
            return None
        if isinstance(of, ScalarType) and of.name in ("float", "double"):
            total = _exact_total(values) if self._of_table else _running_total(n, group)
            return total / len(values) if average else total
        exact = sum(map(Fraction, values), Fraction())
        if not average:
            return _whole(exact, call.type)
        return _rounded(exact / len(values), call.type)


def _chosen(call: AggregateCall, rows: Sequence[tuple[tuple[Any, ...], Member]]) -> Any:
    """The value of a call that counts or chooses."""
    if not call.args:
        return len(rows)
    if call.function == "collect_top":
        return _top(call, rows)
    if call.function == "collect_last":
        count = call.args[2]
        assert isinstance(count, Literal) and isinstance(count.value, int)
        return [args[0] for args, _ in sorted((r for r in rows if r[0][0] is not None), key=_by_time)][-count.value :]
    order = in_order(call.args[-1].type)
    there = [(args, m) for args, m in rows if args[-1] is not None]
    match call.function:
        case "count":
            return len({order(args[0]) for args, _ in there}) if call.distinct else len(there)
        case "min":
            return min((args[0] for args, _ in there), key=order, default=None)
        case "max":
            return max((args[0] for args, _ in there), key=order, default=None)
        case "min_by":
            least = min((order(args[1]) for args, _ in there), default=None)
            return _latest((args[0], m) for args, m in there if order(args[1]) == least)
        case "max_by":
            greatest = max((order(args[1]) for args, _ in there), default=None)
            return _latest((args[0], m) for args, m in there if order(args[1]) == greatest)
        case "variance" | "stddev":
            return _spread([args[0] for args, _ in there], call.function == "stddev")
        case "first":
            return min(rows, key=_by_time)[0][0] if rows else None
        case "last":
            return max(rows, key=_by_time)[0][0] if rows else None
        case "approx_percentile":
            return _at_share(call, sorted((row for row in rows if row[0][0] is not None), key=_by_arrival))
        case "collect_list":
            return [args[0] for args, _ in sorted(there, key=_by_time)]
        case "collect_set":
            found: dict[Any, Any] = {}
            for args, _ in sorted(there, key=lambda row: row[1].arrival):
                found.setdefault(order(args[0]), args[0])
            return list(found.values())
    raise ValueError(f"unknown aggregate function {call.function}")


def _top(call: AggregateCall, rows: Sequence[tuple[tuple[Any, ...], Member]]) -> list[Any]:
    """The rows by arrival, then by their order, which keeps equal ones as they are."""
    order = in_order(call.args[1].type)
    there = sorted((row for row in rows if row[0][1] is not None), key=lambda row: row[1].arrival)
    count, descending = (arg.value for arg in call.args[2:] if isinstance(arg, Literal))
    there.sort(key=lambda row: order(row[0][1]), reverse=bool(descending))
    return [args[0] for args, _ in there[: int(count or 0)]]


def _at_share(call: AggregateCall, rows: list[tuple[tuple[Any, ...], Member]]) -> Any:
    """The least value of which so many are not greater; of equal ones that which came first."""
    share, order = call.args[1], in_order(call.args[0].type)
    assert isinstance(share, Literal) and isinstance(share.value, float)
    ranked = [args[0] for args, _ in sorted(rows, key=lambda row: order(row[0][0]))]
    enough = (value for count, value in enumerate(ranked, start=1) if count >= share.value * len(ranked))
    return next(enough, None)


def _by_arrival(row: tuple[tuple[Any, ...], Member]) -> int:
    return row[1].arrival


def _by_time(row: tuple[tuple[Any, ...], Member]) -> tuple[int, int]:
    return row[1].time, row[1].arrival


def _latest(rows: Iterator[tuple[Any, Member]]) -> Any:
    """The value of the row that came last."""
    return max(rows, key=lambda row: row[1].arrival, default=(None, None))[0]


def _running_total(n: int, group: Group) -> float:
    """Doubles of a stream are added up as they come; a merged session adds what it had added up."""
    total = 0.0
    for other in group.merged:
        total += _running_total(n, other)
    for member in group.own:
        if member.args[n][0] is not None:
            total += member.args[n][0]
    return total


def _exact_total(values: Sequence[float]) -> float:
    """Doubles of a table: the exact sum, rounded once."""
    beyond = {v for v in values if math.isinf(v)}
    if any(math.isnan(v) for v in values) or len(beyond) == 2:
        return math.nan
    if beyond:
        return beyond.pop()
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _spread(values: Sequence[float], root: bool) -> float | None:
    """The variance of a sample by its definition: the exact squares of the distances to the exact mean."""
    if len(values) < 2:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    try:
        variance = float(sum(((value - mean) ** 2 for value in exact), Fraction()) / (len(exact) - 1))
    except OverflowError:
        variance = math.inf
    return math.sqrt(variance) if root else variance


def _whole(exact: Fraction | int, to: DataType) -> Any:
    """A sum in its type."""
    if isinstance(to, DecimalType):
        return _decimal(int(exact * 10**to.scale), to)
    if not -(2**63) <= exact < 2**63:
        raise ExpressionFailure("[ARITHMETIC_OVERFLOW] long overflow")
    return int(exact)


def _rounded(mean: Fraction, to: DataType) -> Any:
    """A mean in its type: a decimal is rounded half up, away from zero."""
    if not isinstance(to, DecimalType):
        return float(mean)
    unscaled = math.floor(abs(mean) * 10**to.scale + Fraction(1, 2))
    return _decimal(unscaled if mean >= 0 else -unscaled, to)


def _decimal(unscaled: int, to: DecimalType) -> Decimal:
    if abs(unscaled) >= 10**to.precision:
        raise ExpressionFailure(f"[NUMERIC_VALUE_OUT_OF_RANGE] the result does not fit {to}")
    return Decimal(unscaled).scaleb(-to.scale, _WIDE)
