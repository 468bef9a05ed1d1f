"""An upgrade, from the look at both sides to the new checkpoint's identity."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from vsc.changes import Change, Verdict, compare
from vsc.plan import Plan
from vsc.plan.words import bytes_text, counted
from vsc.runtime.errors import CheckpointError, UpgradeError
from vsc.runtime.metrics import Group
from vsc.runtime.operators.carry import Carry
from vsc.runtime.operators.steps import stages_in_step, steps_to
from vsc.runtime.spark.base.checksummed import ReadableFiles, epochs_in
from vsc.runtime.spark.base.disks import disk_of
from vsc.runtime.spark.base.hadoop import Files, default_is_local, is_local, local_path
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.claim import claim, held_off
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.checkpoint.identity import IDENTITY, Identity, read_identity
from vsc.runtime.spark.checkpoint.lineage import ORIGIN, Origin, check_current, check_finished
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.file_rows import files_there
from vsc.runtime.spark.connectors.kafka.topic_ids import known_after, known_topics
from vsc.runtime.spark.connectors.registry import connector_of
from vsc.runtime.spark.exchange.pace import Pace, Wait
from vsc.runtime.spark.query.preflight import check
from vsc.runtime.spark.upgrade.carried import SEEDING, Moved, State
from vsc.runtime.spark.upgrade.decisions import check_decided, check_placed, covered, settled_positions
from vsc.runtime.spark.upgrade.positions import Position, positions, write_positions

__all__ = ["Upgrade", "looked_at", "upgrade"]

_BEFORE = -1
"""The epoch before the first."""
_MADE = ("sources", "vsc/control", "vsc/sources", "vsc/inputs", "vsc/epochs", SEEDING, "vsc/plan.json")
"""What a killed upgrade may have left, beside its origin."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What to do: the new plan, the paths of the old and the new checkpoint, and the decisions about stores."""

    plan: Plan
    old: str
    new: str
    variables: Mapping[str, str]
    partitions: int | None = None
    reset: frozenset[str] = frozenset()
    accept: frozenset[str] = frozenset()
    dry_run: bool = False
    positions: Mapping[str, str] = field(default_factory=dict)
    """Where sources begin, by name, instead of where the old query stopped."""


def looked_at(job: Upgrade, old: ReadableFiles, new: ReadableFiles | None) -> tuple[Change, ...]:
    """What the new plan changes. VscRuntimeError if the names or small files of a folder show a problem. `new` None:
    only the old folder is checked."""
    check_finished(old)
    identity = read_identity(old)
    check_current(old)
    if new is not None:
        _check_apart(old.root, new.root)
        _check_target(new)
    planned, done = epochs_in(old, "offsets"), epochs_in(old, "commits")
    if not done:
        raise CheckpointError(
            f"the query of {old.root} has not committed an epoch yet", "nothing is lost with a new checkpoint"
        )
    if max(planned, default=_BEFORE) > max(done) or epochs_in(old, "vsc/back"):
        raise UpgradeError(
            f"the checkpoint {old.root} has an epoch that was begun and has not ended: its rows may be in the sinks",
            "run the old topology once more until it has ended, then upgrade",
        )
    return compare(identity.plan(old), job.plan)


def _check_apart(old: str, new: str) -> None:
    """CheckpointError for a new checkpoint that is the old one, or in it, or around it."""
    was, now = (_path(root) for root in (old, new))
    if was == now:
        raise CheckpointError(f"{old} is the old checkpoint", "give --checkpoint a new folder")
    if f"{now}/".startswith(f"{was}/") or f"{was}/".startswith(f"{now}/"):
        where = "in" if len(now) > len(was) else "around"
        raise CheckpointError(f"{new} is {where} the old checkpoint {old}", "give --checkpoint a folder beside it")


def _path(root: str) -> str:
    """A folder under the one name by which it can be compared with others."""
    return os.path.realpath(local_path(root)) if is_local(root) else root.rstrip("/")


def _check_target(files: ReadableFiles) -> None:
    """CheckpointError for a folder in which a new checkpoint cannot be made. An unfinished upgrade is redone."""
    if files.exists(IDENTITY):
        raise CheckpointError(
            f"{files.root} is a checkpoint already",
            "give --checkpoint a new folder; or, if it was made by this upgrade, run it with `vsc run`",
        )
    found = [name for name in files.names() if not name.startswith(".") and name != "vsc"]
    if found and not files.exists(ORIGIN):
        raise CheckpointError(f"the folder {files.root} is not empty ({found[0]})", "give --checkpoint a new folder")


def _begin(files: Files, origin: Origin) -> None:
    """Clears what an unfinished upgrade has left, and notes that one has begun. The caller holds the claim."""
    _check_target(files)  # once more: another upgrade may have ended since
    if files.exists(ORIGIN):
        for name in _MADE:
            files.delete(name)
    files.write(ORIGIN, origin.dump())


def upgrade(job: Upgrade, spark: SparkSession, tell: Callable[[str], None]) -> Moved | None:
    """Makes the new checkpoint; None for a dry run. VscRuntimeError if it is refused, before anything is written."""
    old, new = Files(spark, job.old), Files(spark, job.new)
    changes, identity = looked_at(job, old, new), read_identity(old)
    check_decided(changes, job.reset, job.accept)
    check_placed(changes, job.plan, job.positions)
    resolved = check(job.plan, job.variables, "available-now", default_local=default_is_local(spark))
    placed = settled_positions(resolved, job.positions)
    with held_off(spark, old):
        SparkLogs(old).check()
        state = EpochState.open(spark, job.old)
        there = [c for c in changes if c.kind == "source" and c.verdict not in (Verdict.NEW, Verdict.DROPPED)]
        names = {change.name: change.was or change.name for change in there}
        going_on = positions(state.plan, resolved, names, SparkLogs(old).offsets(state.epoch), placed)
        reset, accept = covered(job.reset, changes), covered(job.accept, changes)
        partitions = job.partitions or identity.partitions
        carry = Carry.of(state.plan, job.plan, identity.partitions, partitions, reset, accept)
        for node in resolved.sources:
            if node.name not in names or node.name in placed:
                connector_of(node.source.connector.kind).look(spark, node, Options.of_source(node))
        whole = State(state, carry)
        _check_space(whole.size, new)
        whole.look()
        for one in going_on:
            tell(str(one))
        for what, count in whole.lost.flat()[Group.DROPPED_RECORDS].items():
            tell(f"of the rows that new stores are filled with, {count:,} are dropped: {what}")
        for name, count in sorted(whole.held.items()):
            tell(f"store {name}: {counted(count, 'row')} that it holds back {'is' if count == 1 else 'are'} dropped")
        if job.dry_run:
            tell(f"{bytes_text(whole.size)} of state would be carried over, as epoch {state.epoch} left it")
            return None
        held = claim(spark, new)
        try:
            return _made(job, state, identity, old, new, going_on, whole, tell)
        finally:
            held.release()


def _made(job: Upgrade, state: EpochState, identity: Identity, old: Files, new: Files, going_on: list[Position],
          whole: State, tell: Callable[[str], None]) -> Moved:  # fmt: skip
    _begin(new, Origin(old.root, identity.id, state.epoch))
    target = Checkpoint(
        new, uuid.uuid4().hex, job.partitions or identity.partitions, True, ancestors=(*identity.ancestors, identity.id)
    )
    new.make("vsc/control")
    write_positions(going_on, old, new, lambda node: files_there(state.spark, Options.of_source(node)))
    _write_pace(Checkpoint(old, identity.id, identity.partitions, False), state.epoch, target, job.plan, going_on)
    moved = whole.write(new, tell)
    target.create(job.plan)
    return moved


def _write_pace(old: Checkpoint, epoch: int, new: Checkpoint, plan: Plan, going_on: list[Position]) -> None:
    """Writes how far the sources had come as the pace of the epoch before the first: held records stay in step, and
    topics are known."""
    kept, report = old.pace(epoch), old.report(epoch)
    if kept is None or report is None:
        return
    pace, known = Pace.load(kept), known_topics(old, epoch)
    clocks = {name: max(wait.clock, report.clocks.get(name, wait.clock)) for name, wait in pace.waits.items()}
    stood = [(one, one.before.name) for one in going_on if one.given is None and one.before is not None]
    waits = {one.node.name: Wait(clocks[was]) for one, was in stood if was in clocks}
    gone_on, of_input = pace.clocks_after(report), steps_to(plan)
    starts = {one.node.name: gone_on[was] for one, was in stood if was in gone_on and one.node.name in of_input}
    topics = known_after(known, {str(one.was): str(one.number) for one, _ in stood})
    left = sum(pace.left(report).values())
    stages = stages_in_step(plan)
    # Every partition is called in the first epoch, and reports what it holds.
    waiting = {f"{stages[0]}-0": left} if left and stages else {}
    new.keep_pace(_BEFORE, Pace(waits, waiting, topics=topics, starts=starts).dump())


def _check_space(size: int, new: Files) -> None:
    """Raises UpgradeError if the local disk of the new checkpoint cannot take the state."""
    disk = disk_of(new.local()) if new.is_local else None
    if disk is not None and disk.free < size:
        raise UpgradeError(
            f"the state has {bytes_text(size)}, {bytes_text(disk.free)} are free on the disk of {new.root}",
            "free some space there: about twice the state is needed; or give --checkpoint a folder on another disk",
        )
