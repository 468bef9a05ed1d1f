"""Aggregates of streams and of tables, and their windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal as Choice

from vsc.plan.expressions import Expr
from vsc.plan.facts import Facts, Placed, Schemas, always, of_versioned, placed, value_of_items
from vsc.plan.parts import Column, Item, Schema
from vsc.plan.record import record
from vsc.plan.types import BIGINT, DataType

__all__ = ["VALIDITY", "Aggregate", "AggregateCall", "GroupChanges", "Window"]

VALIDITY = (Column("#since", BIGINT), Column("#until", BIGINT))
"""What the change of a group carries for a complete history: since when the row that it takes back is valid (ms), and
until when the change is."""

_SET_BACK = 7 * 3_600_000
"""The most by which the clocks of any zone have been set back since 1970: those of Antarctica/Vostok, in 1994."""


@record
class Window:
    """The window of an aggregate, in ms. `size` is the size, a sliding window's difference or a session's gap.
    `advance` is a hopping window's advance, a tumbling window's size, else 0.

    Tumbling and hopping windows begin `offset` after the multiples of `advance` since 1970; with a `zone`, by the
    clocks there. Windows of so many calendar `months` begin `offset` after the first of a month, and `size` is what
    the longest of them can be.
    """

    kind: Choice["tumbling", "hopping", "sliding", "session"]
    size: int
    advance: int
    grace: int
    offset: int = 0
    zone: str | None = None
    months: int = 0

    @property
    def shape(self) -> tuple[str | int | None, ...]:
        """What decides about which windows there are; as short as it was when there was less to decide."""
        shape = (self.kind, self.size, self.advance, self.offset, self.zone, self.months)
        return shape if any(shape[3:]) else shape[:3]

    @property
    def moving(self) -> bool:
        """Whether the rows decide where windows are."""
        return self.kind in ("sliding", "session")

    @property
    def span(self) -> int:
        """How far the end of a window can be behind the time of its result. A session's end is that time."""
        return 0 if self.kind == "session" else self.size + (_SET_BACK if self.zone else 0)

    @property
    def held(self) -> int:
        """How far stream time is ahead of a result when the window closes, at most."""
        inclusive = self.moving  # still open at its end plus grace
        return (self.size if self.kind == "session" else self.span) + self.grace + inclusive

    @property
    def lingers(self) -> int:
        """How long after its end a window closes."""
        return self.held - self.span


@record
class GroupChanges(Facts):
    """First step of an aggregate over a table: its changes, keyed by the group that each row belongs to.

    Added by the lowering as ``AGGREGATE#changes``, a stream. Its value is ``#old`` (boolean: whether a row is taken
    back), ``#new`` (boolean: whether a row is added), then each of `columns` twice, as ``old#NAME`` and ``new#NAME``.
    `columns` are first all key columns of the table, even those that the aggregate does not read (they identify the row
    that is taken back), then the other columns that it reads; if `complete`, last those of `VALIDITY`. `versioned`:
    changes that are not their key's newest are dropped. `window`: of a table whose row times never change, the windows
    that a row counts in, tumbling or hopping ones; their bounds end the key. What is too late for one is dropped.
    `steady`: of such a table, for windows that the aggregate finds itself: a row that takes the place of one of another
    time is two changes, each at the time of its row.
    """

    reads = ("table",)
    moves = branches = True
    of_first = ("group",)
    asks_old = always
    asks_latest = of_versioned
    limits = ("window.grace",)

    group: tuple[Item, ...]
    columns: tuple[str, ...]
    versioned: bool
    complete: bool = False
    window: Window | None = None
    steady: bool = False
    op: Choice["group_changes"] = "group_changes"

    @property
    def begins_windows(self) -> bool:
        """With a window."""
        return self.window is not None


@record
class AggregateCall:
    """One call of an aggregate function: ``count sum avg stddev variance min max min_by max_by first last
    collect_list collect_set collect_top collect_last approx_percentile``.

    `args` see the aggregated row (`Aggregate.row`) as input 0; ``count(*)`` has no arguments, ``collect_top(a, 3 by b
    desc)`` has a, b, 3 and true, ``approx_percentile(a, 0.5)`` a and a double, ``collect_last(a, 3)`` a, the
    row's time (null where a is) and 3. `type` is the result's.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool
    type: DataType
    text: str

    @property
    def kept_types(self) -> tuple[DataType, ...]:
        """The types of the values that its state keeps; empty if it only counts."""
        return () if self.function == "count" and not self.distinct else tuple(arg.type for arg in self.args)


@record
class Aggregate(Facts):
    """Aggregates the groups of a stream's records, or of a table's rows, by the input's key.

    For a table, the input is a `GroupChanges`, and a `window` is a sliding one or a session. `row` is the schema of the
    aggregated rows: for a stream the input's; for a table an empty key and the columns that travelled. `items` see, as
    input 0, the group's key columns (with a window's bounds) and the calls' results as columns ``#0``, ``#1``, ...
    `final`: a window's result is sent once, when it closes (KIP-825). `timed`: the last call gives the time of a
    result, the highest one of the rows that the group has; otherwise it is the highest one of those that it has ever
    had.
    """

    results = True
    reads_all = False
    fits = value_of_items
    limits = ("window.grace",)

    over: Choice["stream", "table"]
    row: Schema
    calls: tuple[AggregateCall, ...]
    items: tuple[Item, ...]
    window: Window | None
    final: bool
    timed: bool = False
    op: Choice["aggregate"] = "aggregate"

    @property
    def branches(self) -> bool:
        """With a window: a record changes several windows, or closes them."""
        return self.window is not None

    begins_windows = branches

    @property
    def waits(self) -> bool:
        """A final result waits for its window to close."""
        return self.final

    @property
    def holds(self) -> int:
        """A final result, until its window closes."""
        return self.window.held if self.final and self.window is not None else 0

    @property
    def of_all_rows(self) -> bool:
        """For a table: a changed row's former values are taken back."""
        return self.over == "table"

    @property
    def keeps(self) -> str:
        """The state that each result is computed from."""
        if self.window is None:
            return "groups"
        return "sessions" if self.window.kind == "session" else "windows"

    def expressions(self, inputs: Schemas, own: Schema) -> Iterator[Placed]:
        """The arguments see the aggregated rows; the items see the group's key and the results of the calls."""
        for index, call in enumerate(self.calls):
            for number, argument in enumerate(call.args):
                yield f"calls/{index}/args/{number}", argument, (self.row,)
        results = tuple(Column(f"#{index}", call.type) for index, call in enumerate(self.calls))
        yield from placed("items", self.items, (Schema(own.key, results),))
