"""The rows that the system of a sink refuses, as dead letters of the node that the sink writes.

They are known only once that sink has written its epoch, so it goes first, and keeps them with the epoch: a repeated
epoch has the same ones. Then they join what the epoch gives to the sinks of dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from vsc.plan.nodes import DeadLetters, Plan
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.operators.dead_letters import Letters, Lost, letters_of
from vsc.runtime.operators.in_step import Frontier
from vsc.runtime.operators.result import drained
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.digest import ContentDigest
from vsc.runtime.spark.exchange.wire import SINK, WIRE_DDL, WireRow, pieces, slots, wire_columns

__all__ = ["Refusals", "RefusedRow", "keeps_refused"]

_REFUSED = 1 << 20
"""The place of refused rows: behind whatever the end of the input brings out of a stage."""


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that a system refuses: its key and value as JSON, and what the system says."""

    key: str | None
    value: str | None
    message: str


def keeps_refused(plan: Plan, sink: str) -> bool:
    """Whether a sink's refused rows go to another sink; not those of a sink of dead letters."""
    node = next(plan.node(one.node) for one in plan.sinks if one.id == sink)
    letters = isinstance(node.operation, DeadLetters)
    return not letters and bool(Letters(plan).takers(Dropped, node.owner))


class Refusals:
    """The rows that the sinks of a plan refuse, with so many vsc partitions."""

    def __init__(self, plan: Plan, partitions: int) -> None:
        self._plan, self._partitions, self._letters = plan, partitions, Letters(plan)
        self._nodes = {sink.id: plan.node(sink.node) for sink in plan.sinks}

    def takes(self, sink: str) -> bool:
        """Whether it is a sink of dead letters."""
        return isinstance(self._nodes[sink].operation, DeadLetters)

    def joined(
        self, batch: DataFrame, report: EpochReport, found: Sequence[tuple[str, Sequence[RefusedRow]]]
    ) -> DataFrame:
        """The blobs of an epoch with those of the rows that sinks have refused; the report counts them as well."""
        rows = [
            row for number, (sink, refused) in enumerate(found) for row in self._rows(report, sink, refused, number)
        ]
        if not rows:
            return batch
        columns = wire_columns(rows, slots(self._partitions))
        frame = batch.sparkSession.createDataFrame(list(zip(*columns.values(), strict=True)), WIRE_DDL)
        return batch.unionAll(frame.coalesce(1))

    def _rows(self, report: EpochReport, sink: str, refused: Sequence[RefusedRow], number: int) -> Iterator[WireRow]:
        """The blobs of one sink's refused rows, for each sink that takes them."""
        if not refused:
            return
        owner, count = self._nodes[sink].owner, len(refused)
        report.metrics.count(owner, Group.DROPPED_RECORDS, Dropped.REFUSED, count)
        origins, order = drained(len(self._plan.stages), _REFUSED + number, 0, range(count))
        lost = Lost(
            self._letters.takers(Dropped, owner), owner, Dropped.REFUSED.value, np.arange(count), False,
            self._letters.source(self._nodes[sink].name), [None] * count, [row.key for row in refused],
            [row.value for row in refused], [row.message for row in refused],
        )  # fmt: skip
        for name, letters in letters_of(
            self._letters, [lost], origins, lambda lost: (order.take(lost.cause), lost.cause)
        ):
            digest = ContentDigest()
            digest.update(letters)
            for taker in (one for one in self._plan.sinks if one.node == name):
                report.written[taker.id] += len(letters)
                report.digest(taker.id, digest.value())
                for piece in pieces(letters):
                    yield WireRow(SINK, taker.id, 0, piece.to_ipc(), Frontier.at(piece).place.encoded)
