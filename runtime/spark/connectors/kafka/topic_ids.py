"""Which topics the Kafka sources and sinks of a query have. One that was deleted and created again has the name of
another one, and other records under its offsets: Spark goes on at them without a word.

Kafka gives each topic an id. Those of an epoch are kept in its pace (`exchange.pace`). They are compared when
a run begins and, those of sources, before anything of an epoch shows in a sink. Guarantees: a query does not read on in
another topic, unless its source says so with `OPTION`: then a run begins with all of that one, and a run that goes on
counts what it does not read of it. Such a source also counts the records that Kafka has deleted before they were read,
by their offsets: gaps of transactions and of compaction count only among those. Of a sink, a warning says what is
missing.

A checkpoint that has no ids (of a former vsc) is taken to have read the topics that are there now. Not for brokers
before 2.8, which give no ids.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping

from vsc.plan.words import counted
from vsc.runtime.errors import SourceError
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.sink import ONLY_NEW, OpenSink
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import Pace

__all__ = ["OPTION", "Topics", "known_after", "known_topics", "lost", "skipped"]

OPTION = "failOnDataLoss"
"""Spark's option of a Kafka source; 'false' lets it go on without records that are gone."""
_STOP = "start with a new checkpoint; or write 'failOnDataLoss' = 'false', to go on with all that the new topic holds"
_SINK = "to "
"""What stands before the name of a sink's topic, among the ids; a source goes by its number in Spark's logs."""
_log = logging.getLogger(__name__)

Offsets = Mapping[tuple[str, int], int]
Places = Callable[[], Mapping[str, Offsets]]


class Topics:
    """The topics of a plan. `ask` gives the id of a topic, `ranges` the first and last offsets of a source's topics."""

    def __init__(
        self,
        sources: Iterable[OpenSource],
        sinks: Iterable[OpenSink],
        ask: Callable[[Options], str | None],
        ranges: Callable[[Options], Mapping[int, tuple[int, int]]],
    ) -> None:
        found = [(one.number, one.node.name, one.options) for one in sources]
        self._sources = [one for one in found if one[2].connector.kind == "kafka"]
        self._sinks = [one.options for one in sinks if one.options.connector.kind == "kafka"]
        self._ask, self._ranges = ask, ranges
        self.ids: dict[str, str] = {}
        """The id of each topic of this run."""

    def begin(self, checkpoint: Checkpoint) -> None:
        """Compares the topics with those of the checkpoint. SourceError if one that is read was created again; a source
        that may go on begins again there. The caller has claimed the checkpoint."""
        if not self._sources and not self._sinks:
            return
        known = {} if checkpoint.fresh else known_topics(checkpoint, SparkLogs(checkpoint.files).newest)
        for number, _, options in self._sources:
            if self._is_new(str(number), options, known):
                self._begin_again(checkpoint, number, options)
        for options in self._sinks:
            if self._is_new(_SINK + options.text("topic"), options, known):
                _log.warning(f"{_recreated(options)} since the checkpoint wrote to it; {ONLY_NEW}")

    def check(self, report: EpochReport, begins: Places, ends: Places) -> bool:
        """SourceError if a topic was created again while an epoch was read, from `begins` to `ends` by source. Where a
        source may go on, counts in the report what it has lost. Whether `ids` are others now."""
        before = dict(self.ids)
        for number, name, options in self._sources:
            is_new = self._is_new(str(number), options, before)
            if not _goes_on(options):
                if is_new:
                    raise SourceError(f"{_recreated(options)} while the query read it", _STOP)
                continue
            first = {(options.text("topic"), part): low for part, (low, _) in self._ranges(options).items()}
            gone = (skipped if is_new else lost)(begins()[name], ends()[name], first)
            report.metrics.count(name, Group.DROPPED_RECORDS, Dropped.LOST, gone)
            if is_new:
                what = f"epoch {report.epoch} goes on in the new one, behind its first {counted(gone, 'record')}"
                _log.warning(f"{_recreated(options)} while the query read it: {what}, counted as lost")
            elif gone:
                what = f"Kafka has deleted {counted(gone, 'record')} that epoch {report.epoch} had to read"
                _log.warning(f"{options.place}: {what}, counted as lost")
        return self.ids != before

    def _is_new(self, name: str, options: Options, known: Mapping[str, str]) -> bool:
        """Whether a topic is not the one that is `known`; takes note of it."""
        now = self._ask(options)
        before = None if now is None else known.get(name)
        if now is not None:
            self.ids[name] = now
        return before is not None and before != now

    def _begin_again(self, checkpoint: Checkpoint, number: int, options: Options) -> None:
        if not _goes_on(options):
            raise SourceError(f"{_recreated(options)} since this checkpoint read it", _STOP)
        logs = SparkLogs(checkpoint.files)
        done = logs.done
        if logs.newest > done:
            way = f"run with --back-to {done}, which forgets that epoch" if done >= 0 else "start with a new checkpoint"
            raise SourceError(f"{_recreated(options)}: epoch {logs.newest}, which had begun, cannot be read again", way)
        first = {str(part): low for part, (low, _) in self._ranges(options).items()}
        logs.move_source(number, json.dumps({options.text("topic"): first}))
        _log.warning(
            f"{_recreated(options)}: what the old one held is lost, as far as it was not read; "
            "the new one is read from its beginning"
        )


def known_topics(checkpoint: Checkpoint, newest: int) -> dict[str, str]:
    """The ids of the topics of a checkpoint after the `newest` epoch that was begun: of that one they may not be kept
    yet."""
    paces = [text for epoch in (newest - 1, newest) if (text := checkpoint.pace(epoch)) is not None]
    return {number: id for text in paces for number, id in Pace.load(text).topics.items()}


def known_after(known: Mapping[str, str], numbers: Mapping[str, str]) -> dict[str, str]:
    """The `known` ids where sources that go on have other numbers, by the old ones."""
    named = {name: name for name in known if name.startswith(_SINK)} | dict(numbers)
    return {named[name]: id for name, id in known.items() if name in named}


def lost(begins: Offsets, ends: Offsets, first: Offsets) -> int:
    """How many of the offsets of an epoch Kafka no longer has: the `first` that it has of a partition is beyond them,
    or the partition is gone. A partition that is new begins at 0."""
    return sum(max(0, min(first.get(part, end), end) - begins.get(part, 0)) for part, end in ends.items())


def skipped(begins: Offsets, ends: Offsets, first: Offsets) -> int:
    """How many offsets of a topic that was created again an epoch has not read, nor will a later one: those from the
    `first` on that are in front of what it read."""
    read = {part: min(begins.get(part, 0), end) for part, end in ends.items()}
    return sum(max(0, at - first[part]) for part, at in read.items() if part in first)


def _goes_on(options: Options) -> bool:
    return options.spark_word(OPTION) == "false"


def _recreated(options: Options) -> str:
    return f"{options.place}: the topic {options.text('topic')!r} was deleted and created again"
