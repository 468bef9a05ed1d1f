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

from vsc.plan.words import counted
from vsc.runtime.errors import SourceError
from vsc.runtime.metrics import Dropped, Group
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.kafka.topics import TopicLook
from vsc.runtime.spark.connectors.source import OpenSource
from vsc.runtime.spark.connectors.spark_source import Input, Offsets
from vsc.runtime.spark.exchange.counters import EpochReport

__all__ = ["OPTION", "ReadTopic", "lost", "recreated", "skipped"]

OPTION = "failOnDataLoss"
"""Spark's option of a Kafka source; 'false' lets it go on without records that are gone."""
_STOP = "start with a new checkpoint; or write 'failOnDataLoss' = 'false', to go on with all that the new topic holds"
_log = logging.getLogger(__name__)


class ReadTopic:
    """The topic that a source reads, of which `look` tells. `id`: None if the broker gives none."""

    def __init__(self, source: OpenSource, look: TopicLook) -> None:
        self._source, self._options, self._look = source, source.options, look
        self.id: str | None = None

    def begin(self, checkpoint: Checkpoint, known: str | None) -> None:
        """Compares the topic with the one that the checkpoint knows. SourceError if it was created again, unless the
        source may go on: then it begins again there. The caller has claimed the checkpoint."""
        if not self._is_other(known):
            return
        if not self._goes_on:
            raise SourceError(f"{recreated(self._options)} since this checkpoint read it", _STOP)
        logs = SparkLogs(checkpoint.files)
        done = logs.done
        if logs.newest > done:
            way = f"run with --back-to {done}, which forgets that epoch" if done >= 0 else "start with a new checkpoint"
            raise SourceError(
                f"{recreated(self._options)}: epoch {logs.newest}, which had begun, cannot be read again", way
            )
        first = {str(part): low for part, (low, _) in self._look.ranges(self._options).items()}
        logs.move_source(self._source.number, json.dumps({self._options.text("topic"): first}))
        _log.warning(
            f"{recreated(self._options)}: what the old one held is lost, as far as it was not read; "
            "the new one is read from its beginning"
        )

    def check(self, report: EpochReport, running: Input) -> None:
        """SourceError if the topic was created again while an epoch was read. Where the source may go on, counts in the
        report what it has lost."""
        is_other = self._is_other(self.id)
        if not self._goes_on:
            if is_other:
                raise SourceError(f"{recreated(self._options)} while the query read it", _STOP)
            return
        topic, ranges = self._options.text("topic"), self._look.ranges(self._options)
        first = {(topic, part): low for part, (low, _) in ranges.items()}
        gone = (skipped if is_other else lost)(running.begins() or {}, running.ends() or {}, first)
        report.metrics.count(self._source.node.name, Group.DROPPED_RECORDS, Dropped.LOST, gone)
        if is_other:
            what = f"epoch {report.epoch} goes on in the new one, behind its first {counted(gone, 'record')}"
            _log.warning(f"{recreated(self._options)} while the query read it: {what}, counted as lost")
        elif gone:
            what = f"Kafka has deleted {counted(gone, 'record')} that epoch {report.epoch} had to read"
            _log.warning(f"{self._options.place}: {what}, counted as lost")

    @property
    def _goes_on(self) -> bool:
        return self._options.spark_word(OPTION) == "false"

    def _is_other(self, known: str | None) -> bool:
        """Whether the topic is not the one that is `known`; takes note of it."""
        now = self._look.id(self._options)
        self.id = now if now is not None else self.id
        return None not in (now, known) and now != known


def lost(begins: Offsets, ends: Offsets, first: Offsets) -> int:
    """How many of the offsets of an epoch Kafka no longer has: the `first` that it has of a partition is beyond them,
    or the partition is gone. A partition that is new begins at 0."""
    return sum(max(0, min(first.get(part, end), end) - begins.get(part, 0)) for part, end in ends.items())


def skipped(begins: Offsets, ends: Offsets, first: Offsets) -> int:
    """How many offsets of a topic that was created again an epoch has not read, nor will a later one: those from the
    `first` on that are in front of what it read."""
    read = {part: min(begins.get(part, 0), end) for part, end in ends.items()}
    return sum(max(0, at - first[part]) for part, at in read.items() if part in first)


def recreated(options: Options) -> str:
    """That the topic of a connector is another one, for a message."""
    return f"{options.place}: the topic {options.text('topic')!r} was deleted and created again"
