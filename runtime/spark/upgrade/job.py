"""An upgrade that has been prepared, from the claim on the old checkpoint to the identity of the new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from vsc.changes import Verdict
from vsc.plan.words import bytes_text, counted
from vsc.runtime.metrics import Group
from vsc.runtime.operators.carry import Carry
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.ancestry import ORIGIN, Origin
from vsc.runtime.spark.checkpoint.claim import claim, held_off
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.checkpoint.identity import Identity
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.connectors.file_rows import files_there
from vsc.runtime.spark.connectors.sink import OpenSink
from vsc.runtime.spark.upgrade.carried import SEEDING, CarriedOver, State
from vsc.runtime.spark.upgrade.decisions import covered
from vsc.runtime.spark.upgrade.positions import Position, inherit_sinks, positions, write_positions
from vsc.runtime.spark.upgrade.preflight import PreparedUpgrade, Upgrade, check_target, check_unchanged
from vsc.runtime.spark.upgrade.successor import check_space, make_successor

__all__ = ["upgrade"]

_SPACE = "free some space there: about twice the state is needed; or give --checkpoint a folder on another disk"
_MADE = ("sources", "vsc/control", "vsc/sources", "vsc/inputs", "vsc/epochs", "vsc/schemas", SEEDING, "vsc/plan.json")
"""What a killed upgrade may have left, beside its origin."""


def _begin(files: Files, origin: Origin) -> None:
    """Clears what an unfinished upgrade has left, and notes that one has begun. The caller holds the claim."""
    check_target(files)  # once more: another upgrade may have ended before this one had the claim
    if files.exists(ORIGIN):
        for name in _MADE:
            files.delete(name)
    files.write(ORIGIN, origin.dump())


def upgrade(prepared: PreparedUpgrade, spark: SparkSession, tell: Callable[[str], None]) -> CarriedOver | None:
    """Makes the new checkpoint; None for a dry run. VscRuntimeError if it is refused, before anything is written."""
    prepared, compared = prepared.reach(spark)
    job, ends, placed = prepared.job, prepared.ends, prepared.positions
    identity, changes = compared.was, compared.changes
    old, new = Files(spark, job.old), Files(spark, job.new)
    with held_off(spark, old):
        check_unchanged(old, identity)
        SparkLogs(old).check()
        state = EpochState.open(spark, job.old)
        there = [c for c in changes if c.kind == "source" and c.verdict not in (Verdict.NEW, Verdict.DROPPED)]
        names = {change.name: change.was or change.name for change in there}
        going_on = positions(state.plan, ends, names, SparkLogs(old).offsets(state.epoch), placed)
        reset, accept = covered(job.reset, changes), covered(job.accept, changes)
        partitions = job.partitions or identity.partitions
        carry = Carry.of(state.plan, job.plan, identity.partitions, partitions, reset, accept, job.functions)
        for source in ends.sources:
            if source.node.name not in names or source.node.name in placed:
                source.look(spark)
        whole = State(state, carry)
        check_space(whole.size, new, _SPACE)
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
            return _made(job, state, identity, old, new, going_on, ends.sinks, whole, tell)
        finally:
            held.release()


def _made(job: Upgrade, state: EpochState, identity: Identity, old: Files, new: Files, going_on: list[Position],
          sinks: Sequence[OpenSink], whole: State, tell: Callable[[str], None]) -> CarriedOver:  # fmt: skip
    _begin(new, Origin(old.root, identity.id, state.epoch))
    write_positions(going_on, old, new, lambda source: files_there(state.spark, source.options))
    inherit_sinks(state.plan, job.plan, sinks, old, new)
    _, carried = make_successor(state, identity, new, job.plan, job.partitions, going_on, whole, tell)
    return carried
