"""Joins of two streams, whose records wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.facts import Facts, Placed, Schemas, placed, value_of_items
from vsc.plan.operations.aggregates import AggregateCall
from vsc.plan.parts import Column, Item, Schema
from vsc.plan.record import record

__all__ = ["StreamStreamJoin", "WithinAggregate"]


@record
class StreamStreamJoin(Facts):
    """Joins the records of two streams with the same key whose times are close enough; the inputs are (left, right).

    A right record meets the left ones that are at most `before` ms later or `after` ms earlier than itself. In a
    ``left`` join left records without a partner come out, in an ``outer`` one those of both sides: `grace` ms after the
    last time of a partner. `items` see the left record as input 0, the right one as input 1; a missing side's columns
    are null.
    """

    reads = ("stream", "stream")
    branches = True
    tells_time = True
    reads_all = False
    of_both = ("items",)
    fits = value_of_items
    keeps = "records"
    kept = "inputs"
    limits = ("grace",)

    mode: Choice["inner", "left", "outer"]
    before: int
    after: int
    grace: int
    items: tuple[Item, ...]
    op: Choice["stream_stream_join"] = "stream_stream_join"

    @property
    def ahead(self) -> tuple[int, int]:
        """How much later a partner may be, by side."""
        return self.after, self.before

    @property
    def keeping(self) -> tuple[bool, bool]:
        """Whether records without a partner come out, by side."""
        return self.mode != "inner", self.mode == "outer"

    @property
    def span(self) -> int:
        """How far behind the newest record of its side a record is not found any more."""
        return self.before + self.after + self.grace

    @property
    def waits(self) -> bool:
        """Unless it is an inner join, records wait for partners."""
        return self.mode != "inner"

    @property
    def holds(self) -> int:
        """As long as a partner may come, and 1 ms."""
        if not self.waits:
            return 0
        return (max(self.ahead) if self.mode == "outer" else self.after) + self.grace + 1


@record
class WithinAggregate(Facts):
    """For each left record, calls of aggregates over the right records of its key that are close enough in time; the
    inputs are (left, right).

    These are at most `before` ms earlier and `after` ms later than the left one; `strictly_before`: earlier. `overs`:
    by call, how much earlier they may be, at most `before`. Without `after` and `grace` the result goes out at the
    record, over what has come; otherwise `grace` ms after the last time of a right record, and 1 ms. If it keeps `left`
    records, those without any come out as well. The arguments of calls see the right record as input 0; `items` see the
    left one as input 0, and the results of the calls as the columns ``#0``, ``#1``, ... of input 1.
    """

    counts_late = True
    reads = ("stream", "stream")
    branches = True
    tells_time = True
    reads_all = False
    fits = value_of_items
    keeps = "records"
    kept = "inputs"
    holds_all = True
    limits = ("grace",)

    left: bool
    before: int
    after: int
    grace: int
    strictly_before: bool
    calls: tuple[AggregateCall, ...]
    overs: tuple[int, ...]
    items: tuple[Item, ...]
    op: Choice["within_aggregate"] = "within_aggregate"

    @property
    def ahead(self) -> tuple[int, int]:
        """How much later a partner may be, by side."""
        return self.after, self.before

    @property
    def span(self) -> int:
        """How far behind the clock a right record is not found any more."""
        return self.before + self.after + self.grace

    @property
    def waits(self) -> bool:
        """Whether left records wait: for later right ones, or for those that come late."""
        return bool(self.after + self.grace)

    @property
    def holds(self) -> int:
        """As long as a right record may come, and 1 ms."""
        return self.after + self.grace + 1 if self.waits else 0

    def turn_of(self, port: int) -> int:
        """Right before left: of a stream that is joined with itself, a record is among its own."""
        return -port

    @property
    def call_columns(self) -> tuple[Column, ...]:
        """The columns of the calls' results."""
        return tuple(Column(f"#{index}", call.type) for index, call in enumerate(self.calls))

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The arguments see the right records; the items see the left one and the results of the calls."""
        for index, call in enumerate(self.calls):
            for number, argument in enumerate(call.args):
                yield f"calls/{index}/args/{number}", argument, (inputs[1],)
        yield from placed("items", self.items, (inputs[0], Schema((), self.call_columns)))
