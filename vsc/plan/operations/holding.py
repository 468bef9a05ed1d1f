"""The operations that hold records back, or remember which they have had."""

from __future__ import annotations

from typing import Literal as Choice

from vsc.plan.facts import Facts, Schemas, always, same_schema
from vsc.plan.parts import Schema
from vsc.plan.record import record

__all__ = ["Distinct", "Reorder", "Suppress"]


@record
class Suppress(Facts):
    """Holds a table's changes back (KIP-328).

    `until` is ``window_closes``: one final row for each window, `wait` ms after the window's end (its grace, plus a
    session's gap; by the clock of the input 1 ms more where the end is inclusive, as the window is open until then); or
    ``time_limit``: at most one change of a key in `wait` ms. `max_records` and `max_bytes` bound what is held. When it
    is full, the oldest is sent early (``emit``) or the query fails (``fail``).
    """

    reads = ("table",)
    branches = waits = True
    asks_old = always
    fits = same_schema
    keeps = "suppressed"
    kept = "input"
    limits = ("wait", "max_records", "max_bytes", "when_full")

    until: Choice["window_closes", "time_limit"]
    wait: int
    max_records: int | None
    max_bytes: int | None
    when_full: Choice["emit", "fail"] | None
    op: Choice["suppress"] = "suppress"

    @property
    def holds(self) -> int:
        """The wait."""
        return self.wait

    @property
    def holds_windows(self) -> bool:
        """If it waits for them to close."""
        return self.until == "window_closes"


@record
class Distinct(Facts):
    """A stream without repeats: a record passes if no record of its key less than `within` ms away in time has passed.

    A record more than `within` + `grace` ms behind stream time does not pass. `rekeyed`: a `Rekey` called
    ``DISTINCT#rekey`` has made the columns that tell records apart the input's key. Each column of the result, key or
    value, is then a key or value column of the input.
    """

    reads_all = False
    tells_time = True
    hands_columns_on = True
    keeps = "passed"
    kept = "times"
    limits = ("grace",)

    within: int
    grace: int
    rekeyed: bool
    op: Choice["distinct"] = "distinct"

    @property
    def moves(self) -> bool:
        """If rekeyed: back to the stream's own key."""
        return self.rekeyed

    def fits(self, inputs: Schemas, own: Schema) -> bool:
        """Whether all columns are the input's."""
        return own == inputs[0] or (self.rekeyed and {*own.key, *own.value} <= {*inputs[0].key, *inputs[0].value})


@record
class Reorder(Facts):
    """Puts a stream's records in the order of their event times (the long-term vision of KIP-914).

    A record waits until stream time reaches its time + `within` ms; those that are due go on in the order of (time,
    place in D12's order). One that comes when stream time is more than that past its time is dropped: ``out_of_order``.
    Behind a source, it is called ``SOURCE#reorder``: the lowering adds it for the clause of that name.
    """

    waits = branches = True
    in_order = holds_all = True
    hands_columns_on = True
    fits = same_schema
    keeps = "waiting"
    kept = "input"
    limits = ("within",)

    within: int
    op: Choice["reorder"] = "reorder"

    @property
    def needs_key(self) -> bool:
        """No: it keeps records of one key in one place, and those without."""
        return False

    @property
    def holds(self) -> int:
        """As long as an earlier record may come."""
        return self.within
