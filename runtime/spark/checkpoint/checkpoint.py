"""The identity of a checkpoint: which plan it belongs to, how many partitions, and its id.

Layout, beside Spark's own folders in the checkpoint:

    vsc/identity.json      {"format": 3, "id": ..., "partitions": ..., "plan": name of the topology,
                            "plan_check": CRC-32 of plan.json, "plan_check_before": that of the plan it takes the
                            place of, which stands there until it is written}
    vsc/plan.json          the plan, unresolved: variables stay variables, so no secrets
    vsc/control/*.txt      the control source
    vsc/sources/N/         the snapshot of a source that is read once
    vsc/schemas/N.json     the schemas of source N, vsc/schemas/sink-N.json those of a sink, from a schema registry
    vsc/epochs/N.json      what epoch N did (the newest few)
    vsc/inputs/N.json      for which sources epoch N waits, from before it runs (the newest few)
    vsc/logs.json          the checksums of Spark's logs, on a local disk (`log_sums`)
    vsc/back/N.json        epoch N is being gone back to (`go_back`); nothing when that is done
    vsc/upgrade.json       which checkpoint it goes on from, vsc/successor.json which one goes on from it
                           (`vsc.runtime.spark.checkpoint.ancestry`)
    vsc/purge.json         keys are being purged (`vsc.runtime.spark.checkpoint.replacing`)

The JSON files other than the plan end with a member "check", the CRC-32 of those before it.

Guarantees: a plan that the checkpoint cannot go on with (`vsc.changes.in_place`), another number of partitions, another
format version and a folder that is not vsc's are refused before anything is written, with what differs and what to do.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from vsc.changes import Change
from vsc.plan import Clock, Plan, dump
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import (
    RESTORE,
    ReadableFiles,
    damaged,
    epochs_in,
    read_checksummed,
    with_checksum,
)
from vsc.runtime.spark.base.hadoop import Files, file_errors_as
from vsc.runtime.spark.checkpoint.ancestry import check_current, check_finished
from vsc.runtime.spark.checkpoint.identity import FORMAT, IDENTITY, PLAN, Identity, changes_in_place, read_identity
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.exchange.counters import EpochReport
from vsc.runtime.spark.exchange.pace import Pace
from vsc.runtime.spark.state.control import DRAIN, START, WAKE, quiet_line

__all__ = ["SPARK_NAMES", "Checkpoint", "checked_identity"]

KEPT_EPOCHS = 100
_FIRST = "0-start.txt"
_EPOCHS, _INPUTS, _BACK = "vsc/epochs", "vsc/inputs", "vsc/back"
_log = logging.getLogger(__name__)
SPARK_NAMES = frozenset({"offsets", "commits", "sources", "state", "metadata"})
"""What Spark makes in a checkpoint."""


class _Sink(Protocol):
    def check_back_to(self, epoch: int) -> None:
        """Refuses what `back_to` could not do."""

    def back_to(self, epoch: int) -> None:
        """Forgets what epochs after that one wrote."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened checkpoint: see `open`. `changes`: how its plan changes as it goes on; None if it does not. `former`:
    it has a former format. `clock`: that of the plan that it was begun with; None if it is fresh."""

    files: Files
    id: str
    partitions: int
    fresh: bool
    changes: tuple[Change, ...] | None = None
    ancestors: tuple[str, ...] = ()
    former: bool = False
    clock: Clock | None = None

    @classmethod
    def open(cls, spark: SparkSession, path: str, plan: Plan, partitions: int | None) -> Checkpoint:
        """Opens the checkpoint, or a `fresh` one, which `create` writes. Raises CheckpointError if it is refused.

        `partitions` None: what the checkpoint has, else 4.
        """
        if partitions is not None and partitions < 1:
            raise CheckpointError(f"there cannot be {partitions} partitions", "give a number from 1 on")
        if not path.strip():
            raise CheckpointError("the checkpoint has no name", "give the path of a separate folder")
        with _explaining_errors(path):
            files = Files(spark, path)
            identity, changes = checked_identity(files, path, plan, partitions)
        if identity is None:
            return cls(files, uuid.uuid4().hex, partitions or 4, True)
        former = identity.format < FORMAT
        return cls(files, identity.id, identity.partitions, False, changes, identity.ancestors, former, identity.clock)

    def check_same(self) -> None:
        """CheckpointError if it is not what was opened any more, as keys were purged. The caller has claimed it."""
        check_finished(self.files)
        if not self.fresh and read_identity(self.files).id != self.id:
            raise CheckpointError(
                f"the checkpoint {self.files.root} was replaced while this run began: keys were purged from it",
                "repeat the command",
            )

    def create(self, plan: Plan) -> None:
        """Writes a fresh checkpoint: from now on it is for `plan` alone. CheckpointError if the folder is unusable.

        The caller has claimed the folder.
        """
        with _explaining_errors(self.files.root):
            if self.files.exists(IDENTITY):
                raise CheckpointError(
                    f"another query has made the checkpoint {self.files.root} just now",
                    "give one of them another folder",
                )
            for folder in ("vsc/control", _EPOCHS, _INPUTS):
                self.files.make(folder)
            self.files.write(f"vsc/control/{_FIRST}", START + "\n")
            identity = Identity(self.id, self.partitions, dump(plan), self.ancestors)
            self.files.write(PLAN, identity.plan_text)
            self.files.write(IDENTITY, identity.dump(plan.name))

    def take(self, plan: Plan) -> None:
        """From now on the checkpoint is for `plan`, with which it can go on, and of the present format. The
        caller has claimed it."""
        if self.changes is not None or self.former:
            before, now = read_identity(self.files), Identity(self.id, self.partitions, dump(plan), self.ancestors)
            self.files.write(IDENTITY, now.dump(plan.name, before.plan_text))
            self.files.write(PLAN, now.plan_text)

    @property
    def kept(self) -> str:
        """The folder in which sources keep what they have taken, each in one of its own."""
        return self.files.path("vsc/sources")

    @property
    def begun(self) -> bool:
        """Whether a query may have read rows."""
        return bool(self.files.names("offsets"))

    @property
    def control(self) -> str:
        """The folder of the control source."""
        return self.files.path("vsc/control")

    def mend_control(self) -> None:
        """Makes the folder of the control source again, if somebody has removed it. All but the first line in it is
        read once, and then removed anyway."""
        if not self.files.exists("vsc/control"):
            self.files.make("vsc/control")
            self.files.write(f"vsc/control/{_FIRST}", START + "\n")

    def request_drain(self) -> None:
        """Asks every partition, in an epoch to come, to move its clocks to the end."""
        self.files.write(f"vsc/control/{uuid.uuid4().hex}-{DRAIN}.txt", DRAIN + "\n")

    def request_quiet(self, time: int, sources: Iterable[str]) -> None:
        """Asks every partition, in an epoch to come, to move the clocks of sources that bring nothing to `time`."""
        self.files.write(f"vsc/control/{uuid.uuid4().hex}-quiet.txt", quiet_line(time, sources) + "\n")

    def request_wake(self) -> None:
        """Asks for an epoch, even if there is nothing to read, in which every partition is called."""
        self.files.write(f"vsc/control/{uuid.uuid4().hex}-{WAKE}.txt", WAKE + "\n")

    def keep(self, report: EpochReport) -> None:
        """Keeps what an epoch did; forgets the oldest."""
        self._keep(_EPOCHS, report.epoch, report.as_dict())

    def reports(self) -> Iterator[EpochReport]:
        """The reports of the newest epochs, oldest first."""
        for epoch in sorted(epochs_in(self.files, _EPOCHS)):
            try:
                yield self._report(epoch)
            except CheckpointError as error:
                _log.warning("%s: that epoch is left out of what is shown", error.message)

    def report(self, epoch: int) -> EpochReport | None:
        """What `epoch` did; None if its report is not kept."""
        return self._report(epoch) if self.files.exists(f"{_EPOCHS}/{epoch}.json") else None

    def newest(self) -> EpochReport | None:
        """The report of the newest epoch that has one."""
        epochs = epochs_in(self.files, _EPOCHS)
        return self.report(max(epochs)) if epochs else None

    def forget_written(self, sinks: Collection[str]) -> None:
        """Forgets what was written by sinks whose numbers belong to others now."""
        for report in self.reports() if sinks else ():
            if any([report.written.pop(sink, 0) for sink in sinks]):
                self.files.write(f"{_EPOCHS}/{report.epoch}.json", with_checksum(report.as_dict()))

    def keep_pace(self, epoch: int, pace: str) -> None:
        """Keeps the pace of an epoch (`vsc.runtime.spark.exchange.pace`) before it runs; forgets the oldest."""
        self._keep(_INPUTS, epoch, {"pace": pace})

    def pace(self, epoch: int) -> str | None:
        """The pace kept for `epoch`, or None. Raises CheckpointError if it is damaged."""
        name = f"{_INPUTS}/{epoch}.json"
        return str(read_checksummed(self.files, name).get("pace")) if self.files.exists(name) else None

    def identities(self, newest: int) -> dict[str, str]:
        """The identities of what was read and written, by the names of sources and sinks (`connectors.end`), after the
        `newest` epoch that was begun: its own may not be kept yet."""
        paces = [text for epoch in (newest - 1, newest) if (text := self.pace(epoch)) is not None]
        return {name: id for text in paces for name, id in Pace.load(text).topics.items()}

    def followed(self, done: int, newest: int) -> Iterator[tuple[int, CheckpointError]]:
        """What is wrong, and from which epoch on, with what the next epoch of a plan whose sources keep step follows
        from: pace and report of the newest epoch that is `done`, and what there is of the `newest` one, if it is not.
        """
        for epoch in range(max(done, 0), newest + 1):
            must = epoch <= done or self.files.exists(f"{_EPOCHS}/{epoch}.json")
            for folder, read in ((_INPUTS, self.pace), (_EPOCHS, self.report)):
                try:
                    if read(epoch) is None and must:
                        yield epoch, CheckpointError(f"{self.files.path(f'{folder}/{epoch}.json')} is missing")
                except CheckpointError as error:
                    yield epoch, error

    def go_back(self, sinks: Sequence[_Sink], epoch: int | None) -> None:
        """Goes back to the state after `epoch`, or to where a run that has ended was going; None and nowhere: does
        nothing. What came later is forgotten, here and in the sinks.

        CheckpointError if that state is not kept, SinkError if a sink cannot go back: nothing is changed before that is
        known. A crash in the middle does no harm: the checkpoint says first where it goes, and the next run finishes
        it before it does anything else.
        The caller has claimed the checkpoint.
        """
        begun = epochs_in(self.files, _BACK)
        target = min(begun | ({epoch} if epoch is not None else set()), default=None)
        if target is None:
            return
        logs = SparkLogs(self.files)
        logs.check_kept(target)
        for sink in sinks:
            sink.check_back_to(target)
        if target not in begun:
            self.files.write(f"{_BACK}/{target}.json", with_checksum({"epoch": target}))
        logs.forget_after(target)
        self.forget_after(target)
        for sink in sinks:
            sink.back_to(target)
        self.files.delete(_BACK)

    def forget_after(self, epoch: int) -> None:
        """Forgets the reports and paces of later epochs, and what partitions were to learn in them.

        All of the control source but its first line: what earlier epochs have read of it is not read again.
        """
        for name in self.files.names("vsc/control"):
            if name != _FIRST:
                self.files.delete(f"vsc/control/{name}")
        for folder in (_EPOCHS, _INPUTS):
            for number in sorted(epochs_in(self.files, folder), reverse=True):
                if number > epoch:
                    self.files.delete(f"{folder}/{number}.json")

    def _keep(self, folder: str, epoch: int, data: dict[str, Any]) -> None:
        self.files.write(f"{folder}/{epoch}.json", with_checksum(data))
        if epoch >= KEPT_EPOCHS:
            self.files.delete(f"{folder}/{epoch - KEPT_EPOCHS}.json")

    def _report(self, epoch: int) -> EpochReport:
        name = f"{_EPOCHS}/{epoch}.json"
        try:
            report = EpochReport.from_dict(read_checksummed(self.files, name))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise damaged(self.files, name, "it is not a report") from error
        if report.epoch != epoch:
            raise damaged(self.files, name, "it is the report of another epoch")
        return report


def checked_identity(
    files: ReadableFiles, path: str, plan: Plan, partitions: int | None, topology: str = "TOPOLOGY"
) -> tuple[Identity | None, tuple[Change, ...] | None]:
    """The identity of the checkpoint in `files`, None for a fresh one, and what `changes_in_place` says.

    CheckpointError if the checkpoint is refused. `topology` is the text of `plan`, as a command names it.
    """
    check_finished(files)
    if not files.exists(IDENTITY):
        found = [name for name in files.names() if not name.startswith(".") and name != "vsc"]
        if found and files.exists(PLAN):
            raise CheckpointError(f"{files.root.rstrip('/')}/{IDENTITY} is missing", RESTORE)
        if SPARK_NAMES & set(found):
            raise CheckpointError(
                f"the checkpoint folder {path} is a checkpoint of another Spark query, or its folder vsc is gone",
                "give a separate folder; or restore the folder vsc from a copy",
            )
        if found:
            raise CheckpointError(f"the checkpoint folder {path} is not empty ({found[0]})", "give a separate folder")
        return None, None
    identity = read_identity(files)
    check_current(files)
    changes = changes_in_place(files, identity, plan, topology)
    if partitions not in (None, identity.partitions):
        raise CheckpointError(
            f"the checkpoint {files.root} has {identity.partitions} partitions, not {partitions}",
            f"run it with --partitions {identity.partitions}, or carry it over: vsc upgrade {topology} "
            f"--from {files.root} --checkpoint NEW_FOLDER --partitions {partitions}",
        )
    return identity, changes


def _explaining_errors(path: str) -> AbstractContextManager[None]:
    return file_errors_as(
        CheckpointError, f"the checkpoint folder {path}", "give a folder that can be made and written"
    )
