"""What a run says about event times that cannot be: in another unit than the topology takes them for, or in the future.

Guarantees: at most one warning for each source and run; its rows are dropped and counted wherever they are (see
`vsc.runtime.operators.source.stage_zero`), also without one.
"""

from __future__ import annotations

import logging

from vsc.plan.nodes import Plan
from vsc.plan.words import rounded_duration
from vsc.runtime.errors import EventTimeWarning
from vsc.runtime.metrics import Dropped
from vsc.runtime.operators.source.rows import EventTimes
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.times import time_text
from vsc.runtime.units import unit_help

__all__ = ["TimeWarnings"]

_DAY = 86_400_000
_log = logging.getLogger(__name__)


class TimeWarnings:
    """The warnings of one run of `plan`, which go to Python's logging."""

    def __init__(self, plan: Plan) -> None:
        self._sources = {node.name: node.source for node in plan.sources}
        self._begun: set[str] = set()
        self._warned: set[str] = set()

    def tell(self, report: EpochReport) -> None:
        """Warns of what an epoch had."""
        for name, seen in sorted(report.times.items()):
            warning = None if name in self._begun else self._unit(name, seen, report)
            self._begun.add(name)
            if warning is None:
                warning = self._future(name, report)
            if warning is not None and name not in self._warned:
                self._warned.add(name)
                _log.warning(warning)

    def _unit(self, name: str, seen: EventTimes, report: EpochReport) -> EventTimeWarning | None:
        """Where all times of a source are better ones in another unit."""
        timestamp = self._sources[name].timestamp
        if timestamp is None or report.now is None:
            return None
        latest = min(max(report.latest.get(name, 0), report.now + _DAY), 2 * report.now)
        hint = unit_help(timestamp, seen.lowest, seen.highest, latest)
        if hint is None:
            return None
        unit, clause = hint
        rows = "the only row has the event time" if seen.rows == 1 else f"all {seen.rows:,} rows have event times from"
        span = "" if seen.rows == 1 else f" to {time_text(seen.highest)}"
        return EventTimeWarning(
            f"source '{name}': {rows} {time_text(seen.lowest)}{span}: `{timestamp.text}` is likely in {unit}",
            f"write `{clause}`",
        )

    def _future(self, name: str, report: EpochReport) -> EventTimeWarning | None:
        """Where a row is too far in the future."""
        row, ahead = report.metrics.examples().get((name, Dropped.IN_THE_FUTURE)), self._sources[name].max_ahead
        if row is None:
            return None
        bound, fix = "", "correct the row: years end with 9999"
        if ahead is not None:
            bound = f", {rounded_duration(ahead)} ahead of the run's clock"
            fix = "correct the row; if such times are right, give the source a longer `max_ahead`, or `none`"
        return EventTimeWarning(
            f"source '{name}': {row}{bound}. Such rows are dropped, and counted as in_the_future",
            fix,
        )
