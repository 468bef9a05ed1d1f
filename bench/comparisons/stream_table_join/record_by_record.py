"""The join by hand, as one writes it first: it handles each record as it comes, with one read of the state for each.

So a row of the table changes what later rows of the stream find, as in vsc. But the order of the two inputs' rows is
not reliable, and it has no stream time and no retention.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.comparisons.stream_table_join.by_hand import STATE, measure_by_hand
from bench.measuring import Measured
from bench.workload import Workload

__all__ = ["measure"]


class AsOfJoin(StatefulProcessor):
    """Keeps the versions of one currency and joins its payments with them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._versions = handle.getListState("versions", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Handles one record after the other."""
        for row in rows:
            if row.is_rate:
                self._versions.appendValue((row.at, row.rate))
            else:
                valid = [version for version in self._versions.get() if version[0] <= row.at]
                rate = max(valid)[1] if valid else None
                yield Row(id=row.id, currency=key[0], amount=row.amount, paid_at=row.at, rate=rate)

    def close(self) -> None:
        """Nothing to close."""


def measure(folder: Path, workload: Workload) -> Measured:
    """See `measure_by_hand`."""
    return measure_by_hand("record_by_record", AsOfJoin(), folder, workload)
