"""Whether epochs cost more as state grows: a query and its twin, which is seven epochs ahead, in one session.

The two take turns, an epoch each, so that both meet the same machine: within a minute, the CPU time of equal epochs
drifts by more than what is looked for. An epoch lasts from its files' appearance to its report. Nine epochs are
compared with nine, since some cost more than others: they write snapshots, or merge files of the state.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import cpu_seconds
from bench.workload import FILES_A_BATCH

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["AHEAD", "EPOCHS", "PAIRS", "WARM_UP", "Fed", "growth"]

AHEAD, WARM_UP, PAIRS = 7, 2, 9
EPOCHS = AHEAD + WARM_UP + PAIRS
"""How many epochs of files it takes."""
_SECONDS = 120
"""How long an epoch may take."""


@dataclass
class Fed:
    """The folders of a query's sources, to which files are added epoch by epoch.

    `files` has a folder of the files of all epochs for each source, `into` gets one; `sources` has the rows of a file.
    """

    files: Path
    into: Path
    sources: Mapping[str, int]
    _epochs: int = field(default=0, init=False)
    _read: int = field(default=0, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)

    def __post_init__(self) -> None:
        for source in self.sources:
            (self.into / source).mkdir(parents=True)

    def heard(self, report: EpochReport) -> None:
        """To be called after each epoch of the query."""
        with self._changed:
            self._read += sum(report.read.values())
            self._changed.notify()

    def feed(self, query: StreamingQuery, epochs: int = 1) -> float:
        """Adds the next epochs and waits until the query has done them. Returns the CPU seconds of all processes."""
        began = cpu_seconds(os.getpid())
        first, end = self._epochs * FILES_A_BATCH, (self._epochs + epochs) * FILES_A_BATCH
        for source in self.sources:
            for file in sorted((self.files / source).iterdir())[first:end]:
                os.link(file, self.into / source / file.name)
        self._epochs += epochs
        expected = sum(self.sources.values()) * end
        with self._changed:
            done = self._changed.wait_for(lambda: self._read >= expected, _SECONDS * epochs)
        if not done:
            raise RuntimeError(f"{self._read} rows instead of {expected}: {query.exception() or query.status}")
        return cpu_seconds(os.getpid()) - began


def growth(early: Fed, late: Fed, start: Callable[[Fed], StreamingQuery]) -> float:
    """The CPU time of `PAIRS` epochs, divided by that of the epochs `AHEAD` later."""
    ahead = start(late)
    late.feed(ahead, AHEAD)
    behind = start(early)
    used = [(early.feed(behind), late.feed(ahead)) for _ in range(WARM_UP + PAIRS)][WARM_UP:]
    for query in (ahead, behind):
        query.stop()
    return sum(one for one, _ in used) / sum(other for _, other in used)
