"""The join by hand, written for speed: all rows of a key in a batch are joined with one read of its versions.

Each key has a list of versions: table rows are added to it, stream rows search it. It has no stream time, no retention
and no order between the two inputs except "the batch's table rows first", which is not what Kafka Streams does.
"""

from __future__ import annotations

from bisect import bisect_right
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
        """Adds the table rows of the batch first."""
        incoming = list(rows)
        added = [(row.at, row.rate) for row in incoming if row.is_rate]
        if added:
            self._versions.appendList(added)
        versions = sorted((v[0], v[1]) for v in self._versions.get())
        times = [at for at, _ in versions]
        for row in incoming:
            if not row.is_rate:
                place = bisect_right(times, row.at) - 1
                rate = versions[place][1] if place >= 0 else None
                yield Row(id=row.id, currency=key[0], amount=row.amount, paid_at=row.at, rate=rate)

    def close(self) -> None:
        """Nothing to close."""


def measure(folder: Path, workload: Workload) -> Measured:
    """See `measure_by_hand`."""
    return measure_by_hand("key_by_key", AsOfJoin(), folder, workload)
